#!/usr/bin/env python3
"""How fast are analytics queries? Each endpoint beside the leanest hand-written statement with the same result.

    tests/bench/analytics.py               about ten minutes
    tests/bench/analytics.py --events 100  the same over 100 million events; half an hour, and 15 GB of disk

Traffic of 200 sites over 30 days, half of it of one site, is generated in ClickHouse by INSERT … SELECT: visits first,
then their events. Then each query runs through the API for the large site and, alternating with it, as a hand-written
statement in ClickHouse, both over HTTP on this machine. "Cold" is the first run after the caches of marks and
uncompressed blocks were dropped (the page cache of the kernel stays) and an event of the first day came late, so that all
days are computed again; "warm" has the sums of settled days in memory. Writes tests/bench/analytics.md.
"""

import argparse
import datetime
import json
import pathlib
import shutil
import statistics
import time
import urllib.error
import urllib.parse
import urllib.request

import fixture

HERE = pathlib.Path(__file__).resolve().parent
# Warm and cold repetitions by millions of events.
REPETITIONS = {10: (9, 3), 100: (5, 2)}
# Events per visit of the traffic below.
EVENTS_PER_VISIT = 3.74

VISITS = """
SELECT number AS n, number % 30 AS day, intDiv(number, 30) % 3 AS slot, intDiv(number, 90) AS person,
  if(person % 2 = 0, toUUID('{site}'), toUUID(concat('00000000-0000-4000-8000-', leftPad(toString(cityHash64(person) % 199), 12, '0')))) AS site_id,
  cityHash64(person, day) AS visitor, cityHash64(n, 1) AS h,
  toDateTime64('{first}', 3, 'UTC') + toIntervalMillisecond(day * 86400000 + slot * 28800000 + h % 25200000) AS start,
  multiIf(h % 10 < 4, 1, h % 10 < 7, 2, h % 10 < 9, 3, 6) AS views,
  ['google.com', 'bing.com', 't.co', '', '', 'news.example'][1 + cityHash64(n, 2) % 6] AS referrer_host,
  ['Organic Search', 'Organic Search', 'Organic Social', 'Direct', 'Direct', 'Referral'][1 + cityHash64(n, 2) % 6] AS channel,
  if(cityHash64(n, 3) % 10 = 0, 'newsletter', '') AS utm_source,
  ['DE', 'US', 'FR', 'NP', 'BR', 'AU'][1 + cityHash64(person, 4) % 6] AS country,
  ['desktop', 'mobile', 'tablet'][1 + cityHash64(person, 5) % 3] AS device,
  ['Chrome', 'Firefox', 'Safari'][1 + cityHash64(person, 6) % 3] AS browser,
  arrayMap(i -> concat('/page/', toString(intDiv((cityHash64(n, i) % 1000) * (cityHash64(n, i) % 1000), 1000))), range(views)) AS paths
FROM numbers({offset}, {count})
"""
EVENTS = """
INSERT INTO events (site_id, account_id, id, received_at, visitor, name, host, path, referrer_host, utm_source, channel, country, device, browser, os, engagement_ms, scroll_depth)
SELECT site_id, toUUID('{account}'), generateUUIDv4(), start + toIntervalMillisecond(e.1 * 45000 + if(e.2 = 'engagement', 30000, 0)), visitor, e.2,
  'shop.example', paths[1 + e.1], if(e.1 = 0, referrer_host, ''), if(e.1 = 0, utm_source, ''), if(e.1 = 0, channel, 'Direct'), country, device, browser, 'Linux',
  if(e.2 = 'engagement', 5000 + h % 25000, 0), 50
FROM ({visits}) ARRAY JOIN arrayConcat(arrayMap(i -> (i, 'page_view'), range(views)),
  arrayMap(i -> (i, 'engagement'), arrayFilter(i -> i % 2 = 0, range(views))), if(h % 7 = 0, [(views - 1, 'sign up')], [])) AS e
"""
SESSIONS = """
INSERT INTO sessions (site_id, account_id, visitor, start, ended, page_views, events, bounce, entry_host, entry_path, exit_path, referrer_host, channel, utm_source, country, device, browser, os, engagement_ms, version, deleted)
SELECT site_id, toUUID('{account}'), visitor, start, start + toIntervalMillisecond((views - 1) * 45000 + if((views - 1) % 2 = 0, 30000, 0)),
  views, views + (h % 7 = 0), views < 2 AND h % 7 != 0, 'shop.example', paths[1], paths[-1], referrer_host, channel, utm_source, country, device, browser, 'Linux', 30000, 3, 0
FROM ({visits})
"""
REREPETITIONS = """
INSERT INTO returns (site_id, account_id, returner, name, day, epoch)
SELECT DISTINCT site_id, toUUID('{account}'), cityHash64(person, toStartOfMonth(start)), 'page_view', toDate(start), toStartOfMonth(start) FROM ({visits})
WHERE cityHash64(person, toDate(start)) % 4 = 0
"""

