// A custom domain in a real browser: https with a certificate of its own, HTTP/2, and the tracker counting on it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Authority } from "./authority.mjs";
import { BrowserUser, call } from "./browser_user.mjs";
import { launch, startAt, until } from "./system.mjs";
import { LIKE_PEOPLE, Site, watch } from "./visits.mjs";

const PAGE = `<!doctype html><html><head><title>The shop</title></head>
<body><h1>The shop</h1><p>Kettles and cups.</p></body></html>`;

let authority, system, browser;
before(async () => {
  authority = await Authority.start();
  if (!authority) return;
  const started = await startAt(authority.http_port, ...authority.settings());
  // The base URL is that of https, for which this machine has no certificate.
  system = { ...started, base: `http://localhost:${started.stack.http_port}` };
  browser = await launch({
    ...LIKE_PEOPLE,
    args: [
      ...LIKE_PEOPLE.args,
      "--host-resolver-rules=MAP shop.example 127.0.0.1, MAP www.shop.example 127.0.0.1",
      `--ignore-certificate-errors-spki-list=${await authority.trustedKey()}`,
    ],
  });
});
after(async () => {
  await browser?.close();
  await system?.stop();
  await authority?.stop();
});

/** Adds a domain and publishes its proof. */
async function addDomain(key, body) {
  const added = await call(system.base, "POST", "/api/account/domains", { key, body });
  assert.equal(added.status, 201, JSON.stringify(added.body));
  const { name, value } = added.body.records.find(({ type }) => type === "TXT");
  await authority.addText(name, value);
  return added.body.id;
}

/** Waits until the domain has a certificate. */
async function isIssued(key, id) {
  await until("the certificate", async () => {
    const { body } = await call(system.base, "GET", `/api/account/domains/${id}`, { key });
    return body.sslStatus === "active";
  });
}

test("a custom domain is secure, speaks HTTP/2, is counted, and www leads to it", async (t) => {
  if (!authority) return t.skip("there is no ACME server");
  const site = await Site.make(system, { index: PAGE });
  const { key } = site;
  await call(system.base, "POST", "/api/account/upgrade", { key, body: { plan: "pro" } });
  const apex = await addDomain(key, { domain: "shop.example" });
  const www = await addDomain(key, { domain: "www.shop.example", redirectTo: apex });
  await isIssued(key, apex);
  await isIssued(key, www);

  const visitor = await BrowserUser.start({ base: system.base, browser });
  const sent = watch(visitor.context);
  const origin = `https://shop.example:${authority.tls_port}`;
  const response = await visitor.page.goto(`http://www.shop.example:${authority.http_port}/?from=www`);
  const path = [];
  for (let one = response.request(); one; one = one.redirectedFrom()) path.unshift(one.url());
  assert.deepEqual(path, [
    `http://www.shop.example:${authority.http_port}/?from=www`,
    `https://www.shop.example:${authority.tls_port}/?from=www`,
    `${origin}/?from=www`,
  ]);
  await visitor.seesHeading("The shop");
  const seen = await visitor.page.evaluate(() => ({
    title: document.title,
    origin: location.origin,
    isSecure: isSecureContext,
    protocol: performance.getEntriesByType("navigation")[0].nextHopProtocol,
  }));
  assert.deepEqual(seen, { title: "The shop", origin, isSecure: true, protocol: "h2" });
  const { issuer, protocol } = await response.securityDetails();
  assert.match(issuer, /^Pebble Intermediate CA/);
  assert.equal(protocol, "TLS 1.3");

  const [event] = await site.named("page_view", 1);
  assert.deepEqual([event.host, event.path, event.title], ["shop.example", "/", "The shop"]);
  assert.deepEqual(
    sent.map((request) => new URL(request.url()).origin),
    [origin],
  );
  await until("the visit in the analytics", async () => {
    const query = `/api/analytics/query?siteId=${site.id}&metric=page_views&period=today`;
    return (await call(system.base, "GET", query, { key })).body.total === 1;
  });
  await visitor.screenshot("custom-domain");
  await visitor.context.close();
});

test("a browser refuses a name without a certificate, and a certificate of an unknown authority", async (t) => {
  if (!authority) return t.skip("there is no ACME server");
  const context = await browser.newContext();
  const page = await context.newPage();
  const open = (host) => page.goto(`https://${host}:${authority.tls_port}/`).then(() => "opened", String);
  assert.match(await open("localhost"), /ERR_SSL_UNRECOGNIZED_NAME_ALERT/);
  const stranger = await launch({ args: ["--host-resolver-rules=MAP shop.example 127.0.0.1"] });
  const strange = await stranger.newPage();
  const refused = await strange.goto(`https://shop.example:${authority.tls_port}/`).then(() => "opened", String);
  assert.match(refused, /ERR_CERT_AUTHORITY_INVALID/);
  await stranger.close();
  await context.close();
});
