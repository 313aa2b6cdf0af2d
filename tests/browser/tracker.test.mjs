// The tracker in a real browser, from the page to the stored events.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { launch, start, until } from "./system.mjs";
import { LIKE_PEOPLE, Site, serve, watch } from "./visits.mjs";

const source = new URL("../../collector/src/tracker.js", import.meta.url);

let system, browser;
before(async () => {
  system = await start("collector.events_per_minute=100000");
  browser = await launch(LIKE_PEOPLE);
});
after(async () => {
  await browser?.close();
  await system?.stop();
});

/** A tab and the events it has sent. Options are those of a browser context. */
async function tab(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const requests = watch(context);
  const sent = async () => {
    // Playwright reports requests in order but late; this request flushes the earlier ones.
    await page.evaluate(() => fetch("/barrier").then((answer) => answer.text()));
    return requests.map((request) => ({ request, ...JSON.parse(request.postData()) }));
  };
  return { context, page, sent, close: () => context.close() };
}

/** A third-party page with the tag. */
const page = (site, { title = "Page", attributes = "", head = "", body = "" } = {}) =>
  `<!doctype html><html><head><title>${title}</title>${head}${site.tag(attributes)}</head><body>${body}</body></html>`;

/** Moves the real focus away from a page, or back; Playwright emulates focus otherwise. */
async function otherTab(context, page) {
  const session = await context.newCDPSession(page);
  await session.send("Emulation.setFocusEmulationEnabled", { enabled: false });
  const other = await context.newPage();
  const focused = (is) => until("the focus", async () => (await page.evaluate(() => document.hasFocus())) === is);
  return {
    leave: async () => {
      await other.bringToFront();
      await focused(false);
    },
    comeBack: async () => {
      await page.bringToFront();
      await focused(true);
    },
  };
}

/** Tabs without Playwright: only these become hidden and are prerendered. */
async function undriven() {
  const session = await browser.newBrowserCDPSession();
  const targets = [];
  return {
    open: async (url, { background = false } = {}) => {
      const { targetId } = await session.send("Target.createTarget", { url, background });
      targets.push(targetId);
      // Playwright attaches to every new tab for a moment, which prevents prerendering.
      const info = async () => (await session.send("Target.getTargetInfo", { targetId })).targetInfo;
      await until("the driver to let go", async () => !(await info()).attached);
      return { show: () => session.send("Target.activateTarget", { targetId }) };
    },
    close: async () => {
      for (const targetId of targets) await session.send("Target.closeTarget", { targetId });
      await session.detach();
    },
  };
}

test("the served tracker is the minified source", async () => {
  const { outputFiles } = await build({ entryPoints: [source.pathname], minify: true, target: "es2018", write: false });
  const minified = await readFile(new URL("tracker.min.js", source), "utf8");
  assert.equal(minified, outputFiles[0].text, "run `npm run tracker` in tests/browser");
});

