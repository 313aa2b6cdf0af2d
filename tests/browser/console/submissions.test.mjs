// Submissions in the console: answers are edited, one is added by hand, and those of an address are deleted.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { call } from "../browser_user.mjs";
import { start } from "../system.mjs";
import { HOSTILE, VIEWPORTS, checkScreens, makeKey, signedIn } from "./person.mjs";

let system;
before(async () => {
  system = await start("signin.local=true", "upgrade.mode=instant");
});
after(() => system?.stop());

const FIELDS = [
  { type: "text", name: "name", label: "Name" },
  { type: "email", name: "email", label: "E-mail", required: true },
  { type: "textarea", name: "message", label: "Message" },
  { type: "number", name: "guests", label: "Guests", max: 9 },
  { type: "select", name: "menu", label: "Menu", options: ["Soup", "Pie"] },
  { type: "multiselect", name: "days", label: "Days", options: ["Friday", "Saturday"] },
  { type: "checkbox", name: "agreed", label: "Agreed" },
  { type: "date", name: "arrival", label: "Arrival" },
];

/** A form with questions of most types and one submission, of an account that may write submissions. */
async function dinner(key) {
  const upgraded = await call(system.base, "POST", "/api/account/upgrade", { key, body: { plan: "pro" } });
  assert.ok(upgraded.status < 300, JSON.stringify(upgraded.body));
  const made = await call(system.base, "POST", "/api/forms", { key, body: { name: "Dinner", fields: FIELDS } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const body = { name: HOSTILE, email: "mary@example.com", message: "one\ntwo", guests: 2, menu: "Soup", days: ["Friday"], arrival: "2026-11-28" };
  const sent = await call(system.base, "POST", `/api/forms/${made.body.formId}/submit`, { body });
  assert.equal(sent.status, 201, JSON.stringify(sent.body));
  return made.body.formId;
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`answers are edited, one is added and those of an address are deleted ${how} scripts`, async () => {
    const ada = await signedIn(system, `answers-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    const form = await dinner(key);
    const api = `/api/forms/${form}/submissions`;
    const list = async () => (await call(system.base, "GET", api, { key })).body.submissions;
    const [{ id }] = await list();
    await ada.open(`/console/forms/${form}/submissions/${id}/edit`);
    await ada.seesHeading("Edit the answers");
    assert.equal(await ada.page.getByLabel("Name", { exact: true }).inputValue(), HOSTILE);
    await ada.click("button", "Save");
    await ada.seesText("Nothing was changed.");
    await ada.open(`/console/forms/${form}/submissions/${id}/edit`);
    await ada.page.getByLabel("Guests").fill("12");
    await ada.page.getByLabel("E-mail").fill("");
    await ada.page.getByLabel("Saturday").check();
    await ada.page.getByRole("combobox", { name: "Menu" }).selectOption("Pie");
    await ada.page.getByLabel("Agreed").check();
    await ada.click("button", "Save");
    await ada.page.getByRole("alert").waitFor();
    assert.equal(await ada.page.getByLabel("Guests").inputValue(), "12", "the form keeps its values");
    assert.ok(await ada.page.getByLabel("Saturday").isChecked());
    await ada.page.getByLabel("Guests").fill("3");
    await ada.page.getByLabel("E-mail").fill("mary@example.com");
    await ada.click("button", "Save");
    await ada.seesText("The answers are changed.");
    assert.notEqual(await ada.page.title(), "owned");
    const { payload } = (await call(system.base, "GET", `${api}/${id}`, { key })).body.data;
    const expected = { name: HOSTILE, email: "mary@example.com", message: "one\ntwo", guests: 3, menu: "Pie", days: ["Friday", "Saturday"], agreed: true, arrival: "2026-11-28" };
    assert.deepEqual(payload, expected);
    // Another person changes two answers while the page is open. One of them is changed here, too.
    await ada.open(`/console/forms/${form}/submissions/${id}/edit`);
    const theirs = { payload: { guests: 5, menu: "Soup" } };
    assert.equal((await call(system.base, "PATCH", `${api}/${id}`, { key, body: theirs })).status, 200);
    await ada.page.getByLabel("Guests").fill("4");
    await ada.click("button", "Save");
    const alert = ada.page.getByRole("alert");
    await alert.getByRole("link", { name: "Guests: another person changed this answer to “5”" }).waitFor();
    assert.doesNotMatch(await alert.innerText(), /Request/, "the API was not called");
    assert.equal(await ada.page.getByLabel("Guests").inputValue(), "4");
    await ada.click("button", "Save");
    await ada.seesText("The answers are changed.");
    const merged = (await call(system.base, "GET", `${api}/${id}`, { key })).body.data.payload;
    assert.deepEqual(merged, { ...expected, guests: 4, menu: "Soup" });
    await ada.open(`/console/forms/${form}`);
    await ada.click("link", "Add one");
    await ada.page.getByLabel("Name", { exact: true }).fill("Charles");
    await ada.page.getByLabel("E-mail").fill("charles@example.com");
    await ada.click("button", "Add it");
    await ada.seesText("The submission is added");
    assert.equal((await list()).length, 2);
    // The address is filled in, but the URL does not hold it: browsers and proxies keep URLs.
    await ada.open(`/console/forms/${form}/submissions/${id}`);
    await ada.page.getByRole("button", { name: "More", exact: true }).click();
    await ada.click("link", "Delete all of this address");
    assert.doesNotMatch(decodeURIComponent(ada.page.url()), /mary/);
    assert.equal(await ada.page.getByLabel("E-mail address").inputValue(), "mary@example.com");
    await ada.open(`/console/forms/${form}/details`);
    await ada.click("link", "Delete a person’s submissions");
    await ada.page.getByLabel("E-mail address").fill("MARY@example.com");
    await ada.page.getByLabel(/^Delete them all/).check();
    await ada.click("button", "Delete");
    await ada.seesText("All submissions of that address are deleted.");
    assert.deepEqual((await list()).map((one) => one.payload.name), ["Charles"]);
    assert.deepEqual(ada.complaints.filter((text) => !/40[09]/.test(text)), []);
  });
}

test("the screens of editing and deleting are accessible and fit, full and refused", async () => {
  for (const options of VIEWPORTS) {
    const width = options.viewport.width;
    const ada = await signedIn(system, `answers-${width}@example.com`, options);
    const key = await makeKey(ada);
    const form = await dinner(key);
    const root = `/console/forms/${form}`;
    const { submissions } = (await call(system.base, "GET", `/api/forms/${form}/submissions`, { key })).body;
    const edit = `${root}/submissions/${submissions[0].id}/edit`;
    const erase = `${root}/erase?submission=${submissions[0].id}`;
    await checkScreens(ada, "full", width, { edit, erase, new: `${root}/submissions/new` });
    await checkScreens(ada, "refused", width, { edit: `${root}/submissions/${form}/edit`, erase: `/console/forms/${submissions[0].id}/erase` });
    await ada.open(edit);
    await ada.page.getByLabel("E-mail").fill("nothing");
    await ada.click("button", "Save");
    await ada.page.getByRole("alert").waitFor();
    await ada.checkAccessibility(`console-edit-refused-${width}`);
  }
});
