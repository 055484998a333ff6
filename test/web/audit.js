(() => {
  const faults = [];
  const say = (what, e) => faults.push(what + ": " + (e.outerHTML || "").slice(0, 120));
  const seen = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility === "visible";
  const one = (selector) => { const n = document.querySelectorAll(selector).length; if (n !== 1) faults.push(n + " of " + selector); };
  for (const s of ["h1", "header", "main", "footer", "nav[aria-label]", "html[lang]", "head > title", "form[role=search]", "nav a[aria-current]"]) {
    if (s === "nav a[aria-current]" && document.querySelector("form.login")) continue; // no entry leads to it
    one(s);
  }
  let level = 0;
  for (const h of document.querySelectorAll("main h1, main h2, main h3")) {
    if (!seen(h)) continue;
    const n = Number(h.tagName[1]);
    if (n > level + 1) say("a level of headings is left out", h);
    level = n;
  }
  for (const e of document.querySelectorAll("input:not([type=hidden]), select, textarea")) if (!e.labels?.length && !e.ariaLabel) say("no label", e);
  for (const e of document.querySelectorAll("img:not([alt])")) say("no alt", e);
  for (const e of document.querySelectorAll("svg:not([role=img]):not([role=group][aria-label]):not([aria-hidden])")) say("a drawing without a role", e);
  for (const e of document.querySelectorAll("table")) if (!e.querySelector("th[scope=col]") || !e.querySelector("th[scope=row]")) say("no headings of rows or columns", e);
  for (const e of document.querySelectorAll("[style], script:not([src]), style")) say("inline", e);
  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) { if (ids.has(e.id)) say("an id stands twice", e); ids.add(e.id); }
  for (const e of document.querySelectorAll("[aria-labelledby]")) if (!document.getElementById(e.getAttribute("aria-labelledby"))) say("its label is not there", e);

  // Contrast: 4.5 to 1, or 3 to 1 for large text.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.canvas.width = canvas.canvas.height = 1;
  const rgba = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255]; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => { const layers = []; for (; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor)); return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]); };
  const checked = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.textContent.trim() || !seen(e) || ["TITLE", "SCRIPT"].includes(e.tagName.toUpperCase())) continue;
    const style = getComputedStyle(e), drawn = e.namespaceURI.endsWith("svg");
    const back = behind(e), front = over(rgba(drawn ? style.fill : style.color), back);
    const key = front.join() + back.join() + style.fontSize;
    if (checked.has(key)) continue;
    checked.add(key);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x), size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    if ((a + 0.05) / (b + 0.05) < least) say("contrast " + ((a + 0.05) / (b + 0.05)).toFixed(2), e);
  }
  return faults;
})()
