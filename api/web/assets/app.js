// What pages need beside htmx. Without scripts they work, but stand still.
(function () {
  "use strict";

  // The dot beside the site's name: red while a stream of this page is broken,
  // green once one is open. If that lasts, a banner says since when.
  const streams = new Map();
  function show(source, state) {
    if (state) streams.set(source, state);
    else streams.delete(source);
    const states = new Set(streams.values());
    if (states.has("no")) document.documentElement.dataset.live = "no";
    else if (states.has("yes")) document.documentElement.dataset.live = "yes";
    tell([...streams].some(([s, state]) => s.vital && state === "no"));
  }
  const gone = document.getElementById("gone");
  const patience = 2500;
  let lost = 0;
  function tell(broken) {
    if (!broken) {
      clearTimeout(lost);
      lost = 0;
      gone.hidden = true;
    } else if (!lost) {
      const since = new Date(heard || Date.now());
      lost = setTimeout(() => {
        const at = document.getElementById("gone-since");
        at.dateTime = since.toISOString();
        at.textContent = clock.format(since);
        gone.hidden = false;
      }, patience);
    }
  }
  // When a stream of this page said something last. One that should beat and says nothing
  // for some beats is broken, although its connection may stand.
  let heard = 0;
  const silence = 16000;

  // A stream of events that rests while nobody looks: browsers allow few
  // connections to one host, and hidden pages would use them up.
  class RestingSource extends EventTarget {
    constructor(url) {
      super();
      this.url = url;
      this.vital = !new URL(url, location.href).pathname.endsWith("/log"); // output may be at another site, which is away
      this.last = "";
      this.ended = false;
      this.names = new Map();
      this.watch = 0;
      this.look = () => (document.hidden ? this.rest() : this.wake());
      document.addEventListener("visibilitychange", this.look);
      if (!document.hidden) this.wake();
    }
    get readyState() { return this.ended ? EventSource.CLOSED : this.source ? this.source.readyState : EventSource.CONNECTING; }
    wake() {
      if (this.ended || this.source) return;
      const url = new URL(this.url, location.href);
      if (this.last) url.searchParams.set("resume", this.last);
      const source = new EventSource(url);
      this.source = source;
      source.onopen = (e) => { show(this, "yes"); if (this.onopen) this.onopen(e); };
      source.onerror = () => {
        show(this, "no");
        if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
        this.rest();
        if (!this.ended && !document.hidden) setTimeout(() => this.look(), 3000);
        fetch(location.href, { method: "HEAD" }).then((r) => { if (r.status === 401) location.reload(); }, () => {}); // the session has ended
      };
      source.addEventListener("beat", () => this.alive());
      if (this.vital) this.expect(); // all but output beat from the start; a broker may hang before
      for (const name of this.names.keys()) this.pass(name);
    }
    alive() {
      heard = Date.now();
      show(this, "yes");
      this.expect();
    }
    expect() {
      clearTimeout(this.watch);
      this.watch = setTimeout(() => { show(this, "no"); this.rest(); this.look(); }, silence);
    }
    rest() {
      clearTimeout(this.watch);
      if (this.source) this.source.close();
      this.source = null;
    }
    pass(name) {
      this.source.addEventListener(name, (e) => {
        if (e.lastEventId) this.last = e.lastEventId;
        show(this, "yes"); // a proxy may have swallowed the opening
        heard = Date.now();
        if (this.watch) this.alive();
        this.dispatchEvent(new MessageEvent(name, { data: e.data, lastEventId: e.lastEventId }));
      });
    }
    addEventListener(name, listener) {
      super.addEventListener(name, listener);
      if (this.names.has(name)) return;
      this.names.set(name, true);
      if (this.source) this.pass(name);
    }
    close() {
      this.ended = true;
      this.rest();
      show(this, "");
      document.removeEventListener("visibilitychange", this.look);
    }
  }
  htmx.createEventSource = (url) => new RestingSource(url);

  // Times in the reader's own zone.
  const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
  function localTimes(root) {
    for (const t of root.querySelectorAll("time[datetime]:not([data-local])")) {
      const at = new Date(t.dateTime);
      if (isNaN(at)) continue;
      t.title = t.textContent;
      t.textContent = (t.hasAttribute("data-clock") ? clock : zone).format(at);
      t.dataset.local = "yes";
    }
  }

  // What grows has a bound; a log that is read at its end stays there.
  const mostText = 1 << 20;
  function bound(list) {
    const most = Number(list.dataset.most);
    while (most && list.children.length > most) list.lastElementChild.remove();
  }
  function boundLog(log) {
    let size = 0;
    for (let n = log.lastChild; n; ) {
      const before = n.previousSibling;
      size += n.textContent.length;
      if (size > mostText) n.remove();
      n = before;
    }
  }
  document.addEventListener("htmx:sseBeforeMessage", (e) => {
    const log = e.target.closest("pre.log");
    if (log) log.dataset.end = log.scrollHeight - log.scrollTop - log.clientHeight < 40 ? "yes" : "";
  });
  document.addEventListener("htmx:sseMessage", (e) => {
    const log = e.target.closest && e.target.closest("pre.log");
    if (log) {
      boundLog(log);
      if (log.dataset.end) log.scrollTop = log.scrollHeight;
    }
    const list = e.target.closest && e.target.closest("[data-most]");
    if (list) { bound(list); localTimes(list); }
  });
  document.addEventListener("htmx:sseClose", (e) => {
    const state = document.getElementById("log-state");
    const log = e.target.closest && e.target.closest("#log");
    if (!state || !log) return;
    state.textContent = "ended";
    log.dataset.over = "yes";
  });

  // Drawings over time open at now, those of jobs at the page's own. A page that is redrawn stays where its wide
  // tables and drawings were scrolled to, and the names of their rows are always seen.
  const scrolled = new Map();
  const wide = (root) => [...root.querySelectorAll(".wide")].map((w, i) => [(w.querySelector("table, svg")?.getAttribute("class") || "") + i, w]);
  function place(root) {
    for (const [name, w] of wide(root)) {
      w.scrollLeft = scrolled.has(name) ? scrolled.get(name) : w.classList.contains("now") ? w.scrollWidth : (w.dataset.at || 0) - w.clientWidth / 2;
      hold(w);
    }
  }
  function hold(w) {
    const names = w.querySelector("g.names"), svg = names && names.ownerSVGElement;
    if (svg) names.setAttribute("transform", `translate(${w.scrollLeft * svg.viewBox.baseVal.width / svg.clientWidth || 0})`);
  }
  document.addEventListener("scroll", (e) => { if (e.target.matches?.(".wide.now")) hold(e.target); }, true);
  addEventListener("resize", () => wide(document).forEach(([, w]) => hold(w)));
  document.addEventListener("htmx:beforeSwap", (e) => {
    scrolled.clear();
    for (const [name, w] of wide(e.target)) if (w.scrollWidth > w.clientWidth) scrolled.set(name, w.scrollLeft);
  });
  document.addEventListener("htmx:afterSwap", (e) => {
    if (e.target.id === "fresh") place(e.target);
    localTimes(e.target);
    copyable(e.target);
  });
  document.addEventListener("change", (e) => {
    if (e.target.matches("select[data-go]")) e.target.form.requestSubmit();
  });
  // What is to be copied: where the browser lets nobody write to the clipboard (a page of plain HTTP, off loopback),
  // there is no button, and the text can be selected.
  function copyable(root) {
    if (!navigator.clipboard) return;
    for (const b of root.querySelectorAll("button[data-copy]")) b.hidden = false;
  }
  document.addEventListener("click", (e) => {
    const button = e.target.closest("button[data-copy]");
    if (!button) return;
    const before = button.dataset.text ||= button.textContent;
    navigator.clipboard.writeText(button.dataset.copy).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Not copied"; })
      .then(() => setTimeout(() => { button.textContent = before; }, 2000));
  });
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
    const field = document.getElementById("find");
    if (field) { e.preventDefault(); setTimeout(() => { field.focus(); field.select(); }); }
  });
  localTimes(document);
  copyable(document);
  place(document);
  const here = document.querySelector("nav [aria-current]"); // the menu of a phone is wider than its screen
  if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 40;
})();
