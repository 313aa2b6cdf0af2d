// The fixture of every story: a private system, two identity providers and a browser.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const TIMEOUT_MS = 120_000;

/** Polls until `poll` returns a value. */
export async function until(condition, poll) {
  const end = Date.now() + TIMEOUT_MS;
  for (;;) {
    const value = await poll();
    if (value) return value;
    if (Date.now() > end) throw new Error(`timed out waiting for ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Starts everything; `stop` ends it. Settings have the form `section.key=value`. */
export function start(...settings) {
  return startAt(0, ...settings);
}

/** The same at a port. */
export async function startAt(port, ...settings) {
  // Cookies ignore ports: two providers on one address would sign out each other's users.
  const providers = [await Provider.start("a", "127.0.0.1"), await Provider.start("b", "127.0.0.2")];
  const dir = await mkdtemp(join(tmpdir(), "web-runtime-browser-"));
  const set = [...providers.flatMap((provider) => provider.settings()), ...settings];
  if (!process.env.STACK) throw new Error("STACK is not set: start this with tests/browser/run");
  const arguments_ = ["up", "--detached", "--port", port, "--dir", dir, ...set.flatMap((entry) => ["--set", entry])];
  const up = spawn(process.env.STACK, arguments_, {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const file = await until("the system to be ready", () => ready(dir, up));
  await Promise.all(providers.map((provider) => provider.begin(file.base_url)));
  const browser = await launch();
  const stop = async () => {
    await browser.close();
    for (const provider of providers) provider.child.kill();
    up.kill("SIGTERM");
    await once(up, "exit");
    await rm(dir, { recursive: true, force: true });
  };
  return { base: file.base_url, stack: file, browser, stop };
}

/** Starts a browser with Playwright's options. */
export function launch({ args = [], ...options } = {}) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // Chromium's sandbox does not work as root.
    args: process.getuid?.() === 0 ? ["--no-sandbox", ...args] : args,
    ...options,
  });
}

/** Returns stack.json once every service is ready. */
async function ready(dir, up) {
  if (up.exitCode !== null) throw new Error(`the system ended with ${up.exitCode}`);
  const text = await readFile(join(dir, "stack.json"), "utf8").catch(() => null);
  if (!text) return null;
  const file = JSON.parse(text);
  const checks = Object.values(file.services).map(async ({ metrics_url }) => {
    const response = await fetch(metrics_url.replace("/metrics", "/readyz")).catch(() => null);
    return response?.ok;
  });
  return (await Promise.all(checks)).every(Boolean) && file;
}

class Provider {
  static async start(name, host) {
    const child = fork(new URL("provider.mjs", import.meta.url), [host], { silent: true });
    const [{ issuer }] = await once(child, "message");
    return Object.assign(new Provider(), { name, child, issuer });
  }

  settings() {
    const of = `signin.providers.${this.name}`;
    return [
      `${of}.issuer=${this.issuer}`,
      `${of}.client_id=web-runtime`,
      `${of}.client_secret=a-secret-between-the-two`,
      `${of}.label=Provider ${this.name.toUpperCase()}`,
    ];
  }

  async begin(base) {
    this.child.send({ callback: `${base}/api/auth/oauth/${this.name}/callback` });
    await once(this.child, "message");
  }
}
