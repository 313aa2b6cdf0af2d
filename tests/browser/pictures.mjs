// Makes the pictures of the console that the README shows, of an account with a month of traffic: tests/browser/run --pictures
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import { call } from "./browser_user.mjs";
import { makeKey, signedIn } from "./console/person.mjs";
import { start, until } from "./system.mjs";

const FOLDER = new URL("../../libs/console/docs/pictures/", import.meta.url);
const VISITS = 9000;

const ANSWERS = [
  ["Mary Somerville", "mary@mechanism.example", "Could you send the programme for the lecture on Thursday? I would bring two guests."],
  ["Charles Babbage", "charles@engine.example", "The second plate of the drawings is upside down on the page about the mill."],
  ["Sophie Germain", "sophie@elastic.example", "I would like to become a member. Is the fee per year or per meeting?"],
  ["George Boole", "george@logic.example", "Yes, and no."],
  ["Grace Hopper", "grace@compiler.example", "There is a moth in the relay of the demonstration unit. Photograph attached to the log."],
  ["Emmy Noether", "emmy@symmetry.example", "Thank you for the proceedings: they arrived safely."],
];

/** The visits of 60 days, with more of them each week and fewer at weekends. */
const visits = (site, account) => `
  SELECT number AS n, toUUID('${site}') AS site_id, toUUID('${account}') AS account_id, cityHash64(n, 1) AS h,
    toUInt32(61 * sqrt(n / ${VISITS})) AS day, toStartOfDay(now()) - toIntervalDay(60 - day) AS midnight,
    cityHash64(h % 4000, day) AS visitor,
    toDateTime64(midnight, 3, 'UTC') + toIntervalSecond(h % 80000) AS start,
    multiIf(h % 10 < 4, 1, h % 10 < 7, 2, h % 10 < 9, 3, 5) AS views,
    ['google.com', 'google.com', 'news.ycombinator.com', '', '', '', 'duckduckgo.com', 'mastodon.social'][1 + cityHash64(n, 2) % 8] AS referrer_host,
    ['Organic Search', 'Organic Search', 'Referral', 'Direct', 'Direct', 'Direct', 'Organic Search', 'Organic Social'][1 + cityHash64(n, 2) % 8] AS channel,
    ['GB', 'GB', 'DE', 'US', 'FR', 'NL', 'IN'][1 + cityHash64(n, 4) % 7] AS country,
    ['desktop', 'desktop', 'mobile', 'mobile', 'tablet'][1 + cityHash64(n, 5) % 5] AS device,
    ['Chrome', 'Firefox', 'Safari', 'Chrome'][1 + cityHash64(n, 6) % 4] AS browser,
    arrayMap(i -> ['/', '/programme', '/', '/membership', '/lectures/notes-on-the-engine', '/programme', '/contact', '/lectures/weaving-algebra'][1 + cityHash64(n, i, 7) % 8], range(views)) AS paths
  FROM numbers(${VISITS}) WHERE (toDayOfWeek(midnight) < 6 OR h % 3 = 0) AND start < now() - INTERVAL 1 HOUR`;

/** Stores the visits and their events. */
async function fill(stack, site, account) {
  const run = async (sql) => {
    const answer = await fetch(`${stack.clickhouse_url}/?database=webruntime`, {
      method: "POST",
      headers: { "x-clickhouse-user": stack.clickhouse_user, "x-clickhouse-key": stack.clickhouse_password },
      body: sql,
    });
    assert.ok(answer.ok, await answer.text());
  };
  await run(`INSERT INTO events (site_id, account_id, id, received_at, visitor, name, host, path, referrer_host, channel, country, device, browser, os)
    SELECT site_id, account_id, generateUUIDv4(), start + toIntervalSecond(e.1 * 45), visitor, e.2, 'society.example', paths[1 + e.1],
      if(e.1 = 0, referrer_host, ''), if(e.1 = 0, channel, 'Direct'), country, device, browser, 'Linux'
    FROM (${visits(site, account)}) ARRAY JOIN arrayConcat(arrayMap(i -> (i, 'page_view'), range(views)), if(h % 9 = 0, [(views - 1, 'join')], [])) AS e`);
  await run(`INSERT INTO sessions (site_id, account_id, visitor, start, ended, page_views, events, bounce, entry_host, entry_path, exit_path, referrer_host, channel, country, device, browser, os, version, deleted)
    SELECT site_id, account_id, visitor, start, start + toIntervalSecond((views - 1) * 45), views, views + (h % 9 = 0), views < 2 AND h % 9 != 0,
      'society.example', paths[1], paths[-1], referrer_host, channel, country, device, browser, 'Linux', 3, 0 FROM (${visits(site, account)})`);
}

