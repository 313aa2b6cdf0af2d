// Folders in the console: one is made, filled, emptied and deleted, with and without scripts, and lists are filtered by it.
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

/** Makes a page; returns its address in the console. */
async function pageWith(key, title) {
  const body = { slug: "guests", title, html: "<p>Hello" };
  const made = await call(system.base, "POST", "/api/pages", { key, body });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return `/console/sites/${made.body.subdomainId}/pages`;
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`a folder is made, filled, emptied and deleted ${how} scripts`, async () => {
    const ada = await signedIn(system, `folders-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    const form = await formWith(system, key, []);
    const pages = await pageWith(key, "Guests");
    await ada.open("/console/forms");
    await ada.click("link", "Folders");
    await ada.page.getByLabel("Name", { exact: true }).fill("x".repeat(81));
    await ada.click("button", "Make the folder");
    await ada.page.getByRole("alert").waitFor();
    await ada.page.getByLabel("Name", { exact: true }).fill(HOSTILE);
    await ada.click("button", "Make the folder");
    await ada.seesText("The folder is made.");
    assert.notEqual(await ada.page.title(), "owned");
    await ada.page.getByLabel("Guests").check();
    if (!(await ada.page.getByLabel("Contact").isVisible())) await ada.page.locator("summary", { hasText: "Forms" }).click();
    await ada.page.getByLabel("Contact").check();
    await ada.click("button", "Add to the folder");
    await ada.seesText("Added to the folder.");
    await ada.page.getByRole("link", { name: "Guests", exact: true }).waitFor();
    await ada.page.getByLabel("Name", { exact: true }).fill("Society");
    await ada.click("button", "Save");
    await ada.seesHeading("Society");
    const { folders } = (await call(system.base, "GET", "/api/folders", { key })).body;
    assert.deepEqual(folders.map(({ name, counts }) => [name, counts.total]), [["Society", 2]]);
    await ada.click("button", "Remove Contact");
    await ada.seesText("Removed from the folder.");
    assert.equal((await call(system.base, "GET", `/api/forms/${form}`, { key })).body.folderId ?? null, null);
    await ada.open("/console/forms");
    await ada.page.getByLabel("Folder", { exact: true }).selectOption(folders[0].id);
    await ada.click("button", "Filter");
    await ada.seesText("No form is in this folder.");
    await ada.open(`${pages}?folderId=${folders[0].id}`);
    await ada.page.getByRole("link", { name: "Guests", exact: true }).waitFor();
    await ada.open(`/console/folders/${folders[0].id}`);
    await ada.click("link", "Delete the folder");
    await ada.seesText("What is in it stays");
    await ada.click("button", "Delete the folder");
    await ada.seesText("The folder is deleted.");
    assert.equal((await call(system.base, "GET", "/api/pages", { key })).body.pages.length, 1, "the page stays");
    assert.deepEqual(ada.complaints.filter((text) => !text.includes("400")), []);
  });
}

test("the screens of folders are accessible and fit, full, empty and refused", async () => {
  for (const options of VIEWPORTS) {
    const width = options.viewport.width;
    const ada = await signedIn(system, `folders-${width}@example.com`, options);
    await checkScreens(ada, "empty", width, { folders: "/console/folders" });
    const key = await makeKey(ada);
    await formWith(system, key, []);
    const pages = await pageWith(key, `${"a-long-word-".repeat(8)} ${HOSTILE}`);
    const name = `${"long-".repeat(12)}name`;
    const made = await call(system.base, "POST", "/api/folders", { key, body: { name, description: HOSTILE } });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    const folder = `/console/folders/${made.body.id}`;
    const lists = { folders: "/console/folders", forms: "/console/forms", pages };
    await checkScreens(ada, "outside", width, { folder, ...lists });
    await ada.open(folder);
    for (const box of await ada.page.locator("details:not([open]) > summary").all()) await box.click();
    for (const box of await ada.page.locator("[name=resource][type=checkbox]").all()) await box.check();
    await ada.click("button", "Add to the folder");
    await ada.seesText("Added to the folder.");
    await checkScreens(ada, "full", width, { folder, asked: `${folder}?delete=true`, ...lists });
    await checkScreens(ada, "refused", width, { folder: "/console/folders/00000000-0000-7000-8000-000000000000" });
  }
});
