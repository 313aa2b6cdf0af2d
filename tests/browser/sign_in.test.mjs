// Signing in and claiming in Chromium, with two real OpenID providers.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, test } from "node:test";
import { BrowserUser, call } from "./browser_user.mjs";
import { start, until } from "./system.mjs";

let system;
before(async () => {
  system = await start("signin.local=true");
});
after(() => system?.stop());

async function trial() {
  const { status, body } = await call(system.base, "POST", "/api/trial");
  assert.equal(status, 201);
  return body;
}

/** The account of a key; services cache the key for a second. */
async function claimed(key) {
  return until("the claim to be seen", async () => {
    const { body } = await call(system.base, "GET", "/api/account", { key });
    return body._meta.claimed && body;
  });
}

/** The robots header of a site. Node does not resolve names below localhost. */
async function robots(site) {
  const { port, host, pathname: path } = new URL(site);
  const request = http.get({ host: "127.0.0.1", port, path, headers: { host } });
  const [answer] = await once(request, "response");
  answer.resume();
  return answer.headers["x-robots-tag"] ?? "nothing";
}

test("a claimed trial stays after signing out, and a second trial joins the account", async () => {
  const first = await trial();
  const page = { slug: "index", title: "Hello", html: "<h1>Hello</h1>" };
  await call(system.base, "POST", "/api/pages", { key: first.key, body: page });
  const site = (await call(system.base, "GET", "/api/account", { key: first.key })).body.siteUrl;
  assert.equal(await robots(site), "noindex");

  const ada = await BrowserUser.start(system);
  await ada.open(first.claimUrl);
  await ada.seesHeading("Claim this trial");
  await ada.checkAccessibility("claim-signed-out");
  await ada.click("link", "Sign in to claim");
  await ada.seesHeading("Sign in");
  await ada.checkAccessibility("login-claiming");
  await ada.signInAt("A", "ada");
  await ada.seesHeading("Claim this trial");
  assert.equal(ada.page.url(), first.claimUrl);
  await ada.seesText(first.key.slice(0, "st_trial_".length + 4));
  await ada.checkAccessibility("claim-signed-in");
  await ada.click("button", "Claim this trial");
  await ada.seesHeading("Overview");
  await ada.open("/account");
  await ada.checkAccessibility("account");

  const account = await claimed(first.key);
  assert.equal(account.claimDeadline, null);
  await until("search engines to be let in", async () => (await robots(site)) === "nothing");

  await ada.click("button", "Sign out");
  await ada.seesHeading("Sign in");
  await ada.open("/account");
  await ada.seesHeading("Sign in");
  await ada.signInAt("A", "ada");
  await ada.seesHeading("Your account");
  await ada.seesText(account.id);

  const second = await trial();
  await ada.open(second.claimUrl);
  await ada.click("button", "Claim this trial");
  await ada.seesHeading("Overview");
  await ada.open("/account");
  const other = await claimed(second.key);
  await ada.seesText(other.id);
  await ada.checkAccessibility("account-of-two");
  await ada.click("button", `Switch to ${account.subdomain}`);
  await ada.seesText(account.id);
  await ada.open(second.claimUrl);
  await ada.seesHeading("This is yours already");
  await ada.checkAccessibility("claim-again");
});

test("the same e-mail address at another provider is a different identity", async () => {
  const { claimUrl, key } = await trial();
  const ada = await BrowserUser.start(system);
  await ada.open(claimUrl);
  await ada.click("link", "Sign in to claim");
  await ada.signInAt("A", "grace");
  await ada.click("button", "Claim this trial");
  await ada.seesHeading("Overview");
  await ada.open("/account");
  await ada.seesText("grace@example.com");
  await claimed(key);

  const namesake = await BrowserUser.start(system);
  await namesake.open("/login?returnTo=%2Fclaim%2Fmistyped");
  await namesake.signInAt("B", "grace");
  await namesake.seesHeading("Nothing to claim");
  await namesake.open("/account");
  await namesake.seesText("grace@example.com");
  await namesake.seesText("You have no account yet");
  await namesake.checkAccessibility("account-none");
  await namesake.open(claimUrl);
  await namesake.seesHeading("Already claimed");
});