test("a visit to three pages of a hosted site is counted without a tag, cookies or storage", async () => {
  const link = (to, text) => `<p><a href="${to}">${text}</a></p>`;
  const site = await Site.make(system, {
    index: `<head><title>Home</title></head><body>${link("/about", "About")}`,
    about: `<head><title>About us</title></head><body>${link("/contact", "Contact")}`,
    contact: "<head><title>Contact</title></head><body>",
  });
  const ada = await tab();
  await ada.page.goto(`${site.url}?utm_source=news&token=s3cret#top`, { referer: "https://www.weblog.example/post?id=1" });
  // Sequential, because concurrent requests may be reordered.
  await site.named("page_view", 1);
  await ada.page.getByRole("link", { name: "About" }).click();
  await site.named("page_view", 2);
  await ada.page.getByRole("link", { name: "Contact" }).click();
  const views = await site.named("page_view", 3);
  const host = new URL(site.url).hostname;
  assert.deepEqual(
    views.map(({ host, path, title, referrer_host, utm_source }) => ({ host, path, title, referrer_host, utm_source })),
    [
      { host, path: "/", title: "Home", referrer_host: "weblog.example", utm_source: "news" },
      { host, path: "/about", title: "About us", referrer_host: "", utm_source: "" },
      { host, path: "/contact", title: "Contact", referrer_host: "", utm_source: "" },
    ],
  );
  // Pages that were left have sent their scroll depth.
  const left = await site.named("engagement", 2);
  assert.deepEqual(left.map(({ path, scroll_depth }) => [path, scroll_depth]), [["/", 100], ["/about", 100]]);
  assert.equal(new Set([...views, ...left].map(({ visitor }) => visitor)).size, 1);

  for (const { request } of await ada.sent()) {
    assert.equal(request.method(), "POST", "there was a preflight request");
    assert.match(request.headers()["content-type"], /^text\/plain/);
    assert.equal(request.headers().cookie, undefined);
    assert.doesNotMatch(request.postData(), /#top/);
  }
  assert.deepEqual((await ada.context.storageState()), { cookies: [], origins: [] });
  await ada.close();
});

test("a sandboxed page under its short URL is counted, without storage or an origin", async () => {
  const site = await Site.make(system, { index: "<head><title>Home</title></head><body>Hello" });
  const { pages } = await fetch(`${system.base}/api/pages`, { headers: { authorization: `Bearer ${site.key}` } }).then((answer) => answer.json());
  const ada = await tab();
  await ada.page.goto(pages[0].pageUrl);
  const [view] = await site.named("page_view", 1);
  assert.equal(view.host, "localhost");
  await ada.close();
});

test("an additional tag on a hosted page does not count twice", async () => {
  const site = await Site.make(system);
  const twice = await serve({ "/": page(site, { body: site.tag() }) });
  const ada = await tab();
  await ada.page.goto(twice.address);
  assert.equal((await ada.sent()).length, 1);
  await site.named("page_view", 1);
  await ada.close();
  twice.stop();
});

test("a single-page app is counted by path, with the title of each path", async () => {
  const site = await Site.make(system);
  const app = await serve({ "/": page(site, { title: "Start" }) });
  const ada = await tab();
  await ada.page.goto(`${app.address}/`, { referer: "https://weblog.example/" });
  const go = (how, path, title) =>
    ada.page.evaluate(
      ([how, path, title]) => {
        history[how](null, "", path);
        document.title = title;
      },
      [how, path, title],
    );
  const seen = (count) => site.named("page_view", count);
  await seen(1);
  await go("pushState", "/list", "List");
  await seen(2);
  // A state change on the same path and a replaced URL are not views.
  await go("pushState", "/list?sort=name#row-7", "List");
  await go("replaceState", "/list?sort=size", "List");
  await go("pushState", "/items/1", "Item 1");
  await seen(3);
  await ada.page.evaluate(() => history.back());
  const views = await seen(4);
  assert.deepEqual(
    views.map(({ path, title, referrer_host }) => [path, title, referrer_host]),
    [
      ["/", "Start", "weblog.example"],
      ["/list", "List", ""],
      ["/items/1", "Item 1", ""],
      // The app restores its titles.
      ["/list", "Item 1", ""],
    ],
  );
  const left = await site.named("engagement", 3);
  assert.deepEqual(left.map(({ path }) => path), ["/", "/list", "/items/1"]);
  await ada.close();
  app.stop();
});

test("with hash routing, views are counted per hash", async () => {
  const site = await Site.make(system);
  const link = '<a href="#/users/1?tab=2">User</a>';
  const app = await serve({ "/app": page(site, { attributes: " data-hash", body: link }), "/plain": page(site, { body: link }) });
  const ada = await tab();
  await ada.page.goto(`${app.address}/app`);
  await site.named("page_view", 1);
  await ada.page.getByRole("link").click();
  await site.named("page_view", 2);
  await ada.page.evaluate(() => history.back());
  const views = await site.named("page_view", 3);
  assert.deepEqual(views.map(({ path }) => path), ["/app", "/app#/users/1", "/app"]);
  await ada.page.goto(`${app.address}/plain`);
  await ada.page.getByRole("link").click();
  await ada.page.waitForURL("**/plain#**");
  await ada.page.evaluate(() => wr("last"));
  await site.named("last", 1);
  assert.equal((await site.named("page_view", 4)).at(-1).path, "/plain");
  await ada.close();
  app.stop();
});

/** Reports to the page's host that the tracker has run, and whether the page was visible. */
const READY = `<script>
  document.addEventListener("DOMContentLoaded", () => fetch("/ready" + location.pathname + "/" + document.visibilityState));
</script>`;

test("a background tab becomes a view when it is shown", async () => {
  const site = await Site.make(system);
  const pages = await serve({ "/front": page(site), "/back": page(site, { body: READY }) });
  const people = await undriven();
  await people.open(`${pages.address}/front`);
  await site.named("page_view", 1);
  const back = await people.open(`${pages.address}/back`, { background: true });
  await until("the tab to be there", () => pages.requested.includes("/ready/back/hidden"));
  const shownAt = Date.now();
  await back.show();
  const views = await site.named("page_view", 2);
  assert.deepEqual(views.map(({ path }) => path), ["/front", "/back"]);
  assert.ok(views[1].at >= shownAt, `${views[1].at - shownAt} ms`);
  assert.equal((await site.named("engagement", 1))[0].path, "/front", "the hidden page must send its engagement");
  await people.close();
  pages.stop();
});

test("events of a page that is not visible yet follow its view", async () => {
  const site = await Site.make(system);
  const early = `<script>
    window.wr = window.wr || function () { (wr.q = wr.q || []).push(arguments) };
    wr("queued");
    addEventListener("load", () => wr("loaded"));
  </script>`;
  const pages = await serve({ "/front": page(site), "/back": page(site, { head: early, body: READY }) });
  const people = await undriven();
  await people.open(`${pages.address}/front`);
  await site.named("page_view", 1);
  const back = await people.open(`${pages.address}/back`, { background: true });
  await until("the tab to be there", () => pages.requested.includes("/ready/back/hidden"));
  await back.show();
  const [queued] = await site.named("queued", 1);
  const [loaded] = await site.named("loaded", 1);
  const view = (await site.named("page_view", 2)).find(({ path }) => path === "/back");
  assert.ok(view.at < queued.at && queued.at < loaded.at, JSON.stringify([view, queued, loaded]));
  await people.close();
  pages.stop();
});

test("events of a page that is left before it was visible are sent without a view", async () => {
  const site = await Site.make(system);
  const head = `<script>
    window.wr = window.wr || function () { (wr.q = wr.q || []).push(arguments) };
    wr("queued");
    addEventListener("load", async () => (await fetch("/gate"), (location.href = "about:blank")));
  </script>`;
  const pages = await serve({ "/front": page(site), "/gate": "go", "/back": page(site, { head }) });
  const people = await undriven();
  await people.open(`${pages.address}/front`);
  await site.named("page_view", 1);
  await people.open(`${pages.address}/back`, { background: true });
  assert.equal((await site.named("queued", 1))[0].path, "/back");
  assert.deepEqual((await site.named("page_view", 1)).map(({ path }) => path), ["/front"]);
  await people.close();
  pages.stop();
});

test("a prerendered page is a view only when it is shown", async () => {
  const site = await Site.make(system);
  const rules = { prerender: [{ urls: ["/shown", "/never"], eagerness: "immediate" }] };
  const body = `<script>
    let prepared;
    setInterval(async () => {
      const gate = await (await fetch("/gate")).text();
      if (gate === "prepare" && !prepared) {
        prepared = document.head.appendChild(Object.assign(document.createElement("script"), { type: "speculationrules" }));
        prepared.textContent = ${JSON.stringify(JSON.stringify(rules))};
      }
      if (gate === "go") location.href = "/shown";
    }, 50);
  </script>`;
  const content = { "/": page(site, { body }), "/gate": "wait" };
  const event = "<script>addEventListener('DOMContentLoaded', () => wr('prepared'))</script>";
  for (const path of ["/shown", "/never"]) content[path] = page(site, { body: event + READY });
  const pages = await serve(content);
  const people = await undriven();
  await people.open(`${pages.address}/`);
  await site.named("page_view", 1);
  content["/gate"] = "prepare";
  const both = () => ["/shown", "/never"].every((path) => pages.requested.includes(`/ready${path}/hidden`));
  await until("both to be prepared", both);
  const shownAt = Date.now();
  content["/gate"] = "go";
  const views = await site.named("page_view", 2);
  assert.deepEqual(views.map(({ path }) => path), ["/", "/shown"]);
  assert.deepEqual((await site.named("prepared", 1)).map(({ path }) => path), ["/shown"]);
  assert.ok(views[1].at >= shownAt, `${views[1].at - shownAt} ms`);
  await people.close();
  pages.stop();
});

test("a page restored from the back/forward cache is viewed again", async () => {
  const site = await Site.make(system);
  const pages = await serve({ "/one": page(site), "/two": page(site) });
  const ada = await tab();
  await ada.page.goto(`${pages.address}/one`);
  await site.named("page_view", 1);
  await ada.page.evaluate(() => (globalThis.kept = true));
  await ada.page.goto(`${pages.address}/two`);
  await site.named("page_view", 2);
  await ada.page.evaluate(() => history.back());
  const views = await site.named("page_view", 3);
  assert.deepEqual(views.map(({ path }) => path), ["/one", "/two", "/one"]);
  assert.equal(await ada.page.evaluate(() => globalThis.kept), true, "it was reloaded instead");
  await ada.close();
  pages.stop();
});

test("time counts while the page is visible and focused, and is sent in useful steps", async () => {
  const site = await Site.make(system);
  const pages = await serve({ "/": page(site, { body: '<div style="height: 5000px"></div><style>body { margin: 0 }</style>' }) });
  const ada = await tab({ viewport: { width: 1000, height: 1000 } });
  // Tens of minutes, so that delays of a busy machine do not matter.
  await ada.page.clock.install();
  const ten = 600_000;
  const pass = (times) => ada.page.clock.fastForward(times * ten);
  const scroll = (to) =>
    ada.page.evaluate((to) => new Promise((done) => (addEventListener("scroll", done, { once: true }), scrollTo(0, to))), to);
  const engagement = async (count) =>
    (await site.named("engagement", count)).map(({ engagement_ms, scroll_depth }) => [Math.round(engagement_ms / ten), scroll_depth]);
  await ada.page.goto(pages.address);
  const { leave, comeBack } = await otherTab(ada.context, ada.page);
  const glance = [0, 20];
  assert.deepEqual(await engagement(1), [glance], "another tab took the focus");
  await comeBack();
  await pass(2);
  await scroll(1500);
  await scroll(500);
  await leave();
  assert.deepEqual(await engagement(2), [glance, [2, 50]]);
  await pass(7);
  await comeBack();
  await leave();
  await comeBack();
  await pass(1);
  await leave();
  // Neither the time in the background nor the short focus between.
  assert.deepEqual(await engagement(3), [glance, [2, 50], [1, 50]]);
  await comeBack();
  await scroll(4000);
  await ada.page.goto("about:blank");
  assert.deepEqual(await engagement(4), [glance, [2, 50], [1, 50], [0, 100]]);
  await ada.close();
  pages.stop();
});

test("custom events arrive with their properties, including those queued before the tracker loaded", async () => {
  const site = await Site.make(system);
  const early = `<script>
    window.wr = window.wr || function () { (wr.q = wr.q || []).push(arguments) };
    wr("signup", { plan: "pro", users: 3, trial: true });
  </script>`;
  const pages = await serve({ "/": page(site, { head: early }) });
  const ada = await tab();
  await ada.page.goto(`${pages.address}/?token=s3cret`);
  await ada.page.evaluate(() => wr("play"));
  const [signup] = await site.named("signup", 1);
  assert.deepEqual([signup.path, signup.props], ["/", { plan: "pro", users: "3", trial: "true" }]);
  assert.deepEqual((await site.named("play", 1))[0].props, {});
  const [view] = await site.named("page_view", 1);
  assert.ok(view.at < signup.at, "the visit begins with its page view");
  const numbered = (await ada.sent()).slice(0, 2);
  assert.deepEqual(numbered.map(({ n, q }) => [n, q]), [["page_view", undefined], ["signup", 1]]);
  const [{ g }] = numbered;
  assert.ok(Number.isInteger(g) && numbered.every((event) => event.g === g), `${g}`);
  await ada.close();
  pages.stop();
});

test("events are numbered anew after a second and on the next page, also if timers stand still", async () => {
  const site = await Site.make(system);
  const pages = await serve({ "/": page(site), "/next": page(site) });
  const ada = await tab();
  await ada.page.clock.install();
  await ada.page.goto(pages.address);
  await ada.page.clock.pauseAt(Date.now() + 3_600_000);
  // Timers do not run; only the clock of the page goes on, as after a stay in the back/forward cache.
  await ada.page.evaluate(() => {
    wr("first");
    wr("second");
    const now = performance.now() + 1_000;
    performance.now = () => now;
    wr("third");
  });
  await ada.page.goto(`${pages.address}/next`);
  const sent = (await ada.sent()).filter(({ n }) => n !== "engagement");
  assert.deepEqual(
    sent.map(({ n, q }) => [n, q ?? 0]),
    [["page_view", 0], ["first", 0], ["second", 1], ["third", 0], ["page_view", 0]],
  );
  const [view, first, second, third, next] = sent.map(({ g }) => g);
  assert.equal(first, second);
  assert.equal(new Set([view, first, third, next]).size, 4);
  await ada.close();
  pages.stop();
});

test("outbound links and downloads are counted for every mouse button, and nothing else is", async () => {
  const site = await Site.make(system);
  const away = "http://elsewhere.localhost:9/a/b?secret=1#c";
  const body = `<a href="${away}"><b>Away</b></a> <a href="/report.PDF?v=2">Report</a> <a href="/x" download>Saved</a>
    <a href="/inside">Inside</a> <a href="mailto:a@example.com">Mail</a> <a>Nowhere</a> <svg><a href="${away}"><text y="20">Drawn</text></a></svg>
    <my-link></my-link>
    <script>
      customElements.define("my-link", class extends HTMLElement {
        connectedCallback() { this.attachShadow({ mode: "open" }).innerHTML = '<a href="${away}2"><i>Component</i></a>' }
      });
      for (const type of ["click", "auxclick"]) {
        document.addEventListener(type, (event) => (event.preventDefault(), event.stopPropagation()));
      }
    </script>`;
  const pages = await serve({ "/": page(site, { body }) });
  const ada = await tab();
  await ada.page.goto(pages.address);
  for (const name of ["Away", "Report", "Saved", "Inside", "Mail", "Nowhere", "Drawn", "Component"]) {
    await ada.page.getByText(name).click({ button: name === "Report" ? "middle" : "left" });
  }
  await ada.page.getByText("Away").click({ button: "right" });
  await ada.page.evaluate(() => wr("last"));
  await site.named("last", 1);
  const links = (await site.events()).filter(({ name }) => !["page_view", "last", "engagement"].includes(name));
  assert.deepEqual(
    links.map(({ name, props }) => [name, props.url]).sort(),
    [
      ["file_download", `${pages.address}/report.PDF`],
      ["file_download", `${pages.address}/x`],
      ["outbound_link", "http://elsewhere.localhost:9/a/b"],
      ["outbound_link", "http://elsewhere.localhost:9/a/b"],
    ],
  );
  await ada.close();
  pages.stop();
});

test("a missing page is counted as not_found, with the linking page", async () => {
  const body = (title) => `<head><title>${title}</title></head><body><a href="/nowhere?x=1">Broken</a>`;
  const site = await Site.make(system, { index: body("Home"), 404: body("Not here") });
  const ada = await tab();
  await ada.page.goto(`${site.url}?token=s3cret`);
  await ada.page.getByRole("link").click();
  await site.named("page_view", 2);
  const [missing] = await site.named("not_found", 1);
  assert.deepEqual([missing.path, missing.props], ["/nowhere", { from: site.url }]);
  // Pages that are served with 200 declare it themselves.
  const other = await Site.make(system);
  const pages = await serve({ "/": page(other), "/gone": page(other, { body: "<p data-not-found>Gone" }) });
  await ada.page.goto(pages.address);
  await ada.page.goto(`${pages.address}/gone`);
  await other.named("page_view", 2);
  assert.equal((await other.named("not_found", 1))[0].path, "/gone");
  await ada.close();
  pages.stop();
});

const SIGNALS = {
  "who sends Do Not Track": [() => Object.defineProperty(navigator, "doNotTrack", { value: "1" }), " data-ignore-dnt"],
  "with Global Privacy Control": [() => Object.defineProperty(navigator, "globalPrivacyControl", { value: true }), " data-ignore-dnt"],
  "that is automated": [() => Object.defineProperty(navigator, "webdriver", { value: true }), " data-robots"],
};
for (const [who, [script, unless]] of Object.entries(SIGNALS)) {
  test(`a visitor ${who} is not tracked, unless the tag overrides it`, async () => {
    const site = await Site.make(system);
    const pages = await serve({ "/": page(site), "/unless": page(site, { attributes: unless }) });
    const ada = await tab();
    await ada.context.addInitScript(script);
    await ada.page.goto(pages.address);
    await ada.page.evaluate(() => wr("signup"));
    assert.deepEqual(await ada.sent(), []);
    await ada.page.goto(`${pages.address}/unless`);
    assert.equal((await site.named("page_view", 1))[0].path, "/unless");
    assert.equal((await ada.sent()).length, 1);
    await ada.close();
    pages.stop();
  });
}

test("a visitor who opts out is not tracked until they opt in again", async () => {
  const site = await Site.make(system);
  const pages = await serve({ "/": page(site) });
  const ada = await tab();
  await ada.page.goto(pages.address);
  assert.equal((await ada.sent()).length, 1);
  await ada.page.evaluate(() => wr("opt_out"));
  await ada.page.reload();
  await ada.page.evaluate(() => wr("signup"));
  assert.equal((await ada.sent()).length, 1, "an opted-out visitor sent an event");
  await ada.page.evaluate(() => wr("opt_in"));
  await ada.page.reload();
  await site.named("page_view", 2);
  const { origins } = await ada.context.storageState();
  assert.deepEqual(origins, [], "the opt-out left data in storage");
  await ada.close();
  pages.stop();
});

test("visits on localhost are not counted, unless the tag enables it or the system itself is local", async () => {
  const site = await Site.make(system);
  const script = await (await fetch(`${system.base}/script.js`)).text();
  const far = (attributes) =>
    `<!doctype html><script defer src="http://count.example/script.js" data-site="${site.token}"${attributes}></script>`;
  const pages = await serve({ "/": far(""), "/local": far(" data-local"), "/all": page(site) });
  const ada = await tab();
  await ada.context.route("http://count.example/**", (route) =>
    route.fulfill(route.request().url().endsWith(".js") ? { body: script, contentType: "text/javascript" } : { status: 204 }),
  );
  const views = async () => (await ada.sent()).filter(({ n }) => n === "page_view").map(({ u }) => new URL(u).pathname);
  await ada.page.goto(pages.address);
  await ada.page.goto(`${pages.address.replace("127.0.0.1", "shop.localhost")}/`);
  assert.deepEqual(await ada.sent(), []);
  await ada.page.goto(`${pages.address}/local`);
  assert.deepEqual(await views(), ["/local"]);
  await ada.page.goto(`${pages.address}/all`);
  assert.deepEqual(await views(), ["/local", "/all"]);
  await ada.close();
  pages.stop();
});
