// Visits, funnels, retention and the account in Chromium: with and without scripts, full, empty and refused.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { call } from "../browser_user.mjs";
import { start, until } from "../system.mjs";
import { HOSTILE, VIEWPORTS, checkScreens, makeKey, signedIn } from "./person.mjs";

let system;
before(async () => {
  system = await start("signin.local=true", "upgrade.mode=instant");
});
after(() => system?.stop());

/** A site with the visits of one visitor: these paths in order. */
async function siteWith(key, paths) {
  const { site } = (await call(system.base, "POST", "/api/analytics/sites", { key, body: { name: "engine.example" } })).body;
  const headers = { "content-type": "application/json", "user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0" };
  for (const path of paths) {
    const body = JSON.stringify({ siteToken: site.siteToken, name: "page_view", url: `https://engine.example${path}` });
    await fetch(`${system.base}/api/collect`, { method: "POST", headers, body });
  }
  const query = `/api/analytics/query?siteId=${site.id}&metric=page_views`;
  await until("the events to be counted", async () => (await call(system.base, "GET", query, { key })).body.total === paths.length);
  return `/console/analytics/${site.id}`;
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`a person reads visits, asks for a funnel and sees who returned ${how} scripts`, async () => {
    const ada = await signedIn(system, `visits-${how}@example.com`, { javaScriptEnabled });
    const root = await siteWith(await makeKey(ada), ["/", "/pricing", "/done"]);
    await ada.open(root);
    await ada.page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Visits" }).click();
    await ada.seesHeading("Visits");
    await ada.page.getByText("/ → /done").click();
    await ada.page.getByRole("listitem").filter({ hasText: /^\/pricing/ }).waitFor();
    await ada.page.locator("[name=minPages]").selectOption("5");
    await ada.click("button", "Show");
    await ada.seesText("No visit in these days");
    await ada.click("link", "Funnels");
    await ada.seesText("Your most visited pages");
    await ada.page.getByLabel("Step 1", { exact: true }).fill("/");
    await ada.page.getByLabel("Step 2", { exact: true }).fill("/nowhere");
    await ada.page.getByLabel("Step 3", { exact: true }).fill("");
    await ada.click("button", "Show the funnel");
    await ada.seesText("0 of 1 visits went all the way: 0 %.");
    assert.ok(ada.page.url().includes("nowhere"), "the address is that of the funnel");
    await ada.page.getByRole("link", { name: /^1 left before step 2/ }).click();
    await ada.seesText("1 visit did the step before and not this one. All of them viewed a further page.");
    await ada.page.getByRole("row", { name: /^\/pricing 1 100 %/ }).waitFor();
    await ada.click("link", "Retention");
    await ada.page.getByRole("link", { name: "Days", exact: true }).click();
    await ada.page.getByRole("cell", { name: "100 % so far" }).first().waitFor();
    assert.deepEqual(ada.complaints, []);
  });

  test(`a person makes an analytics site, changes its settings and deletes it ${how} scripts`, async () => {
    const ada = await signedIn(system, `counted-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    await ada.open("/console/analytics");
    await ada.page.getByLabel("Name", { exact: true }).fill(HOSTILE);
    await ada.page.getByLabel("Domain").fill("no domain");
    await ada.click("button", "Count it");
    await ada.page.getByRole("alert").waitFor();
    assert.equal(await ada.page.getByLabel("Name", { exact: true }).inputValue(), HOSTILE);
    await ada.page.getByLabel("Domain").fill("www.engine.example");
    await ada.click("button", "Count it");
    await ada.seesText("The site is made.");
    assert.notEqual(await ada.page.title(), "owned");
    const { sites } = (await call(system.base, "GET", "/api/analytics/sites", { key })).body;
    assert.deepEqual(sites.map((site) => [site.name, site.domain]), [[HOSTILE, "www.engine.example"]]);
    assert.ok((await ada.page.locator("#tag").innerText()).includes(sites[0].siteToken));
    await ada.page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Settings" }).click();
    await ada.seesHeading("Settings");
    await ada.page.getByLabel("Name", { exact: true }).fill("Engine");
    await ada.page.getByLabel("Time zone").fill("Nowhere");
    await ada.page.getByLabel(/^Addresses that differ/).check();
    await ada.click("button", "Save");
    await ada.page.getByRole("alert").waitFor();
    assert.ok(await ada.page.getByLabel(/^Addresses that differ/).isChecked(), "the form keeps its values");
    await ada.page.getByLabel("Time zone").fill("Europe/Berlin");
    await ada.page.getByLabel(/^Don’t count visitors/).uncheck();
    await ada.page.locator("[name=visitorIdLifetime]").selectOption("week");
    await ada.click("button", "Save");
    await ada.seesText("Saved.");
    const { name, timezone, honourDnt, hashRouting, visitorIdLifetime } = (await call(system.base, "GET", `/api/analytics/sites/${sites[0].id}`, { key })).body;
    assert.deepEqual([name, timezone, honourDnt, hashRouting, visitorIdLifetime], ["Engine", "Europe/Berlin", false, true, "week"]);
    assert.ok((await ada.page.locator("#tag").innerText()).includes("data-hash"));
    await ada.click("link", "Delete the site");
    await ada.seesText("All that was counted is lost");
    await ada.click("button", "Delete the site");
    await ada.seesText("The site is deleted");
    assert.deepEqual((await call(system.base, "GET", "/api/analytics/sites", { key })).body.sites, []);
    assert.deepEqual(ada.complaints.filter((text) => !text.includes("400")), []);
  });

  test(`a person changes the settings, ends a session and reads what was changed ${how} scripts`, async () => {
    const email = `account-${how}@example.com`;
    const ada = await signedIn(system, email, { javaScriptEnabled });
    const phone = await signedIn(system, email, { javaScriptEnabled });
    await ada.open("/console/account");
    await ada.page.getByLabel("Name", { exact: true }).fill(HOSTILE);
    await ada.page.getByLabel("Time zone").fill("Nowhere");
    await ada.click("button", "Save");
    await ada.page.getByRole("alert").waitFor();
    assert.equal(await ada.page.getByLabel("Name", { exact: true }).inputValue(), HOSTILE);
    await ada.page.getByLabel("Time zone").fill("Europe/Berlin");
    await ada.click("button", "Save");
    await ada.seesText("Saved.");
    assert.notEqual(await ada.page.title(), "owned");
    await ada.click("button", "End all others");
    await ada.seesText("All other sessions are ended.");
    await until("the other session to end", async () => {
      await phone.open("/console/account");
      return phone.page.url().includes("/login");
    });
    await ada.click("link", "Activity");
    await ada.seesText("Update the account's settings");
    await ada.page.locator("[name=actorType]").selectOption("operator");
    await ada.click("button", "Show");
    await ada.seesText("No such change");
    assert.deepEqual(ada.complaints.filter((text) => !text.includes("400")), []);
  });
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`a person asks the operator for help ${how} scripts`, async () => {
    const ada = await signedIn(system, `help-${how}@example.com`, { javaScriptEnabled });
    await ada.open("/console/account");
    await ada.click("link", "Help");
    await ada.seesHeading("Help");
    await ada.page.getByLabel("About").selectOption("Bug report");
    await ada.page.getByLabel("Subject").fill(HOSTILE);
    await ada.click("button", "Send");
    await ada.page.getByRole("alert").waitFor();
    assert.equal(await ada.page.getByLabel("Subject").inputValue(), HOSTILE);
    assert.equal(await ada.page.getByLabel("About").inputValue(), "Bug report");
    await ada.page.getByLabel("Message").fill("The engine stopped.");
    await ada.page.getByLabel("How severe").selectOption("High");
    await ada.click("button", "Send");
    await ada.seesText("The operator has your request");
    assert.match(await ada.page.locator("#reference").innerText(), /^[0-9a-f-]{36}$/);
    assert.notEqual(await ada.page.title(), "owned");
    assert.deepEqual(ada.complaints.filter((text) => !text.includes("400")), []);
  });
}

test("the screens of a site and of the account are accessible and fit, full, empty and refused", async () => {
  for (const options of VIEWPORTS) {
    const width = options.viewport.width;
    const ada = await signedIn(system, `insights-${width}@example.com`, options);
    const account = { account: "/console/account", activity: "/console/account/activity", help: "/console/help" };
    await checkScreens(ada, "empty", width, account);
    const key = await makeKey(ada);
    const views = (root) => Object.fromEntries(["visits", "funnels", "retention", "settings"].map((view) => [view, `${root}/${view}`]));
    await checkScreens(ada, "empty", width, views(await siteWith(key, [])));
    const root = await siteWith(key, ["/", `/${"long-".repeat(30)}`, "/done"]);
    // In the activity, the link to a thing with a short name stands below that to its operation.
    assert.equal((await call(system.base, "POST", "/api/folders", { key, body: { name: "Client" } })).status, 201);
    const asked = {
      plan: "/console/account?plan=scale",
      deletion: `${root}/settings?delete=true`,
      dropOff: `${root}/funnels?steps[0].value=/&steps[1].value=/nowhere&dropOff=2`,
    };
    await checkScreens(ada, "full", width, { ...account, figures: root, ...views(root), sites: "/console/analytics?all=true", ...asked });
    await checkScreens(ada, "refused", width, {
      visits: `${root}/visits?period=custom&from=2026-01-01&to=2026-03-01`,
      funnels: `${root}/funnels?steps[0].value=/`,
      retention: `${root}/retention?firstEvent=engagement`,
      activity: "/console/account/activity?actorType=robot",
      settings: "/console/analytics/00000000-0000-7000-8000-000000000000/settings",
    });
  }
});
