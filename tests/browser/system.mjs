// A whole system of one's own, with two identity providers and a browser: what every story begins with.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PATIENCE_MS = 120_000;

/** Asks again until there is an answer. */
export async function until(what, ask) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Starts everything; `stop` ends it. Settings are as `section.key=value`. */
export async function start(...settings) {
  // Cookies know no ports: two providers under one address would sign each other's people out.
  const providers = [await Provider.start("a", "127.0.0.1"), await Provider.start("b", "127.0.0.2")];
  const dir = await mkdtemp(join(tmpdir(), "web-runtime-browser-"));
  const set = [...providers.flatMap((provider) => provider.settings()), ...settings];
  if (!process.env.STACK) throw new Error("tests/browser/run says which program is started");
  const orders = ["up", "--port", "0", "--dir", dir, ...set.flatMap((entry) => ["--set", entry])];
  const up = spawn(process.env.STACK, orders, {
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

/** A browser. Options are Playwright's. */
export function launch({ args = [], ...options } = {}) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // Root, as in containers, has no sandbox.
    args: process.getuid?.() === 0 ? ["--no-sandbox", ...args] : args,
    ...options,
  });
}

/** What runs, once every service says that it may take traffic. */
async function ready(dir, up) {
  if (up.exitCode !== null) throw new Error(`the system ended with ${up.exitCode}`);
  const text = await readFile(join(dir, "stack.json"), "utf8").catch(() => null);
  if (!text) return null;
  const file = JSON.parse(text);
  const asked = Object.values(file.services).map(async ({ metrics_url }) => {
    const answer = await fetch(metrics_url.replace("/metrics", "/readyz")).catch(() => null);
    return answer?.ok;
  });
  return (await Promise.all(asked)).every(Boolean) && file;
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
