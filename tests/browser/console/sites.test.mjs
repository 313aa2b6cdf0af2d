// Sites in the console: a zip is uploaded, compared and published; pages are edited; domains say what their DNS needs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { strToU8, zipSync } from "fflate";
import { call } from "../browser_user.mjs";
import { start } from "../system.mjs";
import { HOSTILE, VIEWPORTS, checkScreens, makeKey, signedIn } from "./person.mjs";

let system;
before(async () => {
  system = await start("signin.local=true");
});
after(() => system?.stop());

/** A zip as an input takes it. */
function zip(files) {
  const texts = Object.entries(files).map(([name, text]) => [name, strToU8(text)]);
  return { name: "site.zip", mimeType: "application/zip", buffer: Buffer.from(zipSync(Object.fromEntries(texts))) };
}

/** The address of the first site. */
async function siteOf(key) {
  const { body } = await call(system.base, "GET", "/api/account/subdomain", { key });
  return `/console/sites/${body.id}`;
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`a zip is uploaded, compared, published and rolled back ${how} scripts`, async () => {
    const ada = await signedIn(system, `deploys-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    await ada.open("/console/sites");
    await ada.page.locator("tbody th a").click();
    await ada.page.getByLabel("What changes").fill("New programme");
    await ada.page.getByLabel("Zip of the site’s folder").setInputFiles(zip({ "index.html": "<h1>Hello</h1><img src=gone.png>" }));
    await ada.click("button", "Upload and compare");
    await ada.page.getByRole("heading", { level: 2, name: "What publishing would do" }).waitFor();
    await ada.seesText("gone.png");
    assert.equal((await call(system.base, "GET", "/api/pages", { key })).body.pages.length, 0, "nothing is published");
    await ada.page.getByRole("button", { name: "Publish", exact: true }).click();
    await ada.page.getByRole("heading", { level: 2, name: "Published" }).waitFor();
    const { pages } = (await call(system.base, "GET", "/api/pages", { key })).body;
    assert.deepEqual(pages.map((page) => page.slug), ["index"]);
    assert.ok((await (await fetch(pages[0].subdomainUrl)).text()).includes("Hello"), "visitors see it");
    await ada.click("button", "Roll back");
    await ada.seesText("The deploy is rolled back.");
    assert.deepEqual(ada.complaints, []);
  });

  test(`a page is written, edited and restored ${how} scripts`, async () => {
    const ada = await signedIn(system, `pages-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    await ada.open(`${await siteOf(key)}/pages`);
    await ada.click("link", "Write the first page");
    await ada.page.getByLabel("Slug").fill("index");
    await ada.page.getByLabel("Title").fill("Home");
    await ada.page.getByLabel("HTML", { exact: true }).fill("<h1>One</h1>\n<p>same</p>\n");
    await ada.click("button", "Make the page");
    await ada.seesHeading("Home Published");
    await ada.page.getByLabel("HTML", { exact: true }).fill("<h1>Two</h1>\n<p>same</p>\n");
    await ada.click("button", "Save");
    await ada.seesText("Saved.");
    await ada.click("link", "Compare version 1");
    await ada.seesHeading("Version 1");
    assert.ok((await ada.page.locator("del").innerText()).includes("<h1>One</h1>"));
    await ada.click("button", "Restore this version");
    await ada.seesText("The version is restored.");
    assert.equal(await ada.page.getByLabel("HTML", { exact: true }).inputValue(), "<h1>One</h1>\n<p>same</p>\n");
    const { body } = await call(system.base, "GET", "/api/pages", { key });
    const page = (await call(system.base, "GET", `/api/pages/${body.pages[0].id}`, { key })).body;
    assert.equal(page.html, "<h1>One</h1>\n<p>same</p>\n", "the line ends are those that were typed");
    assert.deepEqual(ada.complaints, []);
  });
}

