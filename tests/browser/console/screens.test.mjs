// The console in Chromium: each screen with and without scripts, by keyboard, and with what strangers send.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BrowserUser, call } from "../browser_user.mjs";
import { start, until } from "../system.mjs";
import { HOSTILE, VIEWPORTS, checkScreens, fits, formWith, makeKey, signedIn } from "./person.mjs";

let system;
before(async () => {
  system = await start("signin.local=true");
});
after(() => system?.stop());

test("a visitor of the base host learns how to begin, and a signed-in person arrives at the overview", async () => {
  const visitor = await BrowserUser.start(system);
  await visitor.open("/");
  await visitor.seesHeading("Publish pages, collect answers, count visits, automate what follows.");
  await visitor.checkAccessibility("console-welcome");
  await fits(visitor, "welcome");
  const text = await (await fetch(system.base)).text();
  assert.ok(text.startsWith("Web Runtime\n") && text.includes("/api/trial"), text);
  await visitor.click("link", "Sign in");
  await visitor.seesHeading("Sign in");
  assert.ok(visitor.page.url().endsWith("returnTo=%2Fconsole"), visitor.page.url());
  await visitor.signInLocally("arrives@example.com");
  await visitor.open("/");
  await visitor.seesHeading("Overview");
  await visitor.seesText("Ways to begin");
});

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`a person reads, marks and searches submissions ${how} scripts`, async () => {
    const ada = await signedIn(system, `inbox-${how}@example.com`, { javaScriptEnabled });
    const form = await formWith(system, await makeKey(ada), ["Charles", HOSTILE, "Mary"]);
    await ada.open("/console/forms");
    await ada.page.getByRole("link", { name: "Contact", exact: true }).click();
    await ada.page.getByRole("link", { name: "Mary", exact: true }).click();
    await ada.page.getByRole("heading", { level: 2, name: "Mary" }).waitFor();
    await ada.seesText("Message of Mary");
    assert.ok(ada.page.url().includes("/submissions/"), "the address is that of the submission");
    if (javaScriptEnabled) {
      // By then the script of the page has run.
      await ada.page.waitForLoadState("domcontentloaded");
      await ada.page.keyboard.press("j");
      await ada.page.getByRole("heading", { level: 2, name: "report⟨U+202E⟩fdp.exe" }).waitFor();
      assert.notEqual(await ada.page.title(), "owned");
      await ada.page.goBack();
      await ada.page.getByRole("heading", { level: 2, name: "Mary" }).waitFor();
    }
    await ada.page.getByRole("region", { name: "Submission", exact: true }).getByRole("button", { name: "Archive" }).click();
    await ada.seesText("Archived.");
    await ada.click("link", "Archive");
    await ada.page.getByRole("link", { name: "Mary" }).waitFor();
    await ada.open(`/console/forms/${form}`);
    await ada.page.getByLabel("Search submissions").fill("Charles");
    await ada.click("button", "Search");
    await ada.page.getByRole("link", { name: "Charles" }).waitFor();
    assert.equal(await ada.page.locator(".item").count(), 1);
    await ada.page.locator(".item input").check();
    await ada.page.getByRole("region", { name: "Submissions" }).getByRole("button", { name: "Spam" }).click();
    await ada.seesText("Marked as spam.");
    assert.deepEqual(ada.complaints, []);
  });

  test(`a key is made, shown once, rotated and revoked ${how} scripts`, async () => {
    const ada = await signedIn(system, `keys-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    assert.equal((await call(system.base, "GET", "/api/account", { key })).status, 200);
    await ada.open("/console/keys");
    assert.ok(!(await ada.page.content()).includes(key));
    await ada.click("link", "Rotate story");
    await ada.click("button", "Rotate it");
    await ada.seesText("The new secret of story");
    const rotated = await ada.page.locator("#secret").innerText();
    assert.notEqual(rotated, key);
    await until("the old secret to stop", async () => (await call(system.base, "GET", "/api/account", { key })).status === 401);
    assert.equal((await call(system.base, "GET", "/api/account", { key: rotated })).status, 200);
    await ada.click("link", "I have copied it");
    assert.ok(!(await ada.page.content()).includes(rotated));
    await ada.click("link", "Revoke story");
    await ada.click("button", "Revoke it");
    await ada.seesText("The key is revoked.");
    await until("the key to stop", async () => (await call(system.base, "GET", "/api/account", { key: rotated })).status === 401);
    assert.deepEqual(ada.complaints, []);
  });
}

test("figures, chart and panels follow the filters, and the chart is read by keyboard", async () => {
  const ada = await signedIn(system, "analytics@example.com");
  const key = await makeKey(ada);
  const site = (await call(system.base, "POST", "/api/analytics/sites", { key, body: { name: "engine.example" } })).body.site;
  const headers = { "content-type": "application/json", "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0" };
  for (const path of ["/", "/programme", "/programme"]) {
    const body = JSON.stringify({ siteToken: site.siteToken, name: "page_view", url: `https://engine.example${path}` });
    await fetch(`${system.base}/api/collect`, { method: "POST", headers, body });
  }
  await until("the events to be counted", async () => {
    await ada.open(`/console/analytics/${site.id}`);
    const figures = await ada.page.locator(".stats").innerText();
    return /Visitors\s+1\b/.test(figures) && /Page views\s+3\b/.test(figures);
  });
  // The panels of that page may have been asked before the last event.
  await ada.open(`/console/analytics/${site.id}`);
  await ada.page.locator("[data-plot][tabindex]").focus();
  await ada.page.keyboard.press("End");
  await ada.page.getByRole("status").filter({ hasText: "1 visitor so far" }).waitFor({ state: "attached" });
  await ada.click("link", "/programme");
  await ada.seesText("Page is");
  await ada.page.getByRole("link", { name: "Remove the filter: Page" }).click();
  await ada.page.waitForURL((url) => !url.search.includes("filters"));
  // The script makes the chart focusable once it handles keys.
  await ada.page.locator("[data-plot][tabindex]").waitFor();
  await ada.page.keyboard.press("d");
  await ada.page.waitForURL(/period=today/);
  assert.deepEqual(ada.complaints, []);
});

