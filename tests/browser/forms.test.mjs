// Hosted forms in Chromium: filled in and submitted with and without script, standalone and embedded.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, test } from "node:test";
import { BrowserUser, call } from "./browser_user.mjs";
import { start, until } from "./system.mjs";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const FILE = { name: "portrait.png", mimeType: "image/png", buffer: PNG };
/** A faster submission is classified as spam. */
const MIN_SECONDS = 2;

const FIELDS = [
  { name: "name", label: "Full name", type: "text", required: true, placeholder: "Ada Lovelace", minLength: 2 },
  { name: "email", label: "E-mail", type: "email", required: true, placeholder: "ada@example.com" },
  { name: "phone", label: "Telephone", type: "tel", placeholder: "+44 20 7946 0000" },
  { name: "site", label: "Website", type: "url", placeholder: "https://example.com" },
  { name: "guests", label: "Number of guests", type: "number", min: 1, max: 8 },
  { name: "day", label: "Day of arrival", type: "date" },
  { name: "meal", label: "Meal", type: "select", options: ["Vegetarian", "Fish", "Everything"], required: true },
  { name: "topics", label: "What interests you?", type: "multiselect", options: ["Looms", "Engines", "Poetry"] },
  { name: "notes", label: "Anything else?", type: "textarea", placeholder: "Allergies, questions …", maxLength: 500 },
  { name: "photo", label: "Portrait", type: "file", accept: "image/png,image/jpeg", maxFileSize: 1048576 },
  { name: "source", label: "Source", type: "hidden" },
  { name: "more", label: "I need a room", type: "checkbox" },
  { name: "nights", label: "How many nights?", type: "number", min: 1, showIf: { field: "more", equals: true } },
  { name: "terms", label: "I agree to the terms", type: "checkbox", required: true },
];

let system, key;
before(async () => {
  system = await start();
  key = (await call(system.base, "POST", "/api/trial")).body.key;
  await call(system.base, "POST", "/api/account/upgrade", { key, body: { plan: "pro" } });
});
after(() => system?.stop());

async function makeForm(form = {}) {
  const body = { name: "An afternoon with the Analytical Engine", fields: FIELDS, ...form };
  const made = await call(system.base, "POST", "/api/forms", { key, body });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body.formId;
}

async function submissions(form, status = "all") {
  const { body } = await call(system.base, "GET", `/api/forms/${form}/submissions?status=all`, { key });
  return body.submissions.filter((one) => status === "all" || one.status === status);
}

async function fill(page) {
  await page.getByLabel("Full name").fill("Ada Lovelace");
  await page.getByLabel("E-mail").fill("ada@example.com");
  await page.getByLabel("Telephone").fill("+44 20 7946 0000");
  await page.getByLabel("Website").fill("https://example.com/ada");
  await page.getByLabel("Number of guests").fill("2");
  await page.getByLabel("Day of arrival").fill("2027-05-14");
  await page.getByLabel("Meal").selectOption("Fish");
  await page.getByLabel("Engines").check();
  await page.getByLabel("Poetry").check();
  await page.getByLabel("Anything else?").fill("Two lines\nof notes");
  await page.getByLabel("Portrait").setInputFiles(FILE);
  await page.getByLabel("I need a room").check();
  await page.getByLabel("How many nights?").fill("3");
  await page.getByLabel("I agree to the terms").check();
}

