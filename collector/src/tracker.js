// The tracker: reports views of this page to the host that served the script. `npm run tracker` in tests/browser generates
// tracker.min.js from it, which visitors get.
//
// It sets no cookie and stores nothing except an opt-out.
(() => {
  const script = document.currentScript || document.querySelector("script[data-site]");
  const options = script ? script.dataset : {};
  const site = options.site;
  const before = window.wr;
  // A second copy, as on a hosted page with a tag of its own, would count everything twice.
  if (!site || (before && before.site === site)) return;
  // Blocklists contain the usual names of endpoints, and block `sendBeacon` to third parties.
  const endpoint = new URL(options.api || "/_wr/collect", script.src);
  const byHash = "hash" in options;
  const isLocal = (host) => /^$|^127\.|^\[::1]$|(^|\.)localhost$/.test(host);
  const isDisabled =
    // A page on localhost is under development, unless the whole system runs there.
    (isLocal(location.hostname) && !isLocal(endpoint.hostname) && !("local" in options)) ||
    ((navigator.webdriver || window.Cypress) && !("robots" in options)) ||
    ((navigator.doNotTrack == 1 || navigator.globalPrivacyControl) && !("ignoreDnt" in options));

  // The current page; undefined until it is visible.
  let page, path;
  // Events of the page before its view, which they follow; no more than the collector takes in a minute.
  const early = [];
  // Events that leave within a second form a group with a random number, when it began, and their number in it: requests
  // overtake each other, and the collector restores the order. Timers are late in the background and stop in the
  // back/forward cache, the clock does not.
  let group, began, sequence;
  const send = (event) => {
    try {
      // Throws on pages without access to storage.
      if (localStorage.wr_opt_out) return;
    } catch (_) {}
    if (isDisabled) return;
    event.t = site;
    // The fragment is part of the path if it distinguishes pages.
    if (byHash) event.h = true;
    const now = performance.now();
    if (!(now - began < 1e3)) {
      began = now;
      group = (Math.random() * 1e9) | 0;
      sequence = 0;
    }
    event.g = group;
    // The first one has none.
    event.q = sequence++ || undefined;
    // Text needs no preflight; `keepalive` completes the request after the page is left.
    const body = JSON.stringify(event);
    fetch(endpoint, { method: "POST", body, keepalive: true, mode: "no-cors", credentials: "omit" }).catch(() => {});
  };

  const currentPath = () => location.pathname + (byHash ? location.hash : "");
  // A fragment may be a secret. The length is limited, because the collector drops events that are too large.
  const address = () => (byHash ? location.href : location.href.split("#")[0]).slice(0, 4e3);
  const isVisible = () => document.visibilityState === "visible";

  // Its lowest visible position and its height (pixels), and the reported depth (percent).
  let bottom = 0, height = 1, reported = 0;
  // Time with focus since the last report, and the start of the current period (milliseconds).
  let engaged = 0, since = 0;
  const [entry] = performance.getEntriesByType("navigation");
  let isMissing = entry && entry.responseStatus === 404;

  const measure = () => {
    height = (document.scrollingElement || document.documentElement).scrollHeight || 1;
    bottom = Math.max(bottom, scrollY + innerHeight);
  };
  const updateEngagement = () => {
    const now = performance.now();
    if (since) engaged += now - since;
    since = isVisible() && document.hasFocus() && now;
  };
  const report = () => {
    updateEngagement();
    const depth = Math.min(100, Math.round((100 * bottom) / height));
    if (page && (depth > reported || engaged >= 3e3)) {
      send({ n: "engagement", u: page, e: Math.round(engaged), s: depth });
      reported = depth;
      engaged = 0;
    }
  };

  const view = (referrer) => {
    page = address();
    path = currentPath();
    bottom = reported = engaged = since = 0;
    send({ n: "page_view", u: page, r: referrer, i: document.title, w: screen.width });
    if (isMissing || document.querySelector("[data-not-found]")) {
      send({ n: "not_found", u: page, p: { from: referrer.split(/[?#]/)[0] } });
    }
    isMissing = 0;
    early.splice(0).forEach(send);
    measure();
    updateEngagement();
  };
  // Deferred, so that the page can set its title and redirect first.
  const onNavigation = () =>
    setTimeout(() => {
      if (page && currentPath() !== path) {
        report();
        view(page);
      }
    });
  const pushState = history.pushState;
  history.pushState = function () {
    pushState.apply(this, arguments);
    onNavigation();
  };
  addEventListener("popstate", onNavigation);
  addEventListener("hashchange", onNavigation);

  const onVisibilityChange = () => {
    // Opened in the background or prerendered: the view starts now.
    if (!page && isVisible()) view(document.referrer);
    measure();
    const wasEngaged = since;
    updateEngagement();
    if (wasEngaged && !since) report();
  };
  document.addEventListener("visibilitychange", onVisibilityChange);
  addEventListener("focus", onVisibilityChange);
  addEventListener("blur", onVisibilityChange);
  addEventListener("pagehide", () => {
    report();
    // The page was never visible. One that was only prerendered was not opened.
    if (!document.prerendering) early.splice(0).forEach(send);
  });
  addEventListener("scroll", measure);
  // Restored from the back/forward cache: the same script continues, but it is another view.
  addEventListener("pageshow", (event) => event.persisted && view(""));

  const extensions =
    options.downloads ||
    "pdf|docx?|xlsx?|pptx?|od[tsp]|key|csv|txt|rtf|epub|zip|rar|7z|gz|dmg|pkg|exe|msi|deb|apk|mp[34]|mov|avi|wav";
  const files = RegExp("\\.(" + extensions + ")$", "i");
  const onClick = (event) => {
    // Crosses shadow roots, unlike `closest`.
    const link = event.composedPath().find((node) => node.localName === "a" && node.hasAttribute("href"));
    // Only the primary and the middle button.
    if (!link || !/^http/.test(link.protocol) || event.button > 1) return;
    const props = { url: link.origin + link.pathname };
    if (link.hasAttribute("download") || files.test(link.pathname)) wr("file_download", props);
    else if (link.host !== location.host) wr("outbound_link", props);
  };
  document.addEventListener("click", onClick, true);
  document.addEventListener("auxclick", onClick, true);

  const wr = (name, props) => {
    try {
      if (name === "opt_out") return (localStorage.wr_opt_out = 1);
      if (name === "opt_in") return delete localStorage.wr_opt_out;
    } catch (_) {}
    const event = { n: name, u: address(), p: props };
    page ? send(event) : early[29] || early.push(event);
  };
  wr.site = site;
  window.wr = wr;
  if (isVisible()) view(document.referrer);
  // Calls that were queued before the script loaded.
  for (const args of (before && before.q) || []) wr(...args);
})();