E = "site_id = '{site}' AND received_at >= '{first}' AND received_at < '{end}'"
S = "site_id = '{site}' AND start >= toDateTime64('{first}', 3, 'UTC') - INTERVAL 25 HOUR AND start < '{end}' AND ended >= '{first}'"
E7, S7 = E.replace("{first}", "{week}"), S.replace("{first}", "{week}")
JOIN = """FROM (SELECT visitor, received_at, {columns} FROM events WHERE {events}) AS e
INNER JOIN (SELECT visitor, start, ended FROM sessions FINAL WHERE {visits}) AS v USING (visitor) WHERE received_at >= start AND received_at <= ended"""
SECONDS = "toUnixTimestamp64Milli(ended) - toUnixTimestamp64Milli(start)"

# Name, query, the leanest statements with the same result.
QUERIES = [
    ("page_views", "metric=page_views", [f"SELECT count() FROM events WHERE {E} AND name = 'page_view'"]),
    ("unique_visitors", "metric=unique_visitors", [f"SELECT uniqExact(visitor) FROM sessions FINAL WHERE {S}"]),
    ("visits", "metric=visits", [f"SELECT count() FROM sessions FINAL WHERE {S}"]),
    ("bounce_rate", "metric=bounce_rate", [f"SELECT sum(bounce), count() FROM sessions FINAL WHERE {S}"]),
    ("avg_session_duration", "metric=avg_session_duration", [f"SELECT sum({SECONDS}), count() FROM sessions FINAL WHERE {S}"]),
    ("views_per_visit", "metric=views_per_visit", [f"SELECT sum(page_views), count() FROM sessions FINAL WHERE {S}"]),
    ("avg_time_on_page", "metric=avg_time_on_page", [
        "SELECT sum(engagement_ms), uniqExact(cityHash64(visitor, start, path)) "
        + JOIN.format(columns="engagement_ms, path", events=E + " AND name = 'engagement' AND engagement_ms > 0", visits=S)]),
    ("page_views by day", "metric=page_views&groupBy=day", [
        f"SELECT count() FROM events WHERE {E} AND name = 'page_view'",
        f"SELECT toDate(received_at) AS d, count() FROM events WHERE {E} AND name = 'page_view' GROUP BY d ORDER BY d"]),
    ("visits by hour", "metric=visits&groupBy=hour", [
        f"SELECT count() FROM sessions FINAL WHERE {S}",
        f"SELECT arrayJoin(if(toStartOfHour(start) = toStartOfHour(ended), [toStartOfHour(start)], arrayMap(i -> toStartOfHour(start) + toIntervalHour(i), range(toUInt32(dateDiff('hour', start, ended)) + 1)))) AS h, count() FROM sessions FINAL WHERE {S} GROUP BY h ORDER BY h"]),
    ("page_views by url", "metric=page_views&breakdownBy=url", [
        f"SELECT count() FROM events WHERE {E} AND name = 'page_view'",
        f"SELECT path, count() AS n FROM events WHERE {E} AND name = 'page_view' GROUP BY path ORDER BY n DESC, path LIMIT 10"]),
    ("visits by channel", "metric=visits&breakdownBy=channel", [
        f"SELECT count() FROM sessions FINAL WHERE {S}",
        f"SELECT channel, count() AS n FROM sessions FINAL WHERE {S} GROUP BY channel ORDER BY n DESC, channel LIMIT 10"]),
    ("bounce_rate by entry page", "metric=bounce_rate&breakdownBy=entry_page", [
        f"SELECT sum(bounce), count() FROM sessions FINAL WHERE {S}",
        f"SELECT entry_path, sum(bounce), count() AS n FROM sessions FINAL WHERE {S} GROUP BY entry_path ORDER BY n DESC, entry_path LIMIT 10"]),
    ("visits compared", "metric=visits&compare=true", [
        f"SELECT count() FROM sessions FINAL WHERE {S}",
        "SELECT count() FROM sessions FINAL WHERE site_id = '{site}' AND start >= toDateTime64('{before}', 3, 'UTC') AND start < '{first}'"]),
    ("page_views of a campaign", "metric=page_views&filters.utm_source=newsletter", [
        f"SELECT sum(page_views) FROM sessions FINAL WHERE {S} AND utm_source = 'newsletter'"]),
]
# All figures of a row; the bar is 60 ms at 10 million events.
KPI = f"SELECT sum(page_views), uniqExact(visitor), count(), sum(bounce), sum({SECONDS}) FROM sessions FINAL WHERE {S}"
FUNNEL = ("SELECT level, count() FROM (SELECT windowFunnel(90000000, 'strict_once')(toUInt64(toUnixTimestamp64Milli(received_at)), a, b, c) AS level "
    + JOIN.format(columns="name = 'page_view' AND path = '/page/0' AS a, name = 'page_view' AS b, name = 'sign up' AS c",
                  events=E + " AND name IN ('page_view', 'sign up')", visits=S) + " GROUP BY visitor, start) GROUP BY level")
