// Scores the screens of the console with Lighthouse. Usage: node run.mjs BASE_URL; prints a JSON object per screen and line.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import lighthouse from "lighthouse";
import { call } from "../../browser/browser_user.mjs";

const { chromium } = createRequire(new URL("../../browser/system.mjs", import.meta.url))("playwright-core");
const CATEGORIES = ["performance", "accessibility", "best-practices"];
const base = process.argv[2];

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** An account with a page, a form with submissions, an analytics site, a webhook and an automation; returns the screens to score. */
async function screens(page) {
  await page.goto(`${base}/login/local`);
  await page.getByLabel("E-mail").fill("lighthouse@example.com");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL((url) => !url.pathname.startsWith("/login"));
  await page.goto(`${base}/console/keys`);
  await page.getByLabel("Name", { exact: true }).fill("lighthouse");
  await page.getByLabel(/^Everything/).check();
  await page.getByRole("button", { name: "Make the key" }).click();
  const key = await page.locator("#secret").innerText();
  const post = async (path, body) => {
    const answer = await call(base, "POST", path, { key, body });
    assert.ok(answer.status < 300, `${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const fields = [
    { type: "text", name: "name", label: "Name" },
    { type: "textarea", name: "message", label: "Message" },
  ];
  const { formId } = await post("/api/forms", { name: "Contact", fields });
  for (let number = 1; number <= 20; number += 1) await post(`/api/forms/${formId}/submit`, { name: `Visitor ${number}`, message: "Good morning." });
  const { site } = await post("/api/analytics/sites", { name: "engine.example" });
  const { id: hook } = await post("/api/webhooks", { url: "https://crm.example/hook" });
  const { id: folder } = await post("/api/folders", { name: "Society" });
  const submissions = await call(base, "GET", `/api/forms/${formId}/submissions`, { key });
  await page.goto(`${base}/console`);
  const links = await page.locator(".side nav a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
  // The only analytics site opens at once; this shows the list.
  const sections = links.map((path) => (path === "/console/analytics" ? `${path}?all=true` : path));
  return [
    "/login",
    ...sections,
    `/console/forms/${formId}`,
    `/console/forms/${formId}/submissions/${submissions.body.submissions[0].id}`,
    `/console/forms/${formId}/submissions/${submissions.body.submissions[0].id}/edit`,
    `/console/forms/${formId}/submissions/new`,
    `/console/forms/${formId}/erase`,
    `/console/analytics/${site.id}`,
    `/console/analytics/${site.id}/settings`,
    "/console/help",
    "/console/folders",
    `/console/folders/${folder}`,
    `/console/webhooks/${hook}`,
    `/console/forms/${formId}/edit`,
    `/console/forms/${formId}/details`,
    "/console/forms/new",
    `/console/analytics/${site.id}/visits`,
    `/console/analytics/${site.id}/funnels`,
    `/console/analytics/${site.id}/retention`,
    "/console/account/activity",
  ];
}

/** Audits an address. Chromium sometimes records no navigation: then there is nothing to judge, and Lighthouse asks to run again. */
async function audit(url) {
  for (let attempt = 1; ; attempt++) {
    const { lhr } = await lighthouse(url, { port, onlyCategories: CATEGORIES, disableStorageReset: true, logLevel: "error" });
    if (lhr.runtimeError?.code !== "NO_NAVSTART" || attempt === 3) {
      assert.equal(lhr.runtimeError, undefined, JSON.stringify(lhr.runtimeError));
      return lhr;
    }
  }
}

const port = await freePort();
const profile = await mkdtemp(join(tmpdir(), "web-runtime-lighthouse-"));
const args = [`--remote-debugging-port=${port}`, ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])];
// Lighthouse opens its pages in the default context, so the session must be there.
const context = await chromium.launchPersistentContext(profile, { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
try {
  for (const path of await screens(await context.newPage())) {
    const lhr = await audit(`${base}${path}`);
    const { pathname, search } = new URL(lhr.finalDisplayedUrl);
    assert.equal(pathname + search, path, "the screen led elsewhere");
    const scores = Object.fromEntries(CATEGORIES.map((name) => [name, Math.round(lhr.categories[name].score * 100)]));
    const failed = Object.values(lhr.audits).filter(({ score, scoreDisplayMode }) => score === 0 && scoreDisplayMode === "binary");
    const screen = path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "{id}");
    const interactive = Math.round(lhr.audits.interactive.numericValue);
    const shift = lhr.audits["cumulative-layout-shift"].numericValue;
    console.log(JSON.stringify({ screen, ...scores, interactive, shift, failed: failed.map(({ id }) => id) }));
  }
} finally {
  await context.close();
  await rm(profile, { recursive: true, force: true });
}
