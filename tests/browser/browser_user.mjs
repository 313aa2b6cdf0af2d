// A user in a browser: actions and checks in a user's terms.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { afterEach } from "node:test";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const screenshots = new URL("screenshots/", import.meta.url);

// A page that stays open goes on asking for its live parts, beside the tests that follow. Pictures are made without a runner.
const contexts = [];
if (process.env.NODE_TEST_CONTEXT) afterEach(() => Promise.all(contexts.splice(0).map((context) => context.close())));

export class BrowserUser {
  /** Options are those of a browser context: `javaScriptEnabled`, `colorScheme`, `viewport`. */
  static async start({ base, browser }, options = {}) {
    const context = await browser.newContext(options);
    contexts.push(context);
    context.setDefaultTimeout(30_000);
    const page = await context.newPage();
    return Object.assign(new BrowserUser(), { base, context, page });
  }

  async open(path) {
    await this.page.goto(new URL(path, this.base).href);
  }

  async click(role, name) {
    await this.page.getByRole(role, { name }).click();
  }

  /** Waits until the page has this heading. */
  async seesHeading(heading) {
    await this.page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
  }

  async seesText(text) {
    await this.page.getByText(text).first().waitFor();
  }

  /** Signs in through the provider's pages, starting at a page with its button. */
  async signInAt(provider, name) {
    await this.click("link", `Continue with Provider ${provider}`);
    const login = this.page.locator("input[name=login]");
    const consent = this.page.getByRole("button", { name: "Continue" });
    const back = this.page.locator("header", { hasText: "Web Runtime" }).or(this.page.locator("#main"));
    await login.or(consent).or(back).first().waitFor();
    if (await login.isVisible()) {
      await login.fill(name);
      await this.page.locator("input[name=password]").fill("anything");
      await this.page.locator("button[type=submit]").click();
      await consent.or(back).first().waitFor();
    }
    if (await consent.isVisible()) await consent.click();
    await back.waitFor();
  }

  /** Signs in on the local sign-in page, which accepts any e-mail address. */
  async signInLocally(email) {
    await this.open("/login/local");
    await this.page.getByLabel("E-mail").fill(email);
    await this.click("button", "Sign in");
    await this.seesHeading("Overview");
  }

  /** Saves a screenshot for visual review, if SCREENSHOTS is set: each takes a quarter of a second. */
  async screenshot(name) {
    if (!process.env.SCREENSHOTS) return;
    await mkdir(screenshots, { recursive: true });
    await this.page.screenshot({ path: new URL(`${name}.png`, screenshots).pathname, fullPage: true });
  }

  /** Checks the page with axe, in both colour schemes, and saves a screenshot of the first. */
  async checkAccessibility(name) {
    await this.screenshot(name);
    // Unlike a script of the page, this passes the page's own policy.
    await this.page.evaluate(axe);
    // The rule of WCAG 2.2 is off unless asked for.
    await this.passesAxe(name, { rules: { "target-size": { enabled: true } } });
    const dark = await this.page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
    await this.page.emulateMedia({ colorScheme: dark ? "light" : "dark" });
    await this.page.evaluate(async () => {
      const transitions = document.getAnimations().filter((one) => one instanceof CSSTransition);
      await Promise.all(transitions.map((one) => one.finished));
    });
    // Nothing else differs.
    await this.passesAxe(`${name} in the other colours`, { runOnly: ["color-contrast", "link-in-text-block"] });
    await this.page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
  }

  async passesAxe(name, options) {
    // Only violations leave the page: what passed is most of its markup.
    const found = await this.page.evaluate(async (options) => {
      const { violations } = await globalThis.axe.run(options);
      return violations.map((one) => `${one.id}: ${one.help} ${one.nodes.map((node) => node.html)}`);
    }, { ...options, resultTypes: ["violations"] });
    assert.deepEqual(found, [], `${name} has accessibility violations`);
  }
}

/** Sends an API request, with a key if given. */
export async function call(base, method, path, { key, body } = {}) {
  const headers = { ...(key && { authorization: `Bearer ${key}` }), ...(body && { "content-type": "application/json" }) };
  const response = await fetch(new URL(path, base), { method, headers, body: body && JSON.stringify(body) });
  return { status: response.status, headers: response.headers, body: await response.json().catch(() => null) };
}