/** Waits until the page's token is older than the minimum fill time. */
async function waitMinSeconds(page) {
  const token = await page.locator("[name='form.token']").inputValue();
  const shown = Number(Buffer.from(token, "base64url").readBigInt64BE(0)) * 1000;
  await until("a person's pace", () => Date.now() > shown + MIN_SECONDS * 1000 + 50);
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with script" : "without script";
  test(`all twelve field types are submitted ${how}`, async () => {
    const form = await makeForm({ successMessage: "See you in May, Ada!" });
    const ada = await BrowserUser.start(system, { javaScriptEnabled });
    const blocked = [];
    ada.page.on("console", (message) => message.type() === "error" && blocked.push(message.text()));
    await ada.open(`/f/${form}?source=newsletter&email=typed%40before.test&nothing=1`);
    await ada.seesHeading("An afternoon with the Analytical Engine");
    assert.equal(await ada.page.getByLabel("E-mail").inputValue(), "typed@before.test");
    assert.equal(await ada.page.getByLabel("How many nights?").isVisible(), false);
    await fill(ada.page);
    await waitMinSeconds(ada.page);
    await ada.screenshot(`form-filled-${javaScriptEnabled ? "script" : "plain"}`);
    await ada.click("button", "Send");
    await ada.seesHeading("Thank you");
    await ada.seesText("See you in May, Ada!");
    assert.match(ada.page.url(), new RegExp(`/f/${form}/thanks$`));
    await ada.page.reload();
    await ada.seesHeading("Thank you");
    const [one, ...more] = await submissions(form);
    assert.equal(more.length, 0, "a reload must not submit again");
    assert.equal(one.status, "received", JSON.stringify(one));
    const { photo, ...answers } = one.payload;
    assert.deepEqual(answers, {
      name: "Ada Lovelace",
      email: "ada@example.com",
      phone: "+44 20 7946 0000",
      site: "https://example.com/ada",
      guests: 2,
      day: "2027-05-14",
      meal: "Fish",
      topics: ["Engines", "Poetry"],
      notes: "Two lines\r\nof notes",
      source: "newsletter",
      more: true,
      nights: 3,
      terms: true,
    });
    const file = await fetch(new URL(`/api/forms/${form}/files/${photo}`, system.base));
    assert.deepEqual(Buffer.from(await file.arrayBuffer()), PNG);
    assert.match(file.headers.get("content-disposition"), /^attachment/);
    assert.deepEqual(blocked, [], "the page violates its own CSP");
  });

  test(`errors are shown in a summary and at each field ${how}, and no input is lost`, async () => {
    const form = await makeForm();
    const ada = await BrowserUser.start(system, { javaScriptEnabled });
    await ada.open(`/f/${form}`);
    await fill(ada.page);
    // Browsers accept these values.
    await ada.page.getByLabel("E-mail").fill("ada@nowhere");
    await ada.page.getByLabel("Telephone").fill("call me");
    await ada.page.getByLabel("I need a room").check();
    await ada.page.getByLabel("How many nights?").fill("");
    await ada.click("button", "Send");
    await ada.page.getByRole("alert").waitFor();
    assert.match(await ada.page.title(), /^Please check: /);
    const summary = ada.page.getByRole("alert");
    assert.equal(await summary.evaluate((node) => node === document.activeElement), true, "the summary has no focus");
    assert.deepEqual(await summary.getByRole("link").allInnerTexts(), ["E-mail", "Telephone"]);
    const email = ada.page.getByLabel("E-mail");
    assert.equal(await email.getAttribute("aria-invalid"), "true");
    const described = await email.getAttribute("aria-describedby");
    assert.match(await ada.page.locator(`#${described}`).innerText(), /name@example\.com/);
    assert.equal(await ada.page.getByLabel("Full name").inputValue(), "Ada Lovelace");
    assert.equal(await ada.page.getByLabel("Poetry").isChecked(), true);
    await ada.seesText("Already sent: portrait.png");
    if (javaScriptEnabled) await ada.checkAccessibility("form-errors");
    await summary.getByRole("link", { name: "E-mail" }).click();
    assert.equal(await email.evaluate((node) => node === document.activeElement), true, "the link must focus its field");
    await email.fill("ada@example.com");
    await ada.page.getByLabel("Telephone").fill("+44 20 7946 0000");
    await waitMinSeconds(ada.page);
    await ada.click("button", "Send");
    await ada.seesHeading("Thank you");
    const [one] = await submissions(form);
    assert.equal(one.payload.email, "ada@example.com");
    assert.match(one.payload.photo, /^[0-9a-f-]{36}$/, "the file of the first attempt is missing");
  });
}

