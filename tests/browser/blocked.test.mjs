// Ad blockers and the tracker: every request of a visit is checked against EasyPrivacy.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { FiltersEngine, Request } from "@ghostery/adblocker";
import { launch, start } from "./system.mjs";
import { LIKE_PEOPLE, Site, serve } from "./visits.mjs";

// The packaged list dates from 2019. Later rules that are close to our addresses, as of August 2026, are added here.
const list = createRequire(import.meta.url).resolve("ad-block/test/data/easyprivacy.txt");
const SINCE = ["/api/collect|$ping,xmlhttprequest", "/_vercel/insights/script.js", "/_sess/script.js", "$ping,third-party"];

let system, browser, blocker;
before(async () => {
  system = await start("collector.events_per_minute=100000");
  browser = await launch(LIKE_PEOPLE);
  blocker = FiltersEngine.parse([await readFile(list, "utf8"), ...SINCE].join("\n"));
});
after(async () => {
  await browser?.close();
  await system?.stop();
});

/** The blocked ones of these requests. Local addresses become public ones, because lists exempt local addresses. */
function blocked(requests) {
  const real = (url) => {
    const { hostname, pathname, search } = new URL(url);
    const host = hostname === "localhost" ? "counts.example" : hostname === "127.0.0.1" ? "shop.test" : "otter.pages.example";
    return `https://${host}${pathname}${search}`;
  };
  const types = { document: "main_frame", fetch: "xmlhttprequest" };
  const of = ({ type, url, from }) => Request.fromRawDetails({ type: types[type] ?? type, url: real(url), sourceUrl: real(from) });
  return requests.filter((request) => blocker.match(of(request)).match).map(({ type, url }) => `${type} ${new URL(url).pathname}`);
}

/** All requests of a browser that opens and leaves a page. */
async function visit(address, site) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const requests = [];
  context.on("request", (request) => requests.push({ type: request.resourceType(), url: request.url(), from: request.frame().url() }));
  await page.goto(address);
  await site.named("page_view", 1);
  await page.evaluate(() => wr("signup"));
  await site.named("signup", 1);
  await context.close();
  return requests.filter(({ from }) => from.startsWith("http"));
}

test("the blocker blocks known trackers and the documented collect URL", () => {
  const from = "http://127.0.0.1/";
  const others = ["https://www.google-analytics.com/collect", "https://stats.g.doubleclick.net/dc.js"];
  for (const url of others) {
    assert.ok(blocker.match(Request.fromRawDetails({ type: "script", url, sourceUrl: "https://shop.test/" })).match, url);
  }
  const documented = { type: "fetch", url: "http://localhost/api/collect", from };
  const beacon = { type: "ping", url: "http://localhost/_wr/collect", from };
  assert.deepEqual(blocked([documented, beacon]), ["fetch /api/collect", "ping /_wr/collect"]);
});

test("no tracker request of a hosted site is blocked", async () => {
  const site = await Site.make(system, { index: "<head><title>Home</title></head><body>Hello" });
  const requests = await visit(site.url, site);
  const paths = new Set(requests.map(({ url }) => new URL(url).pathname));
  assert.ok(paths.has("/_wr/script.js") && paths.has("/_wr/collect"), [...paths].join());
  assert.deepEqual(blocked(requests), []);
});

test("no tracker request of a third-party page is blocked by generic rules", async () => {
  const site = await Site.make(system);
  const pages = await serve({ "/": `<!doctype html><title>Shop</title>${site.tag()}` });
  const requests = await visit(pages.address, site);
  const paths = new Set(requests.map(({ url }) => new URL(url).pathname));
  assert.ok(paths.has("/script.js") && paths.has("/_wr/collect"), [...paths].join());
  assert.deepEqual(blocked(requests), []);
  pages.stop();
});
