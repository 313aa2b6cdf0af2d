// A signed-in person, and what the stories of the console share.
import assert from "node:assert/strict";
import { request } from "node:http";
import { BrowserUser, call } from "../browser_user.mjs";

/** What a stranger may send. */
export const HOSTILE = "<img src=x onerror=\"document.title='owned'\"> report\u202efdp.exe";

export const VIEWPORTS = [
  { colorScheme: "light", viewport: { width: 1440, height: 900 } },
  { colorScheme: "dark", viewport: { width: 360, height: 740 } },
];

/** A person whose console errors and policy violations fail the story: compare `complaints` with `[]` at its end. */
export async function signedIn(system, email, options) {
  const person = await BrowserUser.start(system, options);
  person.complaints = [];
  person.scripts = options?.javaScriptEnabled ?? true;
  person.page.on("console", (message) => message.type() === "error" && person.complaints.push(message.text()));
  await person.signInLocally(email);
  return person;
}

/** Makes a key on its page, which shows it once. */
export async function makeKey(person) {
  await person.open("/console/keys");
  await person.page.getByLabel("Name", { exact: true }).fill("story");
  await person.page.getByLabel(/^Everything/).check();
  await person.click("button", "Make the key");
  return person.page.locator("#secret").innerText();
}

/** A form with its submissions, the newest last. */
export async function formWith(system, key, names) {
  const fields = [
    { type: "text", name: "name", label: "Name" },
    { type: "email", name: "email", label: "E-mail" },
    { type: "textarea", name: "message", label: "Message" },
  ];
  const made = await call(system.base, "POST", "/api/forms", { key, body: { name: "Contact", fields } });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  for (const name of names) {
    const body = { name, email: "mary@example.com", message: `Message of ${name}` };
    const { status } = await call(system.base, "POST", `/api/forms/${made.body.formId}/submit`, { body });
    assert.equal(status, 201);
  }
  return made.body.formId;
}

/** Nothing scrolls sideways. */
export async function fits(person, name) {
  const { wide, width } = await person.page.evaluate(() => ({
    wide: document.documentElement.scrollWidth,
    width: document.documentElement.clientWidth,
  }));
  assert.ok(wide <= width, `${name} is ${wide} pixels wide in ${width}`);
}

/** The screens at these paths are accessible and fit, on a wide light page or a narrow dark one. */
export async function checkScreens(person, state, width, paths) {
  for (const [name, path] of Object.entries(paths)) {
    await person.open(path);
    await person.checkAccessibility(`console-${name}-${state}-${width}`);
    await fits(person, name);
  }
}

/** What a visitor gets at an address of a site. Node does not resolve names below localhost as browsers do. */
export function visit(address) {
  const { host, port, pathname, search } = new URL(address);
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path: pathname + search, headers: { host } };
    const sent = request(options, async (response) => {
      const parts = [];
      for await (const part of response) parts.push(part);
      const body = Buffer.concat(parts);
      resolve({ status: response.statusCode, type: response.headers["content-type"], body, text: body.toString() });
    });
    sent.on("error", reject).end();
  });
}
