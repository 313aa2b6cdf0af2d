// Real sites: five builds from npm, zipped unchanged, deployed, and every page opened.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { zipSync } from "fflate";
import { BrowserUser, call } from "./browser_user.mjs";
import { start } from "./system.mjs";

const packages = dirname(createRequire(import.meta.url).resolve("axe-core/package.json")) + "/..";

/** Each with its folder, its number of pages, text of its first page, and its HTML that is too large for a page. */
const SITES = [
  { name: "html5-boilerplate", folder: "dist", pages: 2, shows: "This is HTML5 Boilerplate" },
  { name: "startbootstrap-clean-blog", folder: ".", pages: 4, shows: "Clean Blog" },
  { name: "startbootstrap-agency", folder: "dist", pages: 1, shows: "It's Nice To Meet You" },
  {
    name: "gentelella",
    folder: "dist",
    pages: 59,
    shows: "Dashboard",
    withoutPage: ["stats.html"],
  },
  { name: "reveal.js", folder: ".", pages: 2, shows: "Slide 1" },
];

let system;
before(async () => {
  system = await start();
});
after(() => system?.stop());

/** Every file of a folder by relative path. */
async function filesOf(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    await Promise.all(files.map(async (file) => [relative(folder, file), await readFile(file)])),
  );
}

async function deploy(key, zip) {
  const begun = await call(system.base, "POST", "/api/deploy", { key, body: { sizeBytes: zip.length } });
  assert.equal(begun.status, 201, JSON.stringify(begun.body));
  const { deployId, uploadUrl, uploadHeaders } = begun.body;
  const sent = await fetch(uploadUrl, { method: "PUT", headers: uploadHeaders, body: zip });
  assert.ok(sent.ok, `${sent.status} ${await sent.text()}`);
  const done = await call(system.base, "POST", `/api/deploy/${deployId}/process`, { key });
  assert.equal(done.status, 200, JSON.stringify(done.body));
  return done.body;
}

/** Opens a URL and returns the failed requests to this system and the text of the page. */
async function visit(person, address) {
  const failed = [];
  const ours = (url) => new URL(url).hostname.endsWith("localhost");
  const onResponse = (response) => {
    if (ours(response.url()) && response.status() >= 400) failed.push(`${response.status()} ${response.url()}`);
  };
  const onFailed = (request) => {
    if (ours(request.url())) failed.push(`${request.failure().errorText} ${request.url()}`);
  };
  person.page.on("response", onResponse);
  person.page.on("requestfailed", onFailed);
  await person.page.goto(address, { waitUntil: "networkidle" });
  person.page.off("response", onResponse);
  person.page.off("requestfailed", onFailed);
  const seen = await person.page.evaluate(() => ({
    text: document.body.innerText.trim(),
    elements: document.body.querySelectorAll("*").length,
    broken: [...document.images]
      .filter((image) => image.getAttribute("src") && new URL(image.src, location).hostname.endsWith("localhost"))
      .filter((image) => image.complete && image.naturalWidth === 0)
      .map((image) => image.src),
  }));
  return { failed, seen };
}

for (const { name, folder, pages, shows, withoutPage = [] } of SITES) {
  test(`${name} is deployed unchanged, and every page loads without a failed request`, async () => {
    const trial = (await call(system.base, "POST", "/api/trial")).body;
    const { key } = trial;
    // The larger sites exceed a trial's limits; locally an upgrade is instant.
    await call(system.base, "POST", "/api/account/upgrade", { key, body: { plan: "pro" } });
    const zip = zipSync(await filesOf(join(packages, name, folder)), { level: 1 });
    const site = await deploy(key, zip);
    assert.deepEqual(site.errors, []);
    const tooLarge = site.files.filter((file) => file.reason === "too_large").map((file) => file.path);
    assert.deepEqual(tooLarge, withoutPage);
    assert.equal(site.pages.length, pages, site.pages.map((page) => page.slug).join(" "));

    const visitor = await BrowserUser.start(system);
    // Requests to other hosts may fail without network access.
    await visitor.context.route(
      (url) => !url.hostname.endsWith("localhost"),
      (route) => route.abort(),
    );
    for (const page of site.pages) {
      const { failed, seen } = await visit(visitor, page.subdomainUrl);
      assert.deepEqual(failed, [], page.subdomainUrl);
      assert.deepEqual(seen.broken, [], page.subdomainUrl);
      assert.ok(seen.elements > 0, `${page.subdomainUrl} is empty`);
      if (page.slug === "index") {
        assert.ok(seen.text.toLowerCase().includes(shows.toLowerCase()), seen.text.slice(0, 300));
        await visitor.screenshot(`site-${name}`);
      }
    }
    await visitor.context.close();
  });
}
