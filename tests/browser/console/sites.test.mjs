// Sites in the console: a zip is uploaded, compared and published; pages are edited; domains say what their DNS needs.
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { strToU8, zipSync } from "fflate";
import { call } from "../browser_user.mjs";
import { start } from "../system.mjs";
import { HOSTILE, VIEWPORTS, checkScreens, makeKey, signedIn, visit } from "./person.mjs";

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
    assert.ok((await visit(pages[0].subdomainUrl)).text.includes("Hello"), "visitors see it");
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

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`a folder is uploaded as it is ${how} scripts`, async () => {
    const ada = await signedIn(system, `folder-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    const root = await mkdtemp(join(tmpdir(), "story-"));
    const folder = join(root, "site");
    await mkdir(join(folder, "css"), { recursive: true });
    await writeFile(join(folder, "index.html"), "<link rel=stylesheet href=css/a.css><h1>From a folder</h1>");
    await writeFile(join(folder, "css", "a.css"), "h1 { color: rebeccapurple }");
    await ada.open(await siteOf(key));
    await ada.page.getByText("A folder, without zipping it").click();
    await ada.page.getByLabel("The site’s folder", { exact: true }).setInputFiles(folder);
    await ada.click("button", "Upload the folder and compare");
    await ada.page.getByRole("heading", { level: 2, name: "What publishing would do" }).waitFor();
    await ada.page.getByRole("button", { name: "Publish", exact: true }).click();
    await ada.page.getByRole("heading", { level: 2, name: "Published" }).waitFor();
    const { pages } = (await call(system.base, "GET", "/api/pages", { key })).body;
    const html = (await visit(pages[0].subdomainUrl)).text;
    assert.ok(html.includes("From a folder"));
    const style = new URL(html.match(/href="?([^" >]*\.css)/)[1], pages[0].subdomainUrl);
    assert.equal((await visit(style)).text, "h1 { color: rebeccapurple }");
    assert.deepEqual(ada.complaints, []);
    await rm(root, { recursive: true });
  });

  test(`an asset is stored, shown and deleted ${how} scripts`, async () => {
    const ada = await signedIn(system, `assets-${how}@example.com`, { javaScriptEnabled });
    await ada.open("/console/assets");
    const buffer = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=", "base64");
    await ada.page.getByLabel("File", { exact: true }).setInputFiles({ name: "dot.png", mimeType: "image/png", buffer });
    await ada.click("button", "Store it");
    await ada.seesText("Stored. Its address is below.");
    const address = await ada.page.getByRole("link", { name: "dot.png", exact: true }).getAttribute("href");
    const stored = await visit(address);
    assert.deepEqual([stored.status, stored.type], [200, "image/png"]);
    assert.deepEqual(stored.body, buffer);
    // A file that is not what its name says is refused, and nothing of it is left in the way.
    await ada.page.getByLabel("File", { exact: true }).setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: Buffer.from("<script>1</script>") });
    await ada.click("button", "Store it");
    await ada.page.getByRole("alert").waitFor();
    await ada.open("/console/assets");
    await ada.page.getByRole("listitem").filter({ has: ada.page.getByRole("link", { name: "dot.png", exact: true }) }).getByRole("link", { name: "Delete dot.png" }).click();
    await ada.click("button", "Delete it");
    await ada.seesText("Deleted.");
    assert.equal((await visit(address)).status, 404);
    // What the refused upload would have stored is answered with 400, which the browser logs.
    assert.ok(ada.complaints.every((complaint) => complaint.includes("400")), ada.complaints.join());
  });

  test(`a site is renamed, and a domain redirects ${how} scripts`, async () => {
    const ada = await signedIn(system, `rename-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    const site = await siteOf(key);
    await ada.open("/console/sites");
    await ada.page.locator("summary", { hasText: "Rename" }).click();
    await ada.page.getByLabel("New name").fill(`renamed-${how}`);
    await ada.click("button", "Rename the site");
    await ada.seesText("Renamed.");
    assert.equal((await call(system.base, "GET", "/api/account/subdomain", { key })).body.subdomain, `renamed-${how}`);
    assert.equal((await call(system.base, "POST", "/api/account/upgrade", { key, body: { plan: "pro" } })).status, 200);
    for (const name of ["www", "bare"]) {
      const body = { domain: `${name}.${how}.example` };
      const { status, body: answer } = await call(system.base, "POST", "/api/account/domains", { key, body });
      assert.equal(status, 201, JSON.stringify(answer));
    }
    await ada.open(`${site}/domains`);
    const card = ada.page.locator("section", { has: ada.page.getByRole("heading", { name: `bare.${how}.example` }) });
    await card.locator("summary", { hasText: "Settings" }).click();
    await card.getByLabel("Redirects to").selectOption({ label: `www.${how}.example` });
    await card.getByLabel("Browsers insist on https").fill("30");
    await card.getByRole("button", { name: "Save the settings" }).click();
    await ada.seesText("Saved. Visitors get it");
    const { domains } = (await call(system.base, "GET", "/api/account/domains", { key })).body;
    const [www, bare] = ["www", "bare"].map((name) => domains.find(({ domain }) => domain.startsWith(name)));
    assert.equal(bare.redirectTo, www.id);
    assert.deepEqual(bare.hsts, { maxAge: 30 * 86_400, includeSubDomains: false });
    assert.deepEqual(ada.complaints, []);
  });

  test(`an entry is added by hand ${how} scripts`, async () => {
    const ada = await signedIn(system, `entry-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    const html = "<!-- service:entries -->";
    const entryTemplate = '<p><a href="{{link}}">{{name}}</a></p>';
    const made = await call(system.base, "POST", "/api/pages", { key, body: { slug: "guests", title: "Guests", html, entryTemplate } });
    await ada.open(`${await siteOf(key)}/pages/${made.body.id}`);
    await ada.page.locator("summary", { hasText: "Add an entry" }).click();
    await ada.page.getByLabel("name", { exact: true }).fill(HOSTILE);
    await ada.page.getByLabel("link", { exact: true }).fill("https://mary.example/");
    await ada.click("button", "Add it");
    await ada.seesText("The entry is added.");
    const { entries } = (await call(system.base, "GET", `/api/pages/${made.body.id}/entries`, { key })).body;
    assert.deepEqual(entries[0].data, { name: HOSTILE, link: "https://mary.example/" });
    assert.deepEqual(ada.complaints, []);
  });
}

test("a page that was changed meanwhile shows both texts", async () => {
  const ada = await signedIn(system, "stale@example.com");
  const key = await makeKey(ada);
  const made = await call(system.base, "POST", "/api/pages", { key, body: { slug: "about", title: "A", html: "<p>first" } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
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
    const ada = await signedIn(system, `sites-${width}@example.com`, options);
    const key = await makeKey(ada);
    const site = await siteOf(key);
    const lists = { sites: "/console/sites", deploys: site, pages: `${site}/pages`, domains: `${site}/domains`, assets: "/console/assets", new: `${site}/pages/new` };
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
    await ada.page.getByLabel("Domain", { exact: true }).fill("no domain");
    await ada.click("button", "Add it");
    await ada.page.getByRole("alert").waitFor();
    await ada.checkAccessibility(`console-domain-refused-${width}`);
  }
});