for (const [name, options, query] of [
  ["desktop", {}, ""],
  ["dark", { colorScheme: "dark" }, ""],
  ["mobile", { viewport: { width: 375, height: 740 }, deviceScaleFactor: 2 }, ""],
  ["arabic", { locale: "ar" }, ""],
  ["japanese-mobile-dark", { viewport: { width: 375, height: 740 }, colorScheme: "dark" }, "?lang=ja"],
]) {
  test(`the form, its errors and its thanks are accessible: ${name}`, async () => {
    const form = await makeForm();
    const ada = await BrowserUser.start(system, options);
    await ada.open(`/f/${form}${query}`);
    await ada.checkAccessibility(`form-${name}`);
    const [width, scroll] = await ada.page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
    assert.ok(scroll <= width, `${name} scrolls sideways: ${scroll} > ${width}`);
    const small = await ada.page.evaluate(() =>
      [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, .choice")]
        .filter((node) => node.checkVisibility() && !node.closest(".apart") && !node.closest(".choice, [hidden]"))
        .filter((node) => node.getBoundingClientRect().height < 24)
        .map((node) => node.outerHTML),
    );
    assert.deepEqual(small, [], "targets smaller than 24 px");
    if (name === "arabic") assert.equal(await ada.page.evaluate(() => getComputedStyle(document.body).direction), "rtl");
    await ada.page.evaluate(() => (document.querySelector("form").noValidate = true));
    await ada.page.locator("#field-email").fill("ada");
    await ada.page.locator("button[type=submit]").click();
    await ada.page.getByRole("alert").waitFor();
    await ada.checkAccessibility(`form-${name}-errors`);
    await ada.open(`/f/${form}/thanks${query}`);
    await ada.checkAccessibility(`form-${name}-thanks`);
  });
}

test("a form with a redirect URL redirects its visitors", async () => {
  const target = `${system.base}/login`;
  const form = await makeForm({ fields: [FIELDS[0]], redirectUrl: target });
  const ada = await BrowserUser.start(system);
  await ada.open(`/f/${form}`);
  await ada.page.getByLabel("Full name").fill("Ada");
  await waitMinSeconds(ada.page);
  await ada.click("button", "Send");
  await ada.page.waitForURL(target);
});

test("a proof-of-work challenge is solved by the browser without a noticeable delay", async () => {
  const form = await makeForm({ fields: [FIELDS[0]], spam: { proofOfWork: true } });
  const ada = await BrowserUser.start(system);
  await ada.open(`/f/${form}`);
  await ada.page.getByLabel("Full name").fill("Ada");
  await waitMinSeconds(ada.page);
  await ada.click("button", "Send");
  await ada.seesHeading("Thank you");
  const [one] = await submissions(form);
  assert.deepEqual([one.status, one.payload], ["received", { name: "Ada" }]);
  const plain = await BrowserUser.start(system, { javaScriptEnabled: false });
  await plain.open(`/f/${form}`);
  await plain.page.locator("noscript .error").waitFor();
  await plain.screenshot("form-work-plain");
});

test("a closed form and a missing form show a message", async () => {
  const form = await makeForm({ closesAt: new Date(Date.now() - 60_000).toISOString() });
  const ada = await BrowserUser.start(system);
  await ada.open(`/f/${form}`);
  await ada.seesText("This form is closed.");
  await ada.checkAccessibility("form-closed");
  await ada.open("/f/00000000-0000-0000-0000-000000000000?lang=de");
  await ada.seesHeading("Kein Formular");
});

test("a robot that fills in the honeypot is asked for one more click and stored as spam", async () => {
  const form = await makeForm({ fields: [FIELDS[0]] });
  const robot = await BrowserUser.start(system);
  await robot.open(`/f/${form}`);
  await robot.page.getByLabel("Full name").fill("Bot");
  const honeypot = robot.page.locator("[name='contact.website']");
  assert.equal(await honeypot.evaluate((node) => node.getBoundingClientRect().right < 0), true, "the honeypot is visible");
  await honeypot.evaluate((node) => (node.value = "http://spam.test"));
  await robot.click("button", "Send");
  await robot.seesHeading("One more step");
  const [one] = await submissions(form);
  assert.equal(one.status, "spam");
  assert.deepEqual(await submissions(form, "received"), []);
});

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with script" : "without script";
  test(`a person who is faster than expected confirms with one click, and no file is lost, ${how}`, async () => {
    const form = await makeForm({ fields: [FIELDS[0], FIELDS[9]], spam: { minSeconds: 60 } });
    const ada = await BrowserUser.start(system, { javaScriptEnabled });
    // Two fields are expected to take two seconds; a password manager is faster.
    await ada.open(`/f/${form}`);
    await ada.page.locator("[name='form.token']").evaluate((node) => (node.value = "forged"));
    await ada.page.getByLabel("Full name").fill("Ada");
    await ada.page.getByLabel("Portrait").setInputFiles(FILE);
    await ada.click("button", "Send");
    await ada.seesHeading("One more step");
    if (javaScriptEnabled) await ada.checkAccessibility("form-confirm");
    assert.equal((await submissions(form))[0].status, "spam");
    await ada.click("button", "Yes, send my answers");
    await ada.seesHeading("Thank you");
    const [one, ...more] = await submissions(form);
    assert.deepEqual([one.status, one.payload.name, more.length], ["received", "Ada", 0]);
    const file = await fetch(new URL(`/api/forms/${form}/files/${one.payload.photo}`, system.base));
    assert.deepEqual(Buffer.from(await file.arrayBuffer()), PNG);
  });
}

