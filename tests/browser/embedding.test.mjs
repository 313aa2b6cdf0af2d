// Embedded forms in Chromium: theme, colours and corners of the page around them, inline and as a popup.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, test } from "node:test";
import { BrowserUser, call } from "./browser_user.mjs";
import { start, until } from "./system.mjs";

const FIELDS = [
  { name: "name", label: "Full name", type: "text", required: true, help: "As on your passport" },
  { name: "plan", label: "Plan", type: "select", options: ["Monthly", "Yearly"], display: "radio", required: true },
  { name: "nps", label: "How likely are you to recommend us?", type: "number", min: 0, max: 10, display: "scale" },
  { name: "zip", label: "Postcode", type: "text", pattern: "[0-9]{5}", patternHint: "five digits, such as 10115" },
  { name: "notes", label: "Anything else?", type: "textarea" },
];
const PAGES = { light: "#fffdf7", dark: "#101418" };

let system, key, form;
before(async () => {
  system = await start();
  key = (await call(system.base, "POST", "/api/trial")).body.key;
  const made = await call(system.base, "POST", "/api/forms", { key, body: { name: "Write to us", fields: FIELDS } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  form = made.body.formId;
});
after(() => system?.stop());

/** A page of another origin with the embed line; `style` is that of its root. */
async function host(style, attributes = "") {
  const html = `<!doctype html><html style="${style}"><title>Hosts</title><body style="font-family:sans-serif;margin:24px">
    <h1>My page</h1><script src="${system.base}/embed.js" data-form="${form}" ${attributes}></script><p>After the form.</p>`;
  const server = http.createServer((_, answer) => answer.setHeader("content-type", "text/html").end(html)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { address: `http://127.0.0.1:${server.address().port}/`, stop: () => server.close() };
}
const on = (theme) => `background:${PAGES[theme]};color:${theme === "dark" ? "#eee" : "#222"}`;

const themeOf = (frame) => frame.locator("html").getAttribute("data-theme");
/** The brightness of the text in the frame, 0 to 255. */
const ink = (frame) => frame.locator("h1").evaluate((node) => Number(getComputedStyle(node).color.match(/\d+/)[0]));
/** The colour of a point of the screen, as the bytes of a picture. */
const point = (page, x, y) => page.screenshot({ clip: { x, y, width: 1, height: 1 } });

for (const theme of ["light", "dark"]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`an embedded form follows its ${theme} page on a ${colorScheme} system, inline and as a popup`, async () => {
      const ada = await BrowserUser.start(system, { colorScheme, viewport: { width: 800, height: 1000 } });
      const inline = await host(on(theme));
      await ada.page.goto(inline.address);
      const frame = ada.page.frameLocator("iframe");
      await frame.getByLabel("Full name").waitFor();
      assert.equal(await themeOf(frame), theme);
      assert.equal((await ink(frame)) > 128, theme === "dark", "the text can be read");
      const box = await ada.page.locator("iframe").boundingBox();
      const [around, within] = [await point(ada.page, 4, 4), await point(ada.page, box.x + 1, box.y + 1)];
      assert.deepEqual(within, around, "the frame is transparent");
      await ada.screenshot(`embed-inline-${theme}-page-${colorScheme}-system`);
      inline.stop();

      const popup = await host(on(theme), 'data-mode="popup" data-label="Write to us"');
      await ada.page.setViewportSize({ width: 800, height: 560 });
      await ada.page.goto(popup.address);
      await ada.click("button", "Write to us");
      const within_ = ada.page.getByRole("dialog").frameLocator("iframe");
      const send = within_.getByRole("button", { name: "Send" });
      await send.waitFor();
      assert.equal(await themeOf(within_), theme);
      await until("the popup to have its height", async () => {
        const at = await send.boundingBox();
        return at && at.y >= 0 && at.y + at.height <= 560;
      });
      await ada.screenshot(`embed-popup-${theme}-page-${colorScheme}-system`);
      popup.stop();
    });
  }
}

test("a page without a background has that of the browser's canvas, and a translucent one that behind it", async () => {
  const ada = await BrowserUser.start(system, { colorScheme: "dark" });
  for (const [style, theme] of [
    ["", "light"],
    ["color-scheme:dark", "dark"],
    ["color-scheme:light dark", "dark"],
    ["background:rgb(0 0 0 / 10%)", "light"],
    ["background:oklch(0.2 0.05 260)", "dark"],
    ["background:color(display-p3 0.95 0.95 0.9)", "light"],
  ]) {
    const page = await host(style);
    await ada.page.goto(page.address);
    const frame = ada.page.frameLocator("iframe");
    await frame.getByLabel("Full name").waitFor();
    assert.equal(await themeOf(frame), theme, style);
    page.stop();
  }
});

test("a fixed theme has its own background on another page, unless that wants it transparent", async () => {
  const ada = await BrowserUser.start(system);
  for (const [attributes, solid] of [
    ['data-theme="dark"', true],
    ['data-theme="dark" data-background="transparent"', false],
    ['data-theme="light"', false],
    ['data-theme="auto" data-background="solid"', true],
  ]) {
    const page = await host(on("light"), attributes);
    await ada.page.goto(page.address);
    const frame = ada.page.frameLocator("iframe");
    await frame.getByLabel("Full name").waitFor();
    assert.equal(await frame.locator("body.solid").count(), Number(solid), attributes);
    assert.equal(await themeOf(frame), attributes.includes("dark") ? "dark" : "light");
    page.stop();
  }
});

test("an embedded form follows the page's theme switch", async () => {
  const ada = await BrowserUser.start(system);
  const page = await host(on("light"));
  await ada.page.goto(page.address);
  const frame = ada.page.frameLocator("iframe");
  await frame.getByLabel("Full name").fill("Ada");
  await ada.page.evaluate((color) => (document.documentElement.style.background = color), PAGES.dark);
  await until("the form to be dark", async () => (await themeOf(frame)) === "dark" && (await ink(frame)) > 128);
  assert.equal(await frame.getByLabel("Full name").inputValue(), "Ada", "without a reload");
  assert.match(await frame.locator("[name='form.look']").inputValue(), /form\.theme=dark/);
  page.stop();
});

test("the embed line sets accent and corners, and CSS injection through it has no effect", async () => {
  const ada = await BrowserUser.start(system);
  const page = await host(on("light"), 'data-accent="#0f766e" data-radius="2" data-mode="popup" data-label="Open"');
  await ada.page.goto(page.address);
  const shown = (node) => [getComputedStyle(node).backgroundColor, getComputedStyle(node).borderRadius];
  assert.deepEqual(await ada.page.getByRole("button", { name: "Open" }).evaluate(shown), ["rgb(15, 118, 110)", "2px"]);
  await ada.click("button", "Open");
  const send = ada.page.frameLocator("iframe").getByRole("button", { name: "Send" });
  assert.deepEqual(await send.evaluate(shown), ["rgb(15, 118, 110)", "2px"]);
  await ada.screenshot("embed-accent");
  page.stop();
  const attack = await host(on("light"), 'data-accent="red;}body{display:none" data-radius="1px;}*{display:none"');
  await ada.page.goto(attack.address);
  const frame = ada.page.frameLocator("iframe");
  await frame.getByLabel("Full name").waitFor();
  const usual = await frame.getByRole("button", { name: "Send" }).evaluate(shown);
  assert.deepEqual(usual, ["rgb(47, 79, 219)", "1px"], "what is no colour is dropped, and of a length the number stays");
  attack.stop();
  for (const [given, color, radius] of [
    ['data-accent="0f766e" data-radius="99"', "rgb(15, 118, 110)", "24px"],
    ['data-accent="#0f7" data-radius="-4"', "rgb(0, 255, 119)", "8px"],
    ['data-accent="teal"', "rgb(47, 79, 219)", "8px"],
    ['data-accent="#0f766e80"', "rgb(47, 79, 219)", "8px"],
  ]) {
    const other = await host(on("light"), `${given} data-mode="popup" data-label="Open"`);
    await ada.page.goto(other.address);
    const open = ada.page.getByRole("button", { name: "Open" });
    assert.deepEqual(await open.evaluate(shown), [color, radius], given);
    await open.click();
    assert.deepEqual((await send.evaluate(shown))[0], color, `the form has the button's colour: ${given}`);
    if (given.includes("99")) assert.equal((await send.evaluate(shown))[1], radius);
    other.stop();
  }
});

test("radios, a scale and pattern hints work by keyboard and are accessible", async () => {
  const ada = await BrowserUser.start(system);
  await ada.open(`/f/${form}`);
  await ada.page.getByLabel("Full name").fill("Ada");
  await ada.page.getByLabel("Yearly").check();
  await ada.page.getByLabel("7", { exact: true }).focus();
  await ada.page.keyboard.press("Space");
  await ada.page.keyboard.press("ArrowRight");
  await ada.page.getByLabel("Postcode").fill("1234");
  await ada.checkAccessibility("form-renderings");
  await ada.click("button", "Send");
  await ada.page.getByRole("alert").waitFor();
  await ada.seesText("Expected: five digits, such as 10115");
  await ada.checkAccessibility("form-renderings-errors");
  await ada.page.getByLabel("Postcode").fill("10115");
  const token = await ada.page.locator("[name='form.token']").inputValue();
  const from = Number(Buffer.from(token, "base64url").readBigInt64BE(0)) * 1000;
  await until("a person's pace", () => Date.now() > from + 2_050);
  await ada.click("button", "Send");
  await ada.seesHeading("Thank you");
  const { body } = await call(system.base, "GET", `/api/forms/${form}/submissions`, { key });
  assert.deepEqual(body.submissions[0].payload, { name: "Ada", plan: "Yearly", nps: 8, zip: "10115" });
});
