// What a stranger may get into a page of the console does not run, nor does a script that a stranger uploaded to its host.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { call } from "../browser_user.mjs";
import { start } from "../system.mjs";
import { makeKey, signedIn } from "./person.mjs";

let system;
before(async () => {
  system = await start("signin.local=true");
});
after(() => system?.stop());

/** Sends a script as the file of a submission; returns its address on the base host. */
async function uploadScript(key) {
  const fields = [{ type: "file", name: "paper", label: "Paper" }];
  const form = await call(system.base, "POST", "/api/forms", { key, body: { name: "Papers", fields } });
  assert.equal(form.status, 201, JSON.stringify(form.body));
  const body = new FormData();
  body.append("paper", new File(["globalThis.owned = 'a file';"], "paper.js", { type: "text/javascript" }));
  const path = `/api/forms/${form.body.formId}`;
  const sent = await fetch(`${system.base}${path}/submit`, { method: "POST", body, headers: { accept: "application/json" } });
  assert.equal(sent.status, 201, await sent.text());
  const list = await call(system.base, "GET", `${path}/submissions`, { key });
  return `${path}/files/${list.body.submissions[0].files[0].objectId}`;
}

test("XSS: neither an uploaded script, nor inline code, nor the script of another host runs on a page of the console", async () => {
  const ada = await signedIn(system, "injected@example.com");
  const file = await uploadScript(await makeKey(ada));
  const answer = await ada.context.request.get(`${system.base}${file}`);
  assert.equal(answer.status(), 200);
  assert.match(await answer.text(), /owned/, "the script can be loaded from this host");
  const injected = `<script src="${file}"></script><script>globalThis.owned = "inline"</script>
    <img src="/nothing.png" onerror="globalThis.owned = 'a handler'"><script src="data:text/javascript,owned=1"></script>
    <a id="link" href="javascript:globalThis.owned='a link'">Link</a><base href="https://evil.example/">
    <form id="form" action="https://evil.example/"><button>Send</button></form>
    <iframe src="https://evil.example/"></iframe>`;
  // As if a template had forgotten to escape: the headers are the console's own.
  const inject = async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    assert.ok(text.includes("</main>"));
    await route.fulfill({ response, body: text.replace("</main>", `${injected}</main>`) });
  };
  await ada.page.route("**/console", inject);
  await ada.page.addInitScript(() => {
    globalThis.blocked = [];
    document.addEventListener("securitypolicyviolation", (event) => globalThis.blocked.push(event.effectiveDirective));
  });
  await ada.open("/console");
  await ada.page.locator("#link").click();
  // Playwright's own click would wait for the page that the policy blocks.
  await ada.page.locator("#form button").evaluate((button) => button.click());
  const directives = ["base-uri", "form-action", "frame-src", "script-src-attr", "script-src-elem"];
  const blocked = async () => ada.page.evaluate(() => [...new Set(globalThis.blocked)].sort());
  await ada.page.waitForFunction((wanted) => wanted.every((one) => globalThis.blocked.includes(one)), directives);
  assert.deepEqual(await blocked(), directives);
  assert.equal(await ada.page.evaluate(() => globalThis.owned), undefined);
  assert.equal(new URL(ada.page.url()).pathname, "/console");
  // The same page without its policy runs them: the attack is a real one.
  await ada.page.unroute("**/console", inject);
  await ada.page.route("**/console", async (route) => {
    const response = await route.fetch();
    const headers = { ...response.headers() };
    delete headers["content-security-policy"];
    await route.fulfill({ response, headers, body: (await response.text()).replace("</main>", `${injected}</main>`) });
  });
  await ada.open("/console");
  await ada.page.waitForFunction(() => globalThis.owned !== undefined);
});