/** A receiver that answers with `status`. */
async function receiver() {
  const server = createServer((request, answer) => {
    request.resume();
    request.on("end", () => answer.writeHead(made.status, { "content-type": "application/json" }).end('{"error": "the ledger is locked"}'));
  });
  const made = { status: 200, server };
  await once(server.listen(0, "127.0.0.1"), "listening");
  made.url = `http://127.0.0.1:${server.address().port}/crm`;
  return made;
}

const system = await start("signin.local=true", "upgrade.mode=instant");
const crm = await receiver();
try {
  const ada = await signedIn(system, "ada@society.example", { viewport: { width: 1280, height: 860 } });
  const key = await makeKey(ada);
  const ask = async (method, path, body) => {
    const answer = await call(system.base, method, path, { key, body });
    assert.ok(answer.status < 300, `${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  await ask("POST", "/api/account/upgrade", { plan: "scale" });
  const account = (await ask("GET", "/api/account")).id;
  const { site } = await ask("POST", "/api/analytics/sites", { name: "society.example", domain: "society.example" });
  await fill(system.stack, site.id, account);
  for (const [slug, title] of [["index", "The Analytical Society"], ["programme", "Programme"], ["membership", "Membership"]]) {
    await ask("POST", "/api/pages", { slug, title, html: `<!doctype html><title>${title}</title><h1>${title}</h1>` });
  }
  const fields = [
    { type: "text", name: "name", label: "Your name", required: true },
    { type: "email", name: "email", label: "E-mail address", required: true },
    { type: "select", name: "about", label: "What is it about?", display: "radio", options: ["A lecture", "Membership", "The journal"] },
    { type: "textarea", name: "message", label: "Message", required: true },
  ];
  const { formId } = await ask("POST", "/api/forms", { name: "Write to the society", fields, appearance: { accent: "#0f766e", radius: 8 } });
  const hook = await ask("POST", "/api/webhooks", { url: crm.url, description: "Member ledger" });
  const steps = [
    { id: "kind", type: "condition", name: "Is it about membership?", branches: [{ if: "trigger.body.about == 'Membership'", steps: [{ id: "greeting", type: "set", values: { text: "Welcome to the society, {{ trigger.body.name }}" } }] }], else: [{ id: "other", type: "set", values: { text: "Thank you for writing, {{ trigger.body.name }}" } }] },
    { id: "pause", type: "wait", for: "1s" },
    { id: "ledger", type: "fetch", name: "Write it into the ledger", method: "POST", url: crm.url, body: { name: "{{ trigger.body.name }}" } },
    { id: "end", type: "stop", status: "success", message: "In the ledger" },
  ];
  const automation = await ask("POST", "/api/automations", { name: "Greet a new member", slug: "greet", trigger: { type: "http" }, steps });
  const submit = ([name, email, message], at) => ask("POST", `/api/forms/${formId}/submit`, { name, email, message, about: fields[2].options[at % 3] });
  for (const [at, answer] of ANSWERS.slice(0, 3).entries()) await submit(answer, at);
  const deliveries = async () => (await ask("GET", `/api/deliveries?webhookId=${hook.id}`)).deliveries;
  await until("the deliveries", async () => (await deliveries()).filter((one) => one.statusCode === 200).length === 3);
  crm.status = 503;
  for (const [at, answer] of ANSWERS.slice(3).entries()) await submit(answer, at);
  await until("a failed delivery", async () => (await deliveries()).filter((one) => one.statusCode === 503).length === 3);
  crm.status = 200;
  const begun = await fetch(automation.triggerUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "Sophie Germain", about: "Membership" }),
  });
  const { runId } = await begun.json();
  const run = `/console/automations/${automation.id}/runs/${runId}`;
  await until("the run to end", async () => (await ask("GET", run.replace("/console", "/api"))).status === "success");
  const { submissions } = await ask("GET", `/api/forms/${formId}/submissions`);
  const failed = (await deliveries()).find((one) => one.statusCode === 503);

  const pictures = {
    overview: "/console",
    analytics: `/console/analytics/${site.id}?period=30d`,
    submissions: `/console/forms/${formId}/submissions/${submissions[2].id}`,
    builder: `/console/forms/${formId}/edit`,
    delivery: `/console/webhooks/${hook.id}/deliveries/${failed.id}`,
    run,
  };
  await mkdir(FOLDER, { recursive: true });
  for (const [name, path] of Object.entries(pictures)) {
    await ada.open(path);
    if (name === "builder") {
      await ada.click("button", "Show");
      await ada.page.frameLocator("iframe[name=preview]").getByLabel("Your name").waitFor();
    }
    await ada.page.screenshot({ path: new URL(`${name}.png`, FOLDER).pathname });
  }
  assert.deepEqual(ada.complaints, []);
} finally {
  crm.server.closeAllConnections();
  crm.server.close();
  await system.stop();
}
