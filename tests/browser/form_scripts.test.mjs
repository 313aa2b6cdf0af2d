// A page of another origin that sends its own form to the submit URL, in Chromium: by script and without one.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, test } from "node:test";
import { BrowserUser, call } from "./browser_user.mjs";
import { start } from "./system.mjs";

const FIELDS = [
  { name: "name", label: "Name", type: "text", required: true },
  { name: "mail", label: "Mail", type: "email" },
  { name: "guests", label: "Guests", type: "number", min: 1, max: 8 },
  { name: "terms", label: "Terms", type: "checkbox" },
  { name: "topics", label: "Topics", type: "multiselect", options: ["x", "y"] },
];

let system, key, site, address;
before(async () => {
  system = await start();
  key = (await call(system.base, "POST", "/api/trial")).body.key;
  site = http.createServer((request, answer) => {
    const form = new URL(request.url, "http://site.test").searchParams.get("form");
    answer.setHeader("content-type", "text/html").end(`<!doctype html><title>My site</title>
      <form method="post" action="${system.base}/api/forms/${form}/submit">
        <input name="name"><input name="mail" value="ada@example.com"><input name="guests" value="7">
        <input name="terms" type="checkbox" checked><select name="topics"><option>x</option></select>
        <input name="campaign" value="spring"><button>Send</button>
      </form>`);
  });
  await once(site.listen(0, "127.0.0.1"), "listening");
  address = `http://127.0.0.1:${site.address().port}/`;
});
after(() => {
  site?.close();
  return system?.stop();
});

/** Makes a form, and opens the page with it. */
async function open(settings = {}) {
  const body = { name: "Party", fields: FIELDS, redirectUrl: `${system.base}/login`, ...settings };
  const made = await call(system.base, "POST", "/api/forms", { key, body });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const ada = await BrowserUser.start(system);
  await ada.page.goto(`${address}?form=${made.body.formId}`);
  return { form: made.body.formId, ada };
}

/** Sends the page's form by `fetch`, as `FormData` or as JSON made of it. Returns what the page reads. */
function send(ada, asJson) {
  return ada.page.evaluate(async (asJson) => {
    const form = document.forms[0];
    const data = new FormData(form);
    const json = () => ({ body: JSON.stringify(Object.fromEntries(data)), headers: { "content-type": "application/json" } });
    const response = await fetch(form.action, { method: "POST", ...(asJson ? json() : { body: data }) });
    return { status: response.status, type: response.type, redirected: response.redirected, body: await response.json() };
  }, asJson);
}

async function stored(form) {
  const { body } = await call(system.base, "GET", `/api/forms/${form}/submissions?status=all`, { key });
  return body.submissions;
}

for (const asJson of [false, true]) {
  test(`fetch from another origin reads the answer to ${asJson ? "JSON made of FormData" : "FormData"}`, async () => {
    const { form, ada } = await open();
    const refused = await send(ada, asJson);
    assert.deepEqual([refused.status, refused.type], [400, "cors"]);
    assert.deepEqual(refused.body.fieldErrors, [{ field: "name", code: "required", message: "Name is required" }]);
    await ada.page.locator("[name=name]").fill("Ada");
    const sent = await send(ada, asJson);
    assert.deepEqual([sent.status, sent.type, sent.redirected], [201, "cors", false]);
    assert.deepEqual([sent.body.success, sent.body.ignoredFields], [true, ["campaign"]]);
    assert.equal(sent.body.redirectUrl, `${system.base}/login`);
    const [one, ...more] = await stored(form);
    assert.deepEqual([one.id, one.status, more], [sent.body.submissionId, "received", []]);
    const payload = { name: "Ada", mail: "ada@example.com", guests: 7, terms: true, topics: ["x"] };
    assert.deepEqual(one.payload, payload);
  });
}

test("a page of another origin without a script is redirected, and its unknown fields are stored", async () => {
  const { form, ada } = await open({ unknownFields: "store" });
  await ada.page.locator("[name=name]").fill("Ada");
  await ada.click("button", "Send");
  await ada.page.waitForURL(`${system.base}/login`);
  const [one] = await stored(form);
  assert.deepEqual([one.payload.name, one.extra], ["Ada", { campaign: "spring" }]);
});

test("a form that refuses unknown fields tells the script their names", async () => {
  const { form, ada } = await open({ unknownFields: "refuse" });
  await ada.page.locator("[name=name]").fill("Ada");
  const refused = await send(ada, false);
  assert.equal(refused.status, 400);
  assert.deepEqual(refused.body.fieldErrors.map((error) => [error.field, error.code]), [["campaign", "unknown_field"]]);
  assert.deepEqual(await stored(form), []);
});