const ATTACKS = {
  "a script element": "<script>globalThis.hacked = 1</script>",
  "a handler on an image": "<img src=x onerror=\"globalThis.hacked = 1\">",
  "a closed attribute": "\" autofocus onfocus=\"globalThis.hacked = 1",
  "a closed textarea": "</textarea><svg onload=\"globalThis.hacked = 1\">",
  "a closed style": "</style><svg onload=\"globalThis.hacked = 1\">",
  "a template": "{{ 7 * 7 }}{% include 'form.html' %}",
};
for (const [attack, text] of Object.entries(ATTACKS)) {
  test(`XSS through an owner's labels or a visitor's input has no effect: ${attack}`, async () => {
    const kinds = ["text", "email", "textarea", "number", "url", "tel", "date", "hidden", "checkbox", "file"];
    const fields = kinds.map((type) => ({ name: type, label: text, type, placeholder: text }));
    for (const type of ["select", "multiselect"]) fields.push({ name: type, label: text, type, options: [text, "b"] });
    fields.push({ name: "last", label: text, type: "text", showIf: { field: "select", equals: text } });
    const form = await makeForm({ name: text, fields, submitLabel: text, successMessage: text });
    // Without CSP: escaping alone must prevent it.
    const ada = await BrowserUser.start(system, { bypassCSP: true });
    const query = new URLSearchParams(kinds.map((kind) => [kind, text]));
    const quiet = async (where) => {
      const seen = await ada.page.evaluate(() => [globalThis.hacked, document.querySelectorAll("main svg[onload], main img, main script").length]);
      assert.deepEqual(seen, [undefined, 0], where);
    };
    await ada.open(`/f/${form}?${query}`);
    await quiet("as it is shown");
    assert.equal(await ada.page.locator("h1").innerText(), text);
    await ada.page.evaluate(() => (document.querySelector("form").noValidate = true));
    await ada.page.locator("button[type=submit]").click();
    await ada.page.getByRole("alert").waitFor();
    await quiet("with its mistakes");
    await ada.open(`/f/${form}/thanks`);
    await quiet("in its thanks");
  });
}

