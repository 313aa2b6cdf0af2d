// The form builder in Chromium, with and without scripts: presets, questions, preview, saving, sharing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { call } from "../browser_user.mjs";
import { start } from "../system.mjs";
import { HOSTILE, VIEWPORTS, checkScreens, formWith, makeKey, signedIn } from "./person.mjs";

let system;
before(async () => {
  system = await start("signin.local=true");
});
after(() => system?.stop());

const preview = (person) => person.page.frameLocator("iframe[name=preview]");
const question = (person, number) => person.page.getByRole("group", { name: `Question ${number}`, exact: true });

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`a person builds a form from a preset, sees it before it is saved, and shares it ${how} scripts`, async () => {
    const ada = await signedIn(system, `builder-${how}@example.com`, { javaScriptEnabled });
    await ada.open("/console/forms");
    await ada.click("link", "New form");
    await ada.seesHeading("New form");
    await ada.click("link", "Contact");
    await ada.page.getByLabel("Name of the form").fill("Ask us");
    await question(ada, 1).getByLabel("Label").fill(`Your name ${HOSTILE}`);
    if (!javaScriptEnabled) await ada.click("button", "Show");
    await preview(ada).getByRole("heading", { name: "Ask us" }).waitFor();
    await preview(ada).getByText("Your name <img").waitFor();
    assert.notEqual(await ada.page.title(), "owned");
    // Nothing can be sent from the preview.
    await preview(ada).getByRole("button").click();
    await preview(ada).getByRole("heading", { name: "Ask us" }).waitFor();

    await ada.page.getByLabel("Type of the new question").selectOption("select");
    await ada.click("button", "Add a question");
    const added = question(ada, 4);
    await ada.page.locator("[name=\"fields[3].label\"]:focus").waitFor();
    assert.equal(await added.getByLabel("Options, one a line").isVisible(), true);
    assert.equal(await question(ada, 1).getByLabel("Options, one a line").isVisible(), false, "a text has no options");
    await added.getByLabel("Label").fill("Plan");
    await added.getByLabel("Options, one a line").fill("Basic\nLarge");
    if (javaScriptEnabled) {
      // By then the script of the page has run.
      await ada.page.waitForLoadState("domcontentloaded");
      await added.getByLabel("Label").press("Alt+ArrowUp");
    } else {
      await ada.click("button", "Move question 4 up");
    }
    await ada.page.locator("[name=\"fields[2].label\"]:focus").waitFor();
    await ada.click("button", "Make the form");
    await ada.seesText("The form is made.");
    await ada.seesHeading("Ask us");
    const id = ada.page.url().split("/").at(-2);
    await ada.click("link", "Open the form");
    await ada.page.getByLabel("Plan").selectOption("Large");
    await ada.page.goBack();

    await ada.click("link", "Questions and settings");
    await ada.page.getByLabel("Name of the form").fill("");
    await ada.click("button", "Save");
    await ada.page.getByRole("alert").getByRole("link", { name: "The name must not be empty" }).click();
    await ada.page.locator("[name=name]:focus").waitFor();
    await ada.page.getByLabel("Name of the form").fill("Ask us again");
    await ada.click("button", "Save");
    await ada.seesText("Saved.");
    await ada.click("link", "Share and results");
    await ada.click("button", "Close it now");
    await ada.seesText("The form is closed.");
    await ada.click("link", "Delete the form");
    await ada.click("button", "Delete the form");
    await ada.seesText("The form is deleted");
    assert.equal((await fetch(`${system.base}/f/${id}`)).status, 404);
    // The address of a closed or deleted form answers so, which a browser notes.
    // The refused form is one of them.
    assert.deepEqual(ada.complaints.filter((text) => !text.includes("status of 400")), []);
  });
}

