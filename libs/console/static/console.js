// What the pages can't do by themselves. Everything works without it.
const one = (what, where = document) => where.querySelector(what);
const all = (what, where = document) => [...where.querySelectorAll(what)];
const say = Object.assign(document.createElement("p"), { className: "hush", role: "status" });
document.body.append(say);

// A part of the page becomes that of another address: the reading pane, a tab of a panel, a preview.
const trusted = globalThis.trustedTypes?.createPolicy("console", { createHTML: (html) => html });
const parse = (text) => new DOMParser().parseFromString(trusted?.createHTML(text) ?? text, "text/html");
const address = () => location.pathname + location.search;
let last = 0, shown = address();
async function show(url, part, push) {
  const turn = ++last, answer = await fetch(url, { headers: { "X-Part": part } });
  if (!answer.ok || answer.redirected) return void (location.href = url);
  const page = parse(await answer.text()), fresh = one(part, page);
  if (turn !== last) return;
  if (!fresh) return void (location.href = url);
  one(part).replaceWith(document.adoptNode(fresh));
  if (page.title) document.title = page.title;
  if (push) history.pushState({ part }, "", url), (shown = address());
}
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-part]");
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button || !matchMedia("(min-width: 60rem)").matches) return;
  event.preventDefault();
  all("[data-part][aria-current]").forEach((old) => old.removeAttribute("aria-current"));
  all("[data-part]").find((it) => it.href === link.href)?.setAttribute("aria-current", "true");
  one(".split")?.classList.add("open");
  show(link.href, link.dataset.part, true);
});
addEventListener("popstate", ({ state }) => {
  // A link to a place on this page is an entry of the history, too.
  if (address() === shown) return;
  shown = address();
  state?.part ? show(location.href, state.part) : location.reload();
});

// Parts that change are fetched again while the page is visible: texts, or elements with their open details.
for (let part of all("[data-live][data-src]")) {
  let tag;
  const { src, every, part: id } = part.dataset;
  setInterval(async () => {
    if (document.hidden) return;
    const headers = { ...(tag && { "If-None-Match": tag }), ...(id && { "X-Part": id }) };
    const answer = await fetch(src, { headers }).catch(() => null);
    if (answer?.status !== 200) return;
    tag = answer.headers.get("etag");
    const text = await answer.text();
    if (!id) return void (part.textContent = text);
    const fresh = one(id, parse(text)), at = document.activeElement.closest("details[id]")?.id;
    // It has ended: now the rest of the page differs, too.
    if (!fresh?.matches("[data-live]")) return location.reload();
    all("details[id][open]", part).forEach(({ id }) => one(`#${id}`, fresh)?.setAttribute("open", ""));
    part.replaceWith((part = document.adoptNode(fresh)));
    if (at) one(`#${at} > summary`)?.focus();
  }, (every ?? 10) * 1000);
}

// Charts by keyboard: the days one after the other, in words.
for (const plot of all("[data-plot]")) {
  const columns = all(".col", plot);
  let at = columns.length;
  plot.tabIndex = 0;
  const go = (to) => {
    columns[at]?.classList.remove("at");
    columns[(at = Math.max(0, Math.min(columns.length - 1, to)))].classList.add("at");
    say.textContent = one("text", columns[at]).textContent;
  };
  plot.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: columns.length - 1 }[event.key];
    if (to !== undefined) go(to), event.preventDefault();
    if (event.key === "Enter" && columns[at]) location.href = columns[at].href.baseVal;
  });
  plot.addEventListener("blur", () => columns[at]?.classList.remove("at"));
}

// Keys, as the page's own links and buttons say; off where text is typed.
let before = "";
addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, [contenteditable]")) return;
  const place = before === "g" && one(`[data-go="${CSS.escape(key)}"]`);
  before = key;
  const shortcut = (it) => it.getAttribute("aria-keyshortcuts").toLowerCase() === key.toLowerCase();
  const found = place || (key === "?" ? one("#keys") : all("[aria-keyshortcuts]").find(shortcut));
  if (!found) return;
  event.preventDefault();
  if (found.matches("input")) found.focus();
  else if (found.popover) found.togglePopover();
  else found.click();
});

addEventListener("click", async ({ target }) => {
  const copy = target.closest?.("[data-copy]");
  if (!copy) return;
  await navigator.clipboard.writeText(one(copy.dataset.copy).textContent);
  say.textContent = copy.dataset.said = "Copied";
});
addEventListener("change", ({ target }) => {
  if (target.matches("[data-all]")) all("[name=id]", target.form).forEach((box) => (box.checked = target.checked));
});

// The builder: the preview follows its form, in a new frame each time, so that no history grows. Alt and an arrow move a question.
let wait;
addEventListener("input", ({ target }) => {
  const button = target.form && one("[formtarget]", target.form);
  clearTimeout(wait);
  if (button) wait = setTimeout(draw, 400, button);
});
function draw(button) {
  const old = one("iframe[name]");
  old.replaceWith(old.cloneNode());
  button.form.requestSubmit(button);
}
addEventListener("keydown", (event) => {
  const way = event.altKey && { ArrowUp: "up", ArrowDown: "down" }[event.key];
  const button = way && event.target.closest("fieldset.question")?.querySelector(`[data-move=${way}]`);
  if (button) event.preventDefault(), button.click();
});
if (one("[formtarget]")) draw(one("[formtarget]"));
// A zip goes straight to the edge, with its progress; else its form posts it.
one("[data-upload]")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target, { zip } = form, [file] = zip.files, bar = one("progress", form);
  const body = new URLSearchParams(new FormData(form));
  body.set("sizeBytes", file.size);
  const begun = await fetch(form.dataset.upload, { method: "POST", body });
  if (begun.status !== 201) return form.submit();
  const { uploadUrl, next } = await begun.json(), put = new XMLHttpRequest();
  bar.hidden = false;
  put.upload.onprogress = ({ loaded }) => (bar.value = loaded / file.size);
  put.onloadend = () => {
    if (put.status === 200) (form.action = next), (form.enctype = ""), (zip.disabled = true);
    form.submit();
  };
  put.open("PUT", uploadUrl);
  put.send(file);
});