/** A third-party page with the embed line. */
async function host(html) {
  const server = http.createServer((_, answer) => answer.setHeader("content-type", "text/html").end(html)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `http://127.0.0.1:${server.address().port}/`;
  return { address, stop: () => server.close() };
}
const line = (form, more = "") => `<script src="${system.base}/embed.js" data-form="${form}"${more}></script>`;

test("the embed line puts a form on a third-party page at its full height", async () => {
  const form = await makeForm();
  const page = await host(`<!doctype html><title>Hosts</title><body style="font-family: serif"><h1>My page</h1>
    <p>Before the form.</p>${line(form)}<p id="after">After the form.</p>
    <script>addEventListener("wr:submitted", (event) => (globalThis.told = event.detail));</script>`);
  const ada = await BrowserUser.start(system, { viewport: { width: 1000, height: 1900 } });
  await ada.page.goto(`${page.address}?utm_source=x&f_source=friend&f_name=Ada&secret=1`);
  const element = ada.page.locator("iframe");
  const frame = ada.page.frameLocator("iframe");
  await frame.getByLabel("Full name").waitFor();
  const src = new URL(await element.getAttribute("src"));
  assert.deepEqual(Object.fromEntries(src.searchParams), {
    embed: "1",
    "form.theme": "light",
    utm_source: "x",
    source: "friend",
    name: "Ada",
  });
  assert.match(await element.getAttribute("sandbox"), /allow-forms/);
  const inner = () => frame.locator("html").evaluate((node) => Math.ceil(node.getBoundingClientRect().height));
  const outer = () => element.evaluate((node) => node.getBoundingClientRect().height);
  await until("the frame to be as high as the form", async () => (await inner()) > 600 && (await outer()) === (await inner()));
  const before = await outer();
  await frame.getByLabel("I need a room").check();
  await until("the frame to grow with it", async () => (await outer()) > before);
  await ada.screenshot("form-embedded");
  // Messages of other origins are ignored.
  await ada.page.evaluate(() => postMessage({ v: "wr1", type: "height", height: 60 }, "*"));
  await frame.getByLabel("I need a room").uncheck();
  await until("only the form's own word to count", async () => (await outer()) === before);
  assert.equal(await frame.getByLabel("Full name").inputValue(), "Ada");
  await frame.getByLabel("E-mail").fill("ada@example.com");
  await frame.getByLabel("Meal").selectOption("Fish");
  await frame.getByLabel("I agree to the terms").check();
  await waitMinSeconds(frame);
  await frame.getByRole("button", { name: "Send" }).click();
  await frame.getByRole("heading", { name: "Thank you" }).waitFor();
  await until("the page to be told", () => ada.page.evaluate(() => globalThis.told?.formId));
  assert.equal((await submissions(form))[0].payload.source, "friend");
  assert.equal(ada.page.url().startsWith(page.address), true);
  page.stop();
});

test("the embed line works in the head and as a popup", async () => {
  const form = await makeForm();
  const page = await host(`<!doctype html><html><head><title>Hosts</title>${line(form)}</head><body><h1>Mine</h1>
    ${line(form, ' data-mode="popup" data-label="Write to us"')}</body></html>`);
  const ada = await BrowserUser.start(system, { viewport: { width: 1000, height: 800 } });
  await ada.page.goto(page.address);
  await ada.page.locator("body > iframe").waitFor();
  await ada.click("button", "Write to us");
  const dialog = ada.page.getByRole("dialog");
  await dialog.frameLocator("iframe").getByLabel("Full name").waitFor();
  await ada.screenshot("form-popup");
  await ada.click("button", "Close");
  await dialog.waitFor({ state: "hidden" });
  page.stop();
});

test("a framed form redirects the surrounding page, and only to the configured URL", async () => {
  const target = `${system.base}/login`;
  const form = await makeForm({ fields: [FIELDS[0]], redirectUrl: target });
  const page = await host(`<!doctype html><title>Hosts</title><body>${line(form)}`);
  const ada = await BrowserUser.start(system);
  await ada.page.goto(page.address);
  const frame = ada.page.frameLocator("iframe");
  await frame.getByLabel("Full name").fill("Ada");
  await waitMinSeconds(frame);
  await frame.getByRole("button", { name: "Send" }).click();
  await ada.page.waitForURL(target);
  page.stop();
});
