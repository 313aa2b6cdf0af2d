// Somebody at a browser: what they do, in their words.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const screenshots = new URL("screenshots/", import.meta.url);

export class Person {
  /** Options are those of a browser context: `javaScriptEnabled`, `colorScheme`, `viewport`. */
  static async sitDown({ base, browser }, options = {}) {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(30_000);
    const page = await context.newPage();
    return Object.assign(new Person(), { base, context, page });
  }

  async open(path) {
    await this.page.goto(new URL(path, this.base).href);
  }

  async click(role, name) {
    await this.page.getByRole(role, { name }).click();
  }

  /** Waits until the page's heading is this. */
  async sees(heading) {
    await this.page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
  }

  async reads(text) {
    await this.page.getByText(text).first().waitFor();
  }

  /** From a page with its button, through the provider's own pages, and back. */
  async signInAt(provider, name) {
    await this.click("link", `Continue with Provider ${provider}`);
    const login = this.page.locator("input[name=login]");
    const consent = this.page.getByRole("button", { name: "Continue" });
    const back = this.page.locator("header", { hasText: "Web Runtime" });
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

  /** On the page where one types any e-mail. */
  async signInLocally(email) {
    await this.open("/login/local");
    await this.page.getByLabel("E-mail").fill(email);
    await this.click("button", "Sign in");
    await this.sees("Your account");
  }

  /** A picture of the page, for people to judge. */
  async picture(name) {
    await mkdir(screenshots, { recursive: true });
    await this.page.screenshot({ path: new URL(`${name}.png`, screenshots).pathname, fullPage: true });
  }

  /** That nobody is shut out of this page, as far as a program can tell; and a picture. */
  async looksAt(name) {
    await this.picture(name);
    await this.page.addScriptTag({ path: axe });
    const { violations } = await this.page.evaluate(() => globalThis.axe.run());
    const told = violations.map((one) => `${one.id}: ${one.help} ${one.nodes.map((node) => node.html)}`);
    assert.deepEqual(told, [], `${name} shuts somebody out`);
  }
}

/** A call of the API, with a key if there is one. */
export async function call(base, method, path, { key, body } = {}) {
  const headers = { ...(key && { authorization: `Bearer ${key}` }), ...(body && { "content-type": "application/json" }) };
  const answer = await fetch(new URL(path, base), { method, headers, body: body && JSON.stringify(body) });
  return { status: answer.status, headers: answer.headers, body: await answer.json().catch(() => null) };
}