test("a page that was changed meanwhile shows both texts", async () => {
  const ada = await signedIn(system, "stale@example.com");
  const key = await makeKey(ada);
  const made = await call(system.base, "POST", "/api/pages", { key, body: { slug: "a", title: "A", html: "<p>first" } });
  await ada.open(`${await siteOf(key)}/pages/${made.body.id}`);
  await call(system.base, "PUT", `/api/pages/${made.body.id}`, { key, body: { html: `<p>${HOSTILE}` } });
  await ada.page.getByLabel("HTML", { exact: true }).fill("<p>mine");
  await ada.click("button", "Save");
  await ada.page.getByRole("heading", { level: 2, name: "The page was changed meanwhile" }).waitFor();
  assert.ok((await ada.page.locator(".diff ins").innerText()).includes("<p>mine"));
  assert.ok((await ada.page.locator(".diff del").innerText()).includes("onerror"));
  assert.notEqual(await ada.page.title(), "owned");
  await ada.click("button", "Save");
  await ada.seesText("Saved.");
});

test("every screen of sites is accessible and fits, full, empty and refused", async () => {
  for (const options of VIEWPORTS) {
    const width = options.viewport.width;
    const ada = await signedIn(system, `sites-${width}@example.com`, { bypassCSP: true, ...options });
    const key = await makeKey(ada);
    const site = await siteOf(key);
    const lists = { sites: "/console/sites", deploys: site, pages: `${site}/pages`, domains: `${site}/domains`, new: `${site}/pages/new` };
    await checkScreens(ada, "empty", width, lists);
    const long = `${"a-long-word-".repeat(12)} ${HOSTILE}`;
    const body = { slug: "guests", title: long.slice(0, 200), html: `<p>${long}`, entryTemplate: "{{name}}" };
    const made = await call(system.base, "POST", "/api/pages", { key, body });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const page = `${site}/pages/${made.body.id}`;
    await call(system.base, "PUT", `/api/pages/${made.body.id}`, { key, body: { html: "<p>two\n".repeat(40) } });
    await call(system.base, "POST", `/api/pages/${made.body.id}/entries`, { key, body: { data: { name: long } } });
    await call(system.base, "POST", "/api/account/domains", { key, body: { domain: "www.society.example" } });
    const { versions } = (await call(system.base, "GET", `/api/pages/${made.body.id}/versions`, { key })).body;
    await ada.open(site);
    await ada.page.getByLabel("What changes").fill(HOSTILE);
    const files = { "index.html": "<img src=gone.png>", "a.html": "a", [`${"deep-".repeat(20)}.html`]: "b" };
    await ada.page.getByLabel("Zip of the site’s folder").setInputFiles(zip(files));
    await ada.click("button", "Upload and compare");
    await ada.page.getByRole("heading", { level: 2, name: "What publishing would do" }).waitFor();
    await ada.checkAccessibility(`console-plan-${width}`);
    await ada.page.getByRole("button", { name: "Publish", exact: true }).click();
    await ada.page.getByRole("heading", { level: 2, name: "Published" }).waitFor();
    await ada.checkAccessibility(`console-published-${width}`);
    const version = `${page}/versions/${versions[1].id}`;
    const { deploys } = (await call(system.base, "GET", "/api/deploy", { key })).body;
    await checkScreens(ada, "full", width, { ...lists, page, version, deploy: `${site}/deploys/${deploys[0].deployId}` });
    await checkScreens(ada, "refused", width, {
      site: `/console/sites/${made.body.id}`,
      page: `${site}/pages/${deploys[0].deployId}`,
      deploy: `${site}/deploys/${made.body.id}`,
      version: `${page}/versions/${made.body.id}`,
    });
    await ada.open(`${site}/domains`);
    await ada.page.getByLabel("Domain").fill("no domain");
    await ada.click("button", "Add it");
    await ada.page.getByRole("alert").waitFor();
    await ada.checkAccessibility(`console-domain-refused-${width}`);
  }
});
