// What stories about visits need: counted sites, pages of somebody else's, and what came of it in ClickHouse.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { call } from "./person.mjs";
import { until } from "./system.mjs";

/** A browser as people have it: not driven by a program, as far as pages can tell, and keeping pages for "back". */
export const LIKE_PEOPLE = {
  args: [
    "--disable-blink-features=AutomationControlled",
    "--user-agent=Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
  ],
  ignoreDefaultArgs: ["--disable-back-forward-cache"],
};

/** An account's counted site. */
export class Site {
  /** With `pages` (HTML by slug) they are hosted here, and counted without a tag of their own. */
  static async make(system, pages) {
    const { key } = (await call(system.base, "POST", "/api/trial")).body;
    const ask = async (path, body) => {
      const made = await call(system.base, "POST", path, { key, body });
      assert.equal(made.status, 201, JSON.stringify(made.body));
      return made.body;
    };
    let url, subdomainId;
    for (const [slug, html] of Object.entries(pages ?? {})) {
      const { subdomainUrl } = await ask("/api/pages", { slug, title: slug, html });
      if (slug === "index") url = subdomainUrl;
    }
    if (pages) {
      const { subdomains } = (await call(system.base, "GET", "/api/account/subdomains", { key })).body;
      subdomainId = subdomains[0].id;
    }
    const { site } = await ask("/api/analytics/sites", { name: "Shop", subdomainId });
    return Object.assign(new Site(), { system, key, url, id: site.id, token: site.siteToken });
  }

  /** The tag for pages elsewhere. Attributes are as they stand in it: ` data-hash`. */
  tag(attributes = "") {
    return `<script defer src="${this.system.base}/script.js" data-site="${this.token}"${attributes}></script>`;
  }

  /** Everything stored of it, in order of time. */
  async events() {
    const { clickhouse_url, clickhouse_user, clickhouse_password } = this.system.stack;
    const columns =
      "name, host, path, title, referrer_host, utm_source, screen, props, engagement_ms, scroll_depth, toString(visitor) AS visitor, toInt64(toUnixTimestamp64Milli(received_at)) AS at";
    const answer = await fetch(`${clickhouse_url}/?database=webruntime&default_format=JSONEachRow`, {
      method: "POST",
      headers: { "x-clickhouse-user": clickhouse_user, "x-clickhouse-key": clickhouse_password },
      body: `SELECT ${columns} FROM events WHERE site_id = '${this.id}' ORDER BY received_at, id`,
    });
    const text = await answer.text();
    assert.ok(answer.ok, text);
    const read = (line) => ({ ...JSON.parse(line), at: Number(JSON.parse(line).at) });
    return text.split("\n").filter(Boolean).map(read);
  }

  /** The same, once there are so many of that name: all in a browser's time, these in order. */
  async named(name, count) {
    const here = async () => (await this.events()).filter((event) => event.name === name);
    await until(`${count} × ${name}`, async () => (await here()).length >= count);
    const events = await here();
    assert.equal(events.length, count, JSON.stringify(events));
    return events;
  }
}

/** Pages of somebody else's, by path, on this machine; what else they ask for is remembered as `asked`. */
export async function serve(pages) {
  const asked = [];
  const server = http.createServer((request, answer) => {
    const page = pages[new URL(request.url, "http://here").pathname];
    if (page === undefined) asked.push(request.url);
    answer.statusCode = page === undefined ? 404 : 200;
    answer.setHeader("content-type", "text/html").end(page ?? "<!doctype html><title>Nothing</title>");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  // A story that fails doesn't come to its end.
  server.unref();
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { address: `http://127.0.0.1:${server.address().port}`, port: server.address().port, asked, stop };
}

/** What a page's browser sends to be counted, as it is sent. */
export function watch(context) {
  const sent = [];
  context.on("request", (request) => {
    if (request.url().endsWith("/collect")) sent.push(request);
  });
  return sent;
}