test("the preview follows the form without growing the history", async () => {
  const ada = await signedIn(system, "preview@example.com");
  await ada.open("/console/forms/new?preset=empty");
  // A form without a name is not shown.
  await preview(ada).getByText("name must not be empty").waitFor();
  await ada.page.getByLabel("Name of the form").fill("Survey");
  await preview(ada).getByText("Question 1").waitFor();
  const before = await ada.page.evaluate(() => history.length);
  for (const label of ["First", "Second"]) {
    await question(ada, 1).getByLabel("Label").fill(label);
    await preview(ada).getByText(label).waitFor();
  }
  await question(ada, 1).getByLabel("Label").fill("");
  await preview(ada).getByText("must not be empty").waitFor();
  assert.equal(await ada.page.evaluate(() => history.length), before);
  assert.equal(await ada.page.locator("iframe").count(), 1);
});

test("a stale form is shown beside the saved one, and replaced only when asked", async () => {
  const ada = await signedIn(system, "stale@example.com");
  const key = await makeKey(ada);
  const form = await formWith(system, key, []);
  await ada.open(`/console/forms/${form}/edit`);
  assert.equal((await call(system.base, "PUT", `/api/forms/${form}`, { key, body: { name: "Theirs" } })).status, 200);
  await ada.page.getByLabel("Name of the form").fill("Mine");
  await ada.click("button", "Save");
  await ada.seesText("Another version was saved");
  assert.equal(await ada.page.getByLabel("Name of the form").inputValue(), "Mine");
  await ada.click("button", "Replace it with mine");
  await ada.seesText("Saved.");
  assert.equal((await call(system.base, "GET", `/api/forms/${form}`, { key })).body.name, "Mine");
});

test("what happened after a submission stands below it, and many are deleted at once", async () => {
  const ada = await signedIn(system, "then@example.com");
  const form = await formWith(system, await makeKey(ada), ["Charles", HOSTILE, "Mary"]);
  await ada.open(`/console/forms/${form}`);
  await ada.page.getByRole("link", { name: "Inbox 3" }).waitFor();
  await ada.page.getByRole("link", { name: "Mary", exact: true }).click();
  await ada.page.getByRole("region", { name: "What happened then" }).getByText("Received and stored").waitFor();
  await ada.page.getByLabel("Select all").check();
  await ada.page.getByRole("region", { name: "Submissions" }).getByRole("button", { name: "Delete" }).click();
  await ada.page.getByRole("heading", { name: "Delete 3 submissions?" }).waitFor();
  await ada.page.getByRole("button", { name: "Delete", exact: true }).first().click();
  await ada.seesText("No submissions here.");
  assert.deepEqual(ada.complaints, []);
});

test("the builder's screens are accessible and fit, full, empty and refused", async () => {
  for (const options of VIEWPORTS) {
    const width = options.viewport.width;
    const ada = await signedIn(system, `builder-${width}@example.com`, options);
    const form = await formWith(system, await makeKey(ada), ["Charles", HOSTILE]);
    const root = `/console/forms/${form}`;
    await checkScreens(ada, "full", width, {
      presets: "/console/forms/new",
      builder: "/console/forms/new?preset=client-intake",
      edit: `${root}/edit`,
      details: `${root}/details`,
      "delete-form": `${root}/details?confirm=delete`,
    });
    const poll = { name: "Poll <b>", fields: [{ type: "select", name: "v", label: HOSTILE, options: ["Tea", HOSTILE] }, { type: "number", name: "n", label: "Age" }] };
    const made = await call(system.base, "POST", "/api/forms", { key: await makeKey(ada), body: poll });
    for (const v of ["Tea", HOSTILE]) {
      await call(system.base, "POST", `/api/forms/${made.body.formId}/submit`, { body: { v, n: 30 } });
    }
    await checkScreens(ada, "full", width, { results: `/console/forms/${made.body.formId}/details` });
    await checkScreens(ada, "refused", width, { edit: `/console/forms/${form.replaceAll(/[1-9a-f]/g, "0")}/edit`, preset: "/console/forms/new?preset=none" });
    // All details open, and a refused post.
    await ada.open(`${root}/edit`);
    await ada.page.getByLabel("Label").first().fill("");
    await ada.page.getByRole("button", { name: "Save" }).click();
    await ada.page.getByRole("alert").waitFor();
    await ada.page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
    await ada.checkAccessibility(`console-builder-refused-${width}`);
    const wide = await ada.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `the builder is ${wide} pixels too wide`);
  }
});
