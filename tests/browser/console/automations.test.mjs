// Automations, their runs, and the deliveries of webhooks in the console, with a receiver of our own.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { call } from "../browser_user.mjs";
import { start, until } from "../system.mjs";
import { HOSTILE, VIEWPORTS, checkScreens, formWith, makeKey, signedIn } from "./person.mjs";

let system;
before(async () => {
  // No delivery is tried again while a story looks at its first attempt.
  system = await start("signin.local=true", 'webhooks.retry_schedule=["0s", "1h"]');
});
after(() => system?.stop());

/** A server that keeps each request, and answers with `status` and a hostile text. */
class Receiver {
  static async start() {
    const receiver = Object.assign(new Receiver(), { status: 200, received: [] });
    receiver.server = createServer((request, answer) => {
      let body = "";
      request.on("data", (part) => (body += part));
      request.on("end", () => {
        receiver.received.push({ headers: request.headers, body });
        answer.writeHead(receiver.status, { "content-type": "text/html" }).end(HOSTILE);
      });
    });
    await once(receiver.server.listen(0, "127.0.0.1"), "listening");
    receiver.url = `http://127.0.0.1:${receiver.server.address().port}/in`;
    return receiver;
  }

  stop() {
    this.server.close();
    this.server.closeAllConnections();
  }
}

/** Opens a page again until it has this text. */
async function reloadUntil(person, text) {
  await until(`the page to say ${text}`, async () => {
    await person.page.reload();
    return (await person.page.locator("main").innerText()).includes(text);
  });
}

/** Waits until the run of this page has ended, with this text. Scripts reload the page by themselves. */
async function runEndsWith(person, text) {
  const again = person.page.getByRole("button", { name: "Run again", exact: true });
  await until("the run to end", async () => {
    if (!person.scripts) await person.page.reload();
    return again.isVisible();
  });
  await person.seesText(text);
}