test("everything works without JavaScript, and a key marked for revocation stops working", async () => {
  const { claimUrl, key } = await trial();
  const person = await BrowserUser.start(system, { javaScriptEnabled: false });
  await person.open(claimUrl);
  await person.click("link", "Sign in to claim");
  await person.signInAt("A", "noscript");
  await person.page.getByRole("checkbox", { name: /Revoke st_trial_/ }).check();
  await person.click("button", "Claim this trial");
  await person.seesHeading("Overview");
  await until("the key to stop", async () => (await call(system.base, "GET", "/api/account", { key })).status === 401);
  await person.click("button", "Sign out");
  await person.seesHeading("Sign in");
});

test("a user without a trial gets an account by signing in, and a key from its session", async () => {
  // The page itself has no scripts, so its policy allows no calls.
  const person = await BrowserUser.start(system, { bypassCSP: true });
  await person.open("/login");
  await person.signInAt("A", "newcomer");
  await person.seesHeading("Overview");
  await person.open("/account");
  await person.seesText("Yours since");
  const created = await person.page.evaluate(async () => {
    const body = JSON.stringify({ label: "from the browser" });
    const response = await fetch("/api/keys", { method: "POST", headers: { "content-type": "application/json" }, body });
    return { status: response.status, body: await response.json() };
  });
  assert.equal(created.status, 201, JSON.stringify(created.body));
  assert.equal((await call(system.base, "GET", "/api/account", { key: created.body.key })).status, 200);
});

test("a user whose claim failed creates an account by keyboard alone", async () => {
  const person = await BrowserUser.start(system);
  await person.open("/login?returnTo=%2Fclaim%2Fmistyped");
  await person.signInAt("A", "keys");
  await person.seesHeading("Nothing to claim");
  await person.open("/account");
  await person.seesText("You have no account yet");
  await person.page.keyboard.press("Tab");
  const outline = await person.page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid", "the focus is not visible");
  await person.page.keyboard.press("Enter");
  await person.seesText("Yours since");
});

test("CSRF: a site's page cannot sign its visitor out", async () => {
  const { key } = await trial();
  const html = `<form method="post" action="${system.base}/logout"><button>A free gift</button></form>`;
  const body = { slug: "index", title: "Trap", html };
  const { body: page } = await call(system.base, "POST", "/api/pages", { key, body });
  const person = await BrowserUser.start(system);
  await person.open("/login");
  await person.signInAt("A", "visitor");
  await person.seesHeading("Overview");
  await person.page.goto(page.subdomainUrl);
  await person.click("button", "A free gift");
  await person.seesHeading("Not from here");
  await person.open("/account");
  await person.seesHeading("Your account");
});

test("the pages comply with their own CSP", async () => {
  const { claimUrl } = await trial();
  const person = await BrowserUser.start(system);
  const complaints = [];
  person.page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  for (const path of ["/login", "/login/local", claimUrl]) await person.open(path);
  await person.signInLocally("local@example.com");
  for (const path of ["/account", claimUrl]) await person.open(path);
  await person.click("button", "Claim this trial");
  await person.seesHeading("Overview");
  await person.open("/account");
  const styled = await person.page.evaluate(() => getComputedStyle(document.querySelector("main")).maxWidth);
  assert.equal(styled, "576px", "the style sheet is blocked");
  assert.deepEqual(complaints.filter((text) => !text.includes("favicon")), []);
});

test("the local sign-in page accepts any address and says so", async () => {
  const person = await BrowserUser.start(system);
  await person.open("/login");
  await person.checkAccessibility("login");
  await person.click("link", "Sign in with any e-mail");
  await person.seesHeading("Local sign-in");
  await person.seesText("Local only, not for production.");
  await person.checkAccessibility("local");
  await person.signInLocally("ada@example.com");
});

test("pages are readable in dark mode and on a small screen", async () => {
  const { claimUrl } = await trial();
  const dark = { colorScheme: "dark", viewport: { width: 360, height: 740 } };
  const person = await BrowserUser.start(system, dark);
  await person.open("/login");
  await person.checkAccessibility("dark-login");
  await person.signInLocally("dark@example.com");
  await person.open(claimUrl);
  await person.checkAccessibility("dark-claim");
  await person.click("button", "Claim this trial");
  await person.seesHeading("Overview");
  await person.open("/account");
  await person.checkAccessibility("dark-account");
  const wide = await person.page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 360, `nothing sticks out: ${wide}`);
});
