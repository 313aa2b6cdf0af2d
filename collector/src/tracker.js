// The tracker: tells the host it came from that this page was viewed.
(function () {
  var script = document.currentScript;
  var site = script && script.dataset.site;
  if (!site) return;
  function send() {
    var event = JSON.stringify({
      siteToken: site,
      name: "page_view",
      url: location.href,
      referrer: document.referrer || undefined,
      title: document.title || undefined,
      screenWidth: screen.width,
    });
    var to = new URL("/_wr/collect", script.src);
    if (!navigator.sendBeacon || !navigator.sendBeacon(to, event)) {
      fetch(to, { method: "POST", body: event, keepalive: true, mode: "no-cors" }).catch(function () {});
    }
  }
  // A page that is only being prepared has no viewer yet.
  if (document.prerendering) document.addEventListener("prerenderingchange", send, { once: true });
  else send();
})();
