// From signing in to a published page, by keyboard alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BrowserUser } from "../browser_user.mjs";
import { start } from "../system.mjs";
import { visit } from "./person.mjs";

const STOPS_MAX = 80;

let system;
before(async () => {
  system = await start("signin.local=true");
});
after(() => system?.stop());

/** Moves the focus with Tab until `isThere` holds for the focused element, which must be seen to have it. */
async function tabTo(person, what, isThere) {
  for (let stop = 0; stop < STOPS_MAX; stop++) {
    await person.page.keyboard.press("Tab");
    const focused = await person.page.evaluate(() => {
      const element = document.activeElement, style = getComputedStyle(element);
      const label = element.labels?.[0]?.innerText ?? element.getAttribute("aria-label") ?? element.innerText ?? "";
      const { width, height } = element.getBoundingClientRect();
      const isMarked = style.outlineStyle !== "none" || style.boxShadow !== "none";
      return { name: label.trim(), tag: element.localName, isMarked, isSeen: width > 0 && height > 0 };
    });
    if (!isThere(focused)) continue;
    assert.ok(focused.isSeen, `${what} has no size when it is focused`);
    assert.ok(focused.isMarked, `${what} does not show that it has the focus`);
    return;
  }
  assert.fail(`${what} can't be reached with ${STOPS_MAX} presses of Tab`);
}

const named = (tag, name) => (focused) => focused.tag === tag && focused.name.startsWith(name);

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`a page is published by keyboard alone ${how} scripts`, async () => {
    const ada = await BrowserUser.start(system, { javaScriptEnabled });
    const { keyboard } = ada.page;
    const press = async (tag, name, key = "Enter") => {
      await tabTo(ada, name, named(tag, name));
      await keyboard.press(key);
    };
    const type = async (tag, name, text) => {
      await tabTo(ada, name, named(tag, name));
      await keyboard.press("Control+a");
      await keyboard.insertText(text);
    };
    await ada.open("/login/local");
    await type("input", "E-mail", `keyboard-${how}@example.com`);
    await press("button", "Sign in");
    await ada.seesHeading("Overview");
    // The first stop is the link past the navigation.
    await keyboard.press("Tab");
    assert.equal(await ada.page.evaluate(() => document.activeElement.getAttribute("href")), "#main");
    await press("a", "Sites");
    await ada.seesHeading("Sites");
    await press("a", "write a page");
    await ada.seesHeading("New page");
    await type("input", "Slug", "index");
    await type("input", "Title", "Made by keyboard");
    await type("textarea", "HTML", "<h1>Made by keyboard</h1>");
    await press("button", "Make the page");
    await ada.seesHeading("Made by keyboard Published");
    await tabTo(ada, "Open the page", named("a", "Open the page"));
    const address = await ada.page.evaluate(() => document.activeElement.href);
    assert.ok((await visit(address)).text.includes("<h1>Made by keyboard</h1>"), "visitors see it");
  });
}
