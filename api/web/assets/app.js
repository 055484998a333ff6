// What pages need beside htmx. Without scripts they work, but stand still.
(function () {
  "use strict";

  // The dot beside the site's name: red while a stream of this page is broken,
  // green once one is open.
  const streams = new Map();
  function show(source, state) {
    if (state) streams.set(source, state);
    else streams.delete(source);
    const states = new Set(streams.values());
    if (states.has("no")) document.documentElement.dataset.live = "no";
    else if (states.has("yes")) document.documentElement.dataset.live = "yes";
  }

  // A stream of events that rests while nobody looks: browsers allow few
  // connections to one host, and hidden pages would use them up.
  class RestingSource extends EventTarget {
    constructor(url) {
      super();
      this.url = url;
      this.last = "";
      this.ended = false;
      this.names = new Map();
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
      };
      for (const name of this.names.keys()) this.pass(name);
    }
    rest() {
      if (this.source) this.source.close();
      this.source = null;
    }
    pass(name) {
      this.source.addEventListener(name, (e) => {
        if (e.lastEventId) this.last = e.lastEventId;
        show(this, "yes"); // a proxy may have swallowed the opening
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

  // A page that is drawn anew stays where its wide tables and drawings were scrolled to.
  let scrolled = [];
  const wide = (root) => [...root.querySelectorAll(".wide")];
  document.addEventListener("htmx:beforeSwap", (e) => { scrolled = wide(e.target).map((w) => w.scrollLeft); });
  document.addEventListener("htmx:afterSwap", (e) => {
    if (e.target.id === "fresh") wide(e.target).forEach((w, i) => { if (scrolled[i]) w.scrollLeft = scrolled[i]; });
    localTimes(e.target);
  });
  document.addEventListener("change", (e) => {
    if (e.target.matches("select[data-go]")) e.target.form.requestSubmit();
  });
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
    const field = document.getElementById("find");
    if (field) { e.preventDefault(); setTimeout(() => { field.focus(); field.select(); }); }
  });
  localTimes(document);
  const here = document.querySelector("nav [aria-current]"); // the menu of a phone is wider than its screen
  if (here) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 40;
})();