test("every screen is accessible and fits, full and empty", async () => {
  for (const options of VIEWPORTS) {
    const width = options.viewport.width;
    const ada = await signedIn(system, `access-${width}@example.com`, options);
    const check = (state, paths) => checkScreens(ada, state, width, paths);
    const nouns = ["forms", "analytics", "webhooks", "keys"];
    const lists = Object.fromEntries([["overview", "/console"], ...nouns.map((noun) => [noun, `/console/${noun}`])]);
    await check("empty", lists);
    const key = await makeKey(ada);
    const form = await formWith(system, key, ["Charles", HOSTILE, "Mary"]);
    const { site } = (await call(system.base, "POST", "/api/analytics/sites", { key, body: { name: "engine.example" } })).body;
    const hook = await call(system.base, "POST", "/api/webhooks", { key, body: { url: "https://crm.example/hook" } });
    assert.equal(hook.status, 201, JSON.stringify(hook.body));
    const submissions = await call(system.base, "GET", `/api/forms/${form}/submissions`, { key });
    const inbox = `/console/forms/${form}`;
    await check("full", {
      ...lists,
      inbox,
      webhook: `/console/webhooks/${hook.body.id}`,
      submission: `${inbox}/submissions/${submissions.body.submissions[1].id}`,
      site: `/console/analytics/${site.id}`,
    });
    const { keys } = (await call(system.base, "GET", "/api/keys", { key })).body;
    await check("asked", { rotate: `/console/keys?rotate=${keys[0].id}`, revoke: `/console/keys?revoke=${keys[0].id}` });
    await check("refused", { submission: `${inbox}/submissions/${form}`, nothing: "/console/nothing" });
  }
});

test("a first visit and each page stay within their budgets", async () => {
  const ada = await signedIn(system, "weight@example.com");
  const session = await ada.context.newCDPSession(ada.page);
  await session.send("Network.enable");
  const bytes = { requests: 0, total: 0 };
  session.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes.requests += 1;
    bytes.total += encodedDataLength;
  });
  await ada.page.goto(`${system.base}/console`, { waitUntil: "networkidle" });
  const first = { ...bytes };
  assert.ok(first.requests <= 5 && first.total <= 25 * 1024, JSON.stringify(first));
  for (const path of ["/console/forms", "/console/keys", "/console/analytics"]) {
    Object.assign(bytes, { requests: 0, total: 0 });
    await ada.page.goto(`${system.base}${path}`, { waitUntil: "networkidle" });
    assert.ok(bytes.total <= 12 * 1024, `${path}: ${JSON.stringify(bytes)}`);
  }
});
