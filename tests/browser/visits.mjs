// Fixtures of the stories about visits: analytics sites, third-party pages, and the stored events in ClickHouse.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { call } from "./browser_user.mjs";
import { until } from "./system.mjs";

/** A browser that pages cannot recognise as automated and that keeps pages in the back/forward cache. */
export const LIKE_PEOPLE = {
  args: [
    "--disable-blink-features=AutomationControlled",
    "--user-agent=Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
  ],
  ignoreDefaultArgs: ["--disable-back-forward-cache"],
};

/** An account's analytics site. */
export class Site {
  /** With `pages` (HTML by slug), the pages are hosted by the system and counted without a tag. */
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

  /** The script tag for third-party pages, with attributes such as ` data-hash`. */
  tag(attributes = "") {
    return `<script defer src="${this.system.base}/script.js" data-site="${this.token}"${attributes}></script>`;
  }

  /** All stored events of the site, by time. */
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

  /** The events of one name, once `count` of them are stored. */
  async named(name, count) {
    const here = async () => (await this.events()).filter((event) => event.name === name);
    await until(`${count} × ${name}`, async () => (await here()).length >= count);
    const events = await here();
    assert.equal(events.length, count, JSON.stringify(events));
    return events;
  }
}

/** Serves third-party pages by path; other requests are recorded in `requested`. */
export async function serve(pages) {
  const requested = [];
  const server = http.createServer((request, answer) => {
    const page = pages[new URL(request.url, "http://here").pathname];
    if (page === undefined) requested.push(request.url);
    answer.statusCode = page === undefined ? 404 : 200;
    answer.setHeader("content-type", "text/html").end(page ?? "<!doctype html><title>Nothing</title>");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  // A failed story does not call stop.
  server.unref();
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { address: `http://127.0.0.1:${server.address().port}`, port: server.address().port, requested, stop };
}

/** Records the events that a browser sends. */
export function watch(context) {
  const sent = [];
  context.on("request", (request) => {
    if (request.url().endsWith("/collect")) sent.push(request);
  });
  return sent;
}
