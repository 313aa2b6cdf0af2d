// The tracker: tells the host it came from what is seen of this page. `npm run tracker` in tests/browser makes
// tracker.min.js of it, which is what visitors get.
//
// It sets no cookie and stores nothing but, when somebody asks to be left alone, that they did.
(() => {
  const script = document.currentScript || document.querySelector("script[data-site]");
  const told = script ? script.dataset : {};
  const site = told.site;
  const before = window.wr;
  // A second copy, as on a hosted page that brings a tag of its own, would count everything twice.
  if (!site || (before && before.site === site)) return;
  // Not under a name that lists of trackers know, and not by `sendBeacon`, which they forbid to third parties.
  const to = new URL(told.api || "/_wr/collect", script.src);
  const byHash = "hash" in told;
  const isLocal = (host) => /^$|^127\.|^\[::1]$|(^|\.)localhost$/.test(host);
  const isMute =
    // A page on somebody's own machine is work on it, unless the whole system is there.
    (isLocal(location.hostname) && !isLocal(to.hostname) && !("local" in told)) ||
    ((navigator.webdriver || window.Cypress) && !("robots" in told)) ||
    ((navigator.doNotTrack == 1 || navigator.globalPrivacyControl) && !("ignoreDnt" in told));

  const send = (event) => {
    try {
      // Throws on pages that may not store anything.
      if (localStorage.wr_opt_out) return;
    } catch (_) {}
    if (isMute) return;
    event.t = site;
    // The fragment is part of the path where pages are told apart by it.
    if (byHash) event.h = true;
    // Text, so that no preflight is asked; kept alive, so that it arrives though the page is left.
    const body = JSON.stringify(event);
    fetch(to, { method: "POST", body, keepalive: true, mode: "no-cors", credentials: "omit" }).catch(() => {});
  };

  const where = () => location.pathname + (byHash ? location.hash : "");
  // A fragment may be a secret. Longer addresses than any page has would make the event longer than is taken.
  const address = () => (byHash ? location.href : location.href.split("#")[0]).slice(0, 4e3);
  const isVisible = () => document.visibilityState === "visible";

  // The page that is being viewed; none while it was never seen.
  let page, path;
  // Of it: how far down it was seen and how long it is (pixels), and how much of it was told (percent).
  let bottom = 0, height = 1, reported = 0;
  // How long it was in front of somebody since that was told, and since when it is (milliseconds).
  let engaged = 0, since = 0;
  const [entry] = performance.getEntriesByType("navigation");
  let isMissing = entry && entry.responseStatus === 404;

  const measure = () => {
    height = (document.scrollingElement || document.documentElement).scrollHeight || 1;
    bottom = Math.max(bottom, scrollY + innerHeight);
  };
  const settle = () => {
    const now = performance.now();
    if (since) engaged += now - since;
    since = isVisible() && document.hasFocus() && now;
  };
  const report = () => {
    settle();
    const depth = Math.min(100, Math.round((100 * bottom) / height));
    if (page && (depth > reported || engaged >= 3e3)) {
      send({ n: "engagement", u: page, e: Math.round(engaged), s: depth });
      reported = depth;
      engaged = 0;
    }
  };

  const view = (referrer) => {
    page = address();
    path = where();
    bottom = reported = engaged = since = 0;
    send({ n: "page_view", u: page, r: referrer, i: document.title, w: screen.width });
    if (isMissing || document.querySelector("[data-not-found]")) {
      send({ n: "not_found", u: page, p: { from: referrer.split(/[?#]/)[0] } });
    }
    isMissing = 0;
    measure();
    settle();
  };
  // Later, when the page has set its title and been where it wants to be.
  const moved = () =>
    setTimeout(() => {
      if (page && where() !== path) {
        report();
        view(page);
      }
    });
  const pushState = history.pushState;
  history.pushState = function () {
    pushState.apply(this, arguments);
    moved();
  };
  addEventListener("popstate", moved);
  addEventListener("hashchange", moved);

  const turned = () => {
    // Opened in the background, or ahead of time: only now there is a viewer.
    if (!page && isVisible()) view(document.referrer);
    measure();
    const wasWatched = since;
    settle();
    if (wasWatched && !since) report();
  };
  document.addEventListener("visibilitychange", turned);
  addEventListener("focus", turned);
  addEventListener("blur", turned);
  addEventListener("pagehide", report);
  addEventListener("scroll", measure);
  // Back from where the browser kept it: the same script goes on, but it is another view.
  addEventListener("pageshow", (event) => event.persisted && view(""));

  const endings =
    told.downloads ||
    "pdf|docx?|xlsx?|pptx?|od[tsp]|key|csv|txt|rtf|epub|zip|rar|7z|gz|dmg|pkg|exe|msi|deb|apk|mp[34]|mov|avi|wav";
  const files = RegExp("\\.(" + endings + ")$", "i");
  const clicked = (event) => {
    // Through the boundaries of components, where `closest` ends.
    const link = event.composedPath().find((node) => node.localName === "a" && node.hasAttribute("href"));
    // The first button or the one in the middle.
    if (!link || !/^http/.test(link.protocol) || event.button > 1) return;
    const props = { url: link.origin + link.pathname };
    if (link.hasAttribute("download") || files.test(link.pathname)) wr("file_download", props);
    else if (link.host !== location.host) wr("outbound_link", props);
  };
  document.addEventListener("click", clicked, true);
  document.addEventListener("auxclick", clicked, true);

  const wr = (name, props) => {
    try {
      if (name === "opt_out") return (localStorage.wr_opt_out = 1);
      if (name === "opt_in") return delete localStorage.wr_opt_out;
    } catch (_) {}
    send({ n: name, u: address(), p: props });
  };
  wr.site = site;
  window.wr = wr;
  if (isVisible()) view(document.referrer);
  // What was said before this was loaded.
  for (const words of (before && before.q) || []) wr(...words);
})();