/** Makes an automation and returns it. */
async function automation(key, steps) {
  const slug = `a${Math.random().toString(36).slice(2)}`;
  const body = { name: "Tell the desk", slug, trigger: { type: "http" }, steps };
  const made = await call(system.base, "POST", "/api/automations", { key, body });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body;
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with" : "without";
  test(`a failed delivery is read, repeated with curl and sent again ${how} scripts`, async (story) => {
    const receiver = await Receiver.start();
    story.after(() => receiver.stop());
    receiver.status = 503;
    const ada = await signedIn(system, `deliveries-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    await ada.open("/console/webhooks");
    await ada.page.getByLabel("Address").fill(receiver.url);
    await ada.page.getByLabel("Name").fill("Desk");
    await ada.page.getByLabel(/^All forms/).check();
    await ada.click("button", "Make the webhook");
    await ada.click("link", "Go to the webhook");
    await ada.seesText("Nothing was sent yet.");
    await formWith(system, key, [HOSTILE]);
    await reloadUntil(ada, "Tries again");
    await ada.seesText("Last 24 hours");
    await ada.page.getByRole("link", { name: /^Delivery: submission.created/ }).click();
    await ada.page.getByText("Status 503").first().waitFor();
    await ada.seesText("⟨U+202E⟩");
    assert.notEqual(await ada.page.title(), "owned");

    const [sent] = receiver.received;
    const curl = await ada.page.locator("#curl").textContent();
    await promisify(execFile)("bash", ["-c", `${curl} --silent`]);
    const repeated = receiver.received.at(-1);
    assert.notEqual(repeated, sent);
    assert.equal(repeated.body, sent.body);
    for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature", "content-type"]) {
      assert.equal(repeated.headers[name], sent.headers[name], name);
    }
    receiver.status = 200;
    await ada.click("button", "Send again");
    await ada.seesText("It is being sent again.");
    await reloadUntil(ada, "Delivered");
    await ada.page.getByText("Status 200").waitFor();
    assert.deepEqual(ada.complaints, []);
  });

  test(`a webhook is edited, gets a new secret, and is switched off and deleted ${how} scripts`, async () => {
    const ada = await signedIn(system, `webhook-${how}@example.com`, { javaScriptEnabled });
    const key = await makeKey(ada);
    await formWith(system, key, []);
    const { body: hook } = await call(system.base, "POST", "/api/webhooks", { key, body: { url: "https://crm.example/in" } });
    await ada.open(`/console/webhooks/${hook.id}`);
    await ada.seesText("It hears of all forms");
    await ada.page.getByRole("link", { name: "Edit", exact: true }).click();
    await ada.page.getByLabel("Address").fill("http://nowhere");
    await ada.page.getByLabel("Only these").check();
    await ada.page.getByLabel("Contact").check();
    await ada.click("button", "Save");
    await ada.page.getByRole("alert").waitFor();
    assert.ok(await ada.page.getByLabel("Contact").isChecked(), "what was chosen stays");
    await ada.page.getByLabel("Address").fill("https://crm.example/new");
    await ada.click("button", "Save");
    await ada.seesText("Saved.");
    assert.equal(await ada.page.getByText("It hears of all forms").count(), 0);
    await ada.page.getByRole("link", { name: "Edit", exact: true }).click();
    await ada.click("button", "Make a new secret");
    const secret = await ada.page.locator("#secret").innerText();
    assert.ok(secret.startsWith("whsec_") && secret !== hook.secret, secret);
    await ada.click("link", "I have copied it");
    await ada.click("button", "Switch off");
    await ada.seesText("Switched off.");
    await ada.page.getByRole("link", { name: "Edit", exact: true }).click();
    await ada.page.getByText("Delete this webhook").click();
    await ada.click("button", "Delete it with its deliveries");
    await ada.seesText("No webhook yet");
    assert.deepEqual(ada.complaints, ada.complaints.filter((text) => text.includes("400")));
  });

  test(`an automation is made, fails, is mended and run again ${how} scripts`, async (story) => {
    const receiver = await Receiver.start();
    story.after(() => receiver.stop());
    const ada = await signedIn(system, `automation-${how}@example.com`, { javaScriptEnabled });
    await formWith(system, await makeKey(ada), []);
    await ada.open("/console/automations");
    const preset = ada.page.getByRole("form", { name: "Call an address on each submission" });
    await preset.getByLabel("Form").selectOption({ label: "Contact" });
    await preset.getByLabel("Address to call").fill(receiver.url);
    await preset.getByRole("button").click();
    await ada.seesText("The automation is made and switched on.");
    await ada.page.getByLabel("What the trigger brings").fill('{"name": "Mary"}');
    await ada.click("button", "Run it now");
    await ada.seesHeading("Run by a test");
    await runEndsWith(ada, "Done");
    assert.equal(JSON.parse(receiver.received[0].body).submission.name, "Mary");

    await ada.page.getByRole("link", { name: "Call an address on each submission" }).click();
    await ada.page.getByRole("link", { name: "Edit", exact: true }).click();
    const definition = ada.page.getByLabel("Trigger and steps");
    const text = await definition.inputValue();
    await definition.fill(text.replace('"url"', '"uri"'));
    await ada.click("button", "Save");
    await ada.page.getByRole("alert").waitFor();
    await ada.page.getByText(/^Line \d+, steps\[0\]/).first().waitFor();
    // A step without more attempts fails at once.
    await definition.fill(text.replace(/"retry": \{\s*"max": 3\s*\}/, '"timeoutMs": 5000'));
    await ada.click("button", "Save");
    await ada.seesText("Saved.");
    receiver.status = 500;
    await ada.click("button", "Run it now");
    await ada.seesHeading("Run by a test");
    await runEndsWith(ada, "Failed at call");
    assert.ok(await ada.page.locator("#step-1").evaluate((step) => step.open), "the failed step is open");
    assert.notEqual(await ada.page.title(), "owned");
    receiver.status = 200;
    await ada.page.getByRole("button", { name: "Run again", exact: true }).click();
    await ada.seesText("A new run was started.");
    await runEndsWith(ada, "Done");
    assert.deepEqual(ada.complaints, ada.complaints.filter((text) => text.includes("400")));
  });
}

test("the timeline of a live run follows it, and keeps what is open", async () => {
  const ada = await signedIn(system, "live@example.com");
  const steps = [
    { id: "begin", type: "set", values: { greeting: "Hello" } },
    { id: "pause", type: "wait", for: "20s" },
    { id: "end", type: "stop", status: "success", message: "All said" },
  ];
  const { id, triggerUrl } = await automation(await makeKey(ada), steps);
  const begun = await (await fetch(triggerUrl, { method: "POST" })).json();
  await ada.open(`/console/automations/${id}/runs/${begun.runId}`);
  const live = ada.page.locator("[data-live]");
  await live.getByText("Waiting", { exact: true }).first().waitFor();
  await ada.page.locator("#step-1 > summary").click();
  await ada.page.locator("#step-1 > summary").focus();
  // The story does not reload the page: it becomes that of the ended run by itself.
  await ada.page.getByText("All said").first().waitFor({ timeout: 60_000 });
  await ada.page.getByRole("button", { name: "Run again", exact: true }).waitFor();
  assert.equal(await live.count(), 0);
  assert.deepEqual(ada.complaints, []);
});

test("the screens of automations and deliveries are accessible and fit, full, empty and refused", async (story) => {
  const receiver = await Receiver.start();
  story.after(() => receiver.stop());
  receiver.status = 500;
  for (const options of VIEWPORTS) {
    const width = options.viewport.width;
    const ada = await signedIn(system, `automations-${width}@example.com`, options);
    const check = (state, paths) => checkScreens(ada, state, width, paths);
    await check("empty", { automations: "/console/automations" });
    const key = await makeKey(ada);
    const hook = (await call(system.base, "POST", "/api/webhooks", { key, body: { url: receiver.url } })).body;
    await formWith(system, key, [HOSTILE]);
    const url = `${receiver.url}?${"long=".repeat(30)}`;
    const made = await automation(key, [
      { id: "is_new", type: "condition", name: HOSTILE, branches: [{ if: "1 == 1", steps: [{ id: "note", type: "set", values: { a: HOSTILE } }] }], else: [{ id: "no", type: "stop", status: "success" }] },
      { id: "each", type: "for_each", items: "{{ [1, 2] }}", steps: [{ id: "one", type: "set", values: { b: "{{ item }}" } }] },
      { id: "call", type: "fetch", method: "POST", url, body: { text: HOSTILE } },
    ]);
    const page = `/console/automations/${made.id}`;
    const begun = await (await fetch(made.triggerUrl, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ HOSTILE }) })).json();
    const run = `${page}/runs/${begun.runId}`;
    await ada.open(run);
    await runEndsWith(ada, "Failed at call");
    const list = () => call(system.base, "GET", `/api/deliveries?webhookId=${hook.id}`, { key });
    const delivery = await until("an attempt", async () => (await list()).body.deliveries.find((one) => one.statusCode === 500));
    const webhook = `/console/webhooks/${hook.id}`;
    await check("full", {
      automations: "/console/automations",
      automation: page,
      runs: `${page}/runs`,
      run,
      edit: `${page}/edit`,
      webhook,
      delivery: `${webhook}/deliveries/${delivery.id}`,
      webhook_edit: `${webhook}/edit`,
    });
    await check("refused", {
      automation: `/console/automations/${hook.id}`,
      run: `${page}/runs/${hook.id}`,
      delivery: `${webhook}/deliveries/${hook.id}`,
      filter: `${webhook}?submissionId=nonsense`,
    });
    await ada.open(`${page}/edit`);
    await ada.page.getByLabel("Trigger and steps").fill('{"trigger": {"type": "http"}, "steps": [{"id": "a", "type": "fetch"}]}');
    await ada.click("button", "Save");
    await ada.page.getByRole("alert").waitFor();
    await ada.checkAccessibility(`console-definition-refused-${width}`);
  }
});