# One scan, which collects the page views of every visit. It starts after the last event of the step instead of the one that completed it.
DROP_OFF = ("SELECT next, count() AS visits FROM (SELECT windowFunnel(90000000, 'strict_once')(toUInt64(toUnixTimestamp64Milli(received_at)), a, b) AS level,"
    " maxIf(received_at, a) AS done, arraySort(arrayFilter(v -> v.1 > done, groupArrayIf((received_at, path), name = 'page_view')))[1].2 AS next "
    + JOIN.format(columns="name, path, name = 'page_view' AND path = '/page/0' AS a, name = 'page_view' AND path = '/page/1' AS b",
                  events=E + " AND name = 'page_view'", visits=S) + " GROUP BY visitor, start HAVING level = 1) GROUP BY next ORDER BY visits DESC LIMIT 11")
# Besides cohorts, the response lists the days on which visitor ids were reset.
RETENTION = ["""SELECT toMonday(first) AS came, arrayJoin(periods) AS there, count() FROM (SELECT min(day) AS first, groupUniqArray(toMonday(day)) AS periods
FROM returns WHERE site_id = '{site}' AND name = 'page_view' GROUP BY returner) GROUP BY came, there""",
             "SELECT DISTINCT epoch FROM returns WHERE site_id = '{site}'"]
LIST = [f"SELECT count() FROM sessions FINAL WHERE {S7} AND page_views >= 2",
        f"SELECT visitor, start, ended, page_views, entry_path, exit_path, country, region, city, device FROM sessions FINAL WHERE {S7} AND page_views >= 2 ORDER BY start DESC LIMIT 50"]
REALTIME = ["SELECT uniqExact(visitor) FROM events WHERE site_id = '{site}' AND received_at >= now64(3) - INTERVAL 5 MINUTE AND name != 'engagement'"]


class ClickHouse:
    """Sends statements to ClickHouse directly."""

    def __init__(self, stack, account, site, first, count):
        self.url = stack["clickhouse_url"]
        self.user = {"user": stack["clickhouse_user"], "password": stack["clickhouse_password"]}
        self.names = {"account": account, "site": site, "first": first.isoformat(" ", "seconds")}
        day = datetime.timedelta(days=1)
        for name, at in {"end": first + 30 * day, "week": first + 23 * day, "before": first - 30 * day}.items():
            self.names[name] = at.isoformat(" ", "seconds")
        self.visits = int(count / EVENTS_PER_VISIT)

    def query(self, sql, **more):
        query = {"do_not_merge_across_partitions_select_final": 1, "database": "webruntime", **self.user, **more}
        address = f"{self.url}/?{urllib.parse.urlencode(query)}"
        try:
            return urllib.request.urlopen(urllib.request.Request(address, sql.encode()), timeout=1200).read().decode()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{error.read().decode()[:2000]}\n{sql}") from error

    def save(self, sql, file):
        """Writes the result to a file."""
        address = f"{self.url}/?{urllib.parse.urlencode({'database': 'webruntime', **self.user})}"
        with urllib.request.urlopen(urllib.request.Request(address, sql.encode()), timeout=1200) as answer, open(file, "wb") as target:
            shutil.copyfileobj(answer, target)

    def fill(self, step=5_000_000):
        for offset in range(0, self.visits, step):
            names = {**self.names, "offset": offset, "count": min(step, self.visits - offset)}
            visits = VISITS.format(**names)
            for insert in (EVENTS, SESSIONS, REREPETITIONS):
                self.query(insert.format(visits=visits, **names), max_memory_usage=12 << 30)
        # Each insert holds visits of all days. In production, parts overlap only within a day and are merged soon.
        for table in ("events", "sessions", "returns"):
            self.query(f"OPTIMIZE TABLE {table} FINAL")
        return [int(number) for number in self.query(
            f"SELECT count(), countIf(site_id = '{self.names['site']}') FROM events").split()]

    def drop_caches(self):
        """Drops ClickHouse's caches, and stores an event of the first day, so that no sums of settled days are found."""
        self.query("INSERT INTO events (site_id, account_id, id, received_at, visitor, name) VALUES "
                   f"('{self.names['site']}', '{self.names['account']}', generateUUIDv4(), '{self.names['first']}', 1, 'late')")
        self.query("SYSTEM DROP MARK CACHE")
        self.query("SYSTEM DROP UNCOMPRESSED CACHE")


