// Signing in and claiming, as people do it: in Chromium, at two real OpenID providers.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, test } from "node:test";
import { Person, call } from "./person.mjs";
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

/** What the API says of a key's account; the key look-up is remembered for a second. */
async function claimed(key) {
  return until("the claim to be seen", async () => {
    const { body } = await call(system.base, "GET", "/api/account", { key });
    return body._meta.claimed && body;
  });
}

/** What a site tells search engines. Node itself doesn't know that every name below localhost is this machine. */
async function robots(site) {
  const { port, host, pathname: path } = new URL(site);
  const request = http.get({ host: "127.0.0.1", port, path, headers: { host } });
  const [answer] = await once(request, "response");
  answer.resume();
  return answer.headers["x-robots-tag"] ?? "nothing";
}

test("a trial is claimed, kept, found again after signing out, and joined by a second one", async () => {
  const first = await trial();
  const page = { slug: "index", title: "Hello", html: "<h1>Hello</h1>" };
  await call(system.base, "POST", "/api/pages", { key: first.key, body: page });
  const site = (await call(system.base, "GET", "/api/account", { key: first.key })).body.siteUrl;
  assert.equal(await robots(site), "noindex");

  // A context that lets axe in past the pages' own policy; the policy itself is held in the other stories.
  const ada = await Person.sitDown(system, { bypassCSP: true });
  await ada.open(first.claimUrl);
  await ada.sees("Claim this trial");
  await ada.looksAt("claim-signed-out");
  await ada.click("link", "Sign in to claim");
  await ada.sees("Sign in");
  await ada.looksAt("login-claiming");
  await ada.signInAt("A", "ada");
  await ada.sees("Claim this trial");
  assert.equal(ada.page.url(), first.claimUrl);
  await ada.reads(first.key.slice(0, "st_trial_".length + 4));
  await ada.looksAt("claim-signed-in");
  await ada.click("button", "Claim this trial");
  await ada.sees("Your account");
  await ada.looksAt("account");

  const account = await claimed(first.key);
  assert.equal(account.claimDeadline, null);
  await until("search engines to be let in", async () => (await robots(site)) === "nothing");

  await ada.click("button", "Sign out");
  await ada.sees("Sign in");
  await ada.open("/account");
  await ada.sees("Sign in");
  await ada.signInAt("A", "ada");
  await ada.sees("Your account");
  await ada.reads(account.id);

  const second = await trial();
  await ada.open(second.claimUrl);
  await ada.click("button", "Claim this trial");
  await ada.sees("Your account");
  const other = await claimed(second.key);
  await ada.reads(other.id);
  await ada.looksAt("account-of-two");
  await ada.click("button", `Switch to ${account.subdomain}`);
  await ada.reads(account.id);
  await ada.open(second.claimUrl);
  await ada.sees("This is yours already");
  await ada.looksAt("claim-again");
});

test("the same e-mail at another provider is somebody else", async () => {
  const { claimUrl, key } = await trial();
  const ada = await Person.sitDown(system);
  await ada.open(claimUrl);
  await ada.click("link", "Sign in to claim");
  await ada.signInAt("A", "grace");
  await ada.click("button", "Claim this trial");
  await ada.reads("grace@example.com");
  await claimed(key);

  const namesake = await Person.sitDown(system, { bypassCSP: true });
  await namesake.open("/login");
  await namesake.signInAt("B", "grace");
  await namesake.reads("grace@example.com");
  await namesake.reads("You have no account yet");
  await namesake.looksAt("account-none");
  await namesake.open(claimUrl);
  await namesake.sees("Already claimed");
});

test("everything works without JavaScript, and a key that is marked stops working", async () => {
  const { claimUrl, key } = await trial();
  const person = await Person.sitDown(system, { javaScriptEnabled: false });
  await person.open(claimUrl);
  await person.click("link", "Sign in to claim");
  await person.signInAt("A", "noscript");
  await person.page.getByRole("checkbox", { name: /Revoke st_trial_/ }).check();
  await person.click("button", "Claim this trial");
  await person.sees("Your account");
  await until("the key to stop", async () => (await call(system.base, "GET", "/api/account", { key })).status === 401);
  await person.click("button", "Sign out");
  await person.sees("Sign in");
});

test("whoever has no trial makes an account, by keyboard alone", async () => {
  const person = await Person.sitDown(system);
  await person.open("/login");
  await person.signInAt("A", "keys");
  await person.reads("You have no account yet");
  await person.page.keyboard.press("Tab");
  const outline = await person.page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, "solid", "one sees where one is");
  await person.page.keyboard.press("Enter");
  await person.reads("Yours since");
});

test("a site's page can not sign its visitor out", async () => {
  const { key } = await trial();
  const html = `<form method="post" action="${system.base}/logout"><button>A free gift</button></form>`;
  const body = { slug: "index", title: "Trap", html };
  const { body: page } = await call(system.base, "POST", "/api/pages", { key, body });
  const person = await Person.sitDown(system);
  await person.open("/login");
  await person.signInAt("A", "visitor");
  await person.sees("Your account");
  await person.page.goto(page.subdomainUrl);
  await person.click("button", "A free gift");
  await person.sees("Not from here");
  await person.open("/account");
  await person.sees("Your account");
});

test("the pages' policy is kept by the pages themselves", async () => {
  const { claimUrl } = await trial();
  const person = await Person.sitDown(system);
  const complaints = [];
  person.page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  for (const path of ["/login", "/login/local", claimUrl]) await person.open(path);
  await person.signInLocally("local@example.com");
  for (const path of ["/account", claimUrl]) await person.open(path);
  await person.click("button", "Claim this trial");
  await person.sees("Your account");
  const styled = await person.page.evaluate(() => getComputedStyle(document.querySelector("main")).maxWidth);
  assert.equal(styled, "576px", "the style is let in");
  assert.deepEqual(complaints.filter((text) => !text.includes("favicon")), []);
});

test("the local page signs anybody in and says what it is", async () => {
  const person = await Person.sitDown(system, { bypassCSP: true });
  await person.open("/login");
  await person.looksAt("login");
  await person.click("link", "Sign in with any e-mail");
  await person.sees("Local sign-in");
  await person.reads("Local only, not for production.");
  await person.looksAt("local");
  await person.signInLocally("ada@example.com");
  await person.sees("Your account");
});

test("pages can be read in the dark and on a small screen", async () => {
  const { claimUrl } = await trial();
  const dark = { bypassCSP: true, colorScheme: "dark", viewport: { width: 360, height: 740 } };
  const person = await Person.sitDown(system, dark);
  await person.open("/login");
  await person.looksAt("dark-login");
  await person.signInLocally("dark@example.com");
  await person.open(claimUrl);
  await person.looksAt("dark-claim");
  await person.click("button", "Claim this trial");
  await person.sees("Your account");
  await person.looksAt("dark-account");
  const wide = await person.page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 360, `nothing sticks out: ${wide}`);
});