def took(work):
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def compare(clickhouse, query, statements, repetitions):
    """Milliseconds of the query and the statements: cold, then warm in alternation."""
    lean = [statement.format(**clickhouse.names) for statement in statements]
    hand = lambda: [clickhouse.query(statement) for statement in lean]
    warm, cool = repetitions
    cold = []
    for _ in range(cool):
        clickhouse.drop_caches()
        cold.append(took(query))
    query(), hand()
    turns = [(took(query), took(hand)) for _ in range(warm)]
    ours, theirs = [statistics.median(turn[at] for turn in turns) for at in (0, 1)]
    p95 = statistics.quantiles([turn[0] for turn in turns], n=20)[-1]
    return statistics.median(cold), ours, p95, theirs, statistics.median(turn[0] / turn[1] for turn in turns)


def measure(stack, millions):
    base = stack["base_url"]
    trial = fixture.call("POST", f"{base}/api/trial")
    key = trial["key"]
    account = fixture.call("GET", f"{base}/api/account", key)["id"]
    site = fixture.call("POST", f"{base}/api/analytics/sites", key, {"name": "Large"})["site"]["id"]
    today = datetime.datetime.now(datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    clickhouse = ClickHouse(stack, account, site, today - datetime.timedelta(days=29), millions * 1_000_000)
    print(f"generating {millions} million events", flush=True)
    events, own = clickhouse.fill()
    get = lambda path: lambda: fixture.call("GET", f"{base}/api/analytics/{path}", key)
    post = lambda path, body: lambda: fixture.call("POST", f"{base}/api/analytics/{path}", key, {"siteId": site, **body})
    steps = [{"event": "page_view", "filters": {"url": "/page/0"}}, {"event": "page_view"}, {"event": "sign up"}]
    drop_off = [{"event": "page_view", "filters": {"url": f"/page/{number}"}} for number in range(2)]
    cases = [(name, get(f"query?siteId={site}&period=30d&{query}"), lean) for name, query, lean in QUERIES]
    cases += [
        ("realtime", get(f"realtime?siteId={site}"), REALTIME),
        ("sessions, newest 50 of 7 days", get(f"sessions?siteId={site}&period=7d"), LIST),
        ("funnel of 3 steps", post("funnel", {"period": "30d", "steps": steps}), [FUNNEL]),
        ("where visits left a funnel", post("funnel/drop-off", {"period": "30d", "steps": drop_off, "step": 2}), [DROP_OFF]),
        ("retention by week", post("retention", {"period": "30d", "granularity": "week"}), RETENTION),
    ]
    rows, repetitions = [], REPETITIONS.get(millions, REPETITIONS[10])
    for name, query, lean in cases:
        rows.append((name, *compare(clickhouse, query, lean, repetitions)))
        print("  {}: cold {:.0f}, {:.0f} ms, p95 {:.0f}; by hand {:.0f}: {:.2f}".format(*rows[-1]), flush=True)
    kpi = statistics.median(took(lambda: clickhouse.query(KPI.format(**clickhouse.names))) for _ in range(repetitions[0]))
    return events, own, kpi, rows


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--events", type=int, default=10, help="millions of events")
    millions = arguments.parse_args().events
    with fixture.system("analytics.max_rows=2_000_000_000") as stack:
        events, own, kpi, rows = measure(stack, millions)
    lines = [f"| {name} | {cold:.0f} | {ours:.0f} | {p95:.0f} | {lean:.0f} | {ratio:.2f} |" for name, cold, ours, p95, lean, ratio in rows]
    text = f"""# Analytics queries, {millions} million events

`tests/bench/analytics.py --events {millions}`: {events:,} events of 200 sites in 30 days, {own:,} of them of the queried site; milliseconds.
"By hand" is the leanest ClickHouse statement with the same result, run in alternation. The bar is 1.3 times that. "Cold" computes
all days, "warm" those that are not settled.

| query, 30 days | cold | warm | p95 | by hand | times |
| --- | --- | --- | --- | --- | --- |
""" + "\n".join(lines) + f"""

All figures of a row at once (page views, visitors, visits, bounces, durations), warm: {kpi:.0f} ms; the bar is 60 ms at 10
million events on 2 threads.
"""
    name = "analytics.md" if millions == 10 else f"analytics-{millions}m.md"
    (HERE / name).write_text(text)
    print(text)


if __name__ == "__main__":
    main()
