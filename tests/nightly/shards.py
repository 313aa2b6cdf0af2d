#!/usr/bin/env python3
"""Does the whole product work on two ClickHouse shards, and does a dead one delay only its own events?

    tests/nightly/shards.py [PROGRAM]              five minutes; PROGRAM is a local runner that is built already
    tests/nightly/shards.py [PROGRAM] --short      less than one: answers from both shards, and a dead one. Writes no table

Two processes of libchdb listen as ClickHouse servers do (tests/nightly/shards). On them: the migrations, events of sites of both
shards, the same questions to a stack with one server, a shard that is killed with -9 under load and comes back, and the deletion
of a site. Writes tests/nightly/shards.md.
"""

import contextlib
import datetime
import json
import pathlib
import random
import re
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "bench"), str(HERE / "shards")]

import fixture  # noqa: E402
import cluster as shards  # noqa: E402
from faults import packages  # noqa: E402

NOT_RUN = 77
EDGE = "the-token-of-the-edge-and-no-other"
# All sites are on one shard once in 2,048 runs; with six, they were once in 32.
SITES, VISITORS, EVENTS = 12, 60, 1_500
SHORT_EVENTS = 60
SENDERS, PAUSE_SECONDS = 6, 0.02
AWAY_SECONDS = 30
# After the kill, an event of a living shard's site must be counted within this time.
FRESH_SECONDS = 10
WAIT_SECONDS = 180
SETTINGS = [f"secrets.edge_token={EDGE}", "collector.events_per_minute=1000000", "collector.accept_event_time=true"]
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0"
QUERIES = ["metric=page_views", "metric=unique_visitors", "metric=visits", "metric=bounce_rate", "metric=avg_session_duration",
           "metric=views_per_visit", "metric=page_views&groupBy=day", "metric=page_views&breakdownBy=url",
           "metric=visits&breakdownBy=channel", "metric=bounce_rate&breakdownBy=entry_page", "metric=visits&compare=true"]


def until(what, condition, seconds=WAIT_SECONDS):
    """Waits for a condition and returns how long it took."""
    began = time.monotonic()
    while not (result := condition()):
        assert time.monotonic() - began < seconds, f"waited {seconds} s for {what}"
        time.sleep(0.1)
    return time.monotonic() - began


def metrics(stack):
    return urllib.request.urlopen(stack["services"]["collector"]["metrics_url"]).read().decode()


def metric(stack, name):
    return float(re.search(rf"^{name} (\S+)", metrics(stack), re.M).group(1))


def send(stack, site, visitor, path, at=None, name="page_view"):
    """Sends an event as the edge does."""
    body = {"siteToken": site["siteToken"], "name": name, "url": f"https://shop.example{path}"}
    headers = {"user-agent": BROWSER, "content-type": "text/plain", "x-edge-token": EDGE,
               "x-client-ip": f"10.1.{visitor // 250}.{visitor % 250 + 1}"} | ({"x-event-time": at.isoformat()} if at else {})
    url = f"{stack['services']['collector']['url']}/api/collect"
    assert urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=30).status == 204


def account(stack):
    """An account with sites and their addresses."""
    key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
    fixture.call("POST", f"{stack['base_url']}/api/account/upgrade", key, {"plan": "scale"})
    return key, [fixture.call("POST", f"{stack['base_url']}/api/analytics/sites", key, {"name": f"Shop {n}"})["site"] for n in range(SITES)]


def history():
    """The same events for every stack: site, visitor, path, time."""
    chance = random.Random(7)
    end = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=5)
    times = sorted(end - datetime.timedelta(seconds=chance.uniform(0, 3 * 3600)) for _ in range(EVENTS))
    return [(chance.randrange(SITES), chance.randrange(VISITORS), f"/page/{chance.randrange(9)}", at) for at in times]


def questions(stack, key, site):
    """Every question's answer, without what names the site or the stack."""
    base = f"{stack['base_url']}/api/analytics"
    steps = [{"event": "page_view", "filters": {"url": "/page/0"}}, {"event": "page_view"}]
    answers = [fixture.call("GET", f"{base}/query?siteId={site['id']}&period=7d&{query}", key) for query in QUERIES]
    funnel = {"siteId": site["id"], "period": "7d", "steps": steps}
    answers.append(fixture.call("POST", f"{base}/funnel", key, funnel))
    answers.append(fixture.call("POST", f"{base}/funnel/drop-off", key, {**funnel, "steps": [steps[0], {"event": "page_view", "filters": {"url": "/page/1"}}], "step": 2}))
    # The second time with the sums of settled days from memory.
    overview = f"{base}/overview?siteId={site['id']}&period=7d&compare=true&metric=page_views"
    answers += [fixture.call("GET", overview, key) for _ in range(2)]
    answers.append(fixture.call("POST", f"{base}/retention", key, {"siteId": site["id"], "period": "7d", "granularity": "day"}))
    answers.append(fixture.call("GET", f"{base}/sessions?siteId={site['id']}&period=7d&limit=100", key))
    answers[-1]["sessions"] = sorted((plain(one) for one in answers[-1]["sessions"]), key=json.dumps)
    return [plain(answer) for answer in answers]


def plain(answer):
    """An answer without what differs between two stacks: ids, hashes of visitors, usage."""
    return {key: value for key, value in answer.items() if key not in ("_meta", "_next", "siteId", "sessionHash", "nextCursor")}


def ask_one_server(program, events):
    """The questions' answers of a stack with one server."""
    with fixture.system(*SETTINGS, program=program) as stack:
        key, sites = account(stack)
        for site, visitor, path, at in events:
            send(stack, sites[site], visitor, path, at)
        wait_for_history(stack, key, sites, events)
        return [questions(stack, key, site) for site in sites]


def wait_for_history(stack, key, sites, events):
    def counted():
        listed = fixture.call("GET", f"{stack['base_url']}/api/analytics/sites", key)["sites"]
        return sum(site["eventCount"] for site in listed) == len(events) and metric(stack, "collector_segment_oldest_seconds") == 0
    until("the events to be counted", counted)


class Senders:
    """Sends events to all sites and counts, for each, those that were answered."""

    def __init__(self, stack, sites):
        self.stack, self.sites, self.ended, self.counts = stack, sites, threading.Event(), [0] * len(sites)
        self.threads = [threading.Thread(target=self.work, args=[n]) for n in range(SENDERS)]

    def work(self, number):
        turn = 0
        while not self.ended.wait(PAUSE_SECONDS):
            site = (number + turn) % len(self.sites)
            send(self.stack, self.sites[site], 100 + number * 10 + turn % 10, f"/live/{number}")
            self.counts[site] += 1
            turn += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def count(shard, site=None, table="events_local", what="count()"):
    where = f" WHERE site_id = '{site['id']}'" if site else ""
    return shard.query(f"SELECT {what} FROM {table}{where}", database="webruntime")


def wrong_visits(shard):
    """Visits that differ from the events of their visitors: every event here belongs to exactly one visit."""
    sql = ("SELECT count() FROM (SELECT site_id, visitor, count() AS e FROM events_local GROUP BY site_id, visitor) AS a FULL JOIN"
           " (SELECT site_id, visitor, sum(events) AS s FROM sessions_local FINAL GROUP BY site_id, visitor) AS b"
           " USING (site_id, visitor) WHERE e != s")
    return int(shard.query(sql, database="webruntime"))


@contextlib.contextmanager
def system_on(cluster, program):
    """The whole system on two shards."""
    settings = [f"warehouse.url={cluster.urls}", f"warehouse.cluster={shards.CLUSTER}", "warehouse.user=default"]
    with fixture.system(*SETTINGS, *settings, program=program) as stack:
        yield stack


def sites_by_shard(cluster, sites):
    own = {shard.number: [site for site in sites if int(count(shard, site))] for shard in cluster.shards}
    assert all(own.values()) and len(own[1]) + len(own[2]) == SITES, own
    return own


def check_short(program, folder, chdb):
    with shards.Cluster(chdb, folder) as cluster, system_on(cluster, program) as stack:
        first, second = cluster.shards
        key, sites = account(stack)
        events = range(SHORT_EVENTS)
        for number in events:
            send(stack, sites[number % SITES], number % 7, f"/page/{number}")
        wait_for_history(stack, key, sites, events)
        own = sites_by_shard(cluster, sites)
        print(f"{SHORT_EVENTS} events of {SITES} sites are counted, by both shards", flush=True)
        second.kill()
        (alive, *_), (away, *_) = own[1], own[2]
        send(stack, away, 1, "/away")
        for number in range(5):
            send(stack, alive, 1, f"/mark/{number}")
            took = until("an event of the living shard", lambda: first.query(
                f"SELECT count() FROM events_local WHERE path = '/mark/{number}'", database="webruntime") == "1", FRESH_SECONDS)
        query = f"{stack['base_url']}/api/analytics/query?period=7d&metric=page_views&siteId="
        total = fixture.call("GET", query + alive["id"], key)["total"]
        assert total == SHORT_EVENTS // SITES + 5, total
        overview = fixture.call("GET", f"{stack['base_url']}/api/analytics/overview?period=7d&compare=true&siteId={alive['id']}", key)
        views = {figure["metric"]: figure["total"] for figure in overview["figures"]}["page_views"]
        assert views == total, overview
        assert metric(stack, "collector_segment_unsent_bytes") > 0, "the event of the dead shard waits"
        print(f"with one shard, events of the other are counted, the last after {took:.1f} s", flush=True)
        second.start()
        until("the event that waited", lambda: fixture.call("GET", query + away["id"], key)["total"] == SHORT_EVENTS // SITES + 1)
        until("the backlog to be empty", lambda: metric(stack, "collector_segment_unsent_bytes") == 0)
        stored = [sum(int(count(shard, what=what)) for shard in cluster.shards) for what in ("count()", "uniqExact(id)")]
        assert stored == [SHORT_EVENTS + 6] * 2, stored
        print("the event that waited is counted once", flush=True)


def check(program, folder, chdb):
    events = history()
    expected = ask_one_server(program, events)
    print("one server has answered the questions", flush=True)
    rows = []
    with shards.Cluster(chdb, folder) as cluster:
        with system_on(cluster, program) as stack:
            first, second = cluster.shards
            key, sites = account(stack)
            for site, visitor, path, at in events:
                send(stack, sites[site], visitor, path, at)
            wait_for_history(stack, key, sites, events)
            answers = [questions(stack, key, site) for site in sites]
            for ours, theirs in zip(sum(answers, []), sum(expected, []), strict=True):
                assert ours == theirs, f"{str(ours)[:1000]}\n{str(theirs)[:1000]}"
            own = sites_by_shard(cluster, sites)
            rows.append((f"{len(QUERIES) + 6} questions about {SITES} sites, {len(own[1])} and {len(own[2])} of a shard", "as with one server"))
            print("two shards give the same answers", flush=True)

            began = [int(count(shard)) for shard in cluster.shards]
            with Senders(stack, sites) as senders:
                time.sleep(5)
                second.kill()
                killed = time.monotonic()
                marks, alive = [], own[1][0]
                while time.monotonic() < killed + AWAY_SECONDS:
                    name = f"/mark/{len(marks)}"
                    send(stack, alive, 900, name)
                    senders.counts[sites.index(alive)] += 1
                    marks.append(until("an event of the living shard", lambda: first.query(
                        f"SELECT count() FROM events_local WHERE path = '{name}'", database="webruntime") == "1", FRESH_SECONDS))
                oldest = metric(stack, "collector_segment_oldest_seconds")
                unsent = metric(stack, "collector_segment_unsent_bytes")
                assert oldest > AWAY_SECONDS * 0.8, f"the oldest event waits {oldest} s, says the metric"
                total = fixture.call("GET", f"{stack['base_url']}/api/analytics/query?siteId={alive['id']}&period=7d&metric=page_views", key)["total"]
                assert total > 0
                second.start()
                time.sleep(2)
            accepted = sum(senders.counts)
            stored = lambda: sum(int(count(shard)) for shard in cluster.shards) - sum(began)
            caught_up = until("every accepted event to be stored", lambda: stored() == accepted)
            until("the backlog to be empty", lambda: metric(stack, "collector_segment_unsent_bytes") == 0)
            unique = sum(int(count(shard, what="uniqExact(id)")) for shard in cluster.shards) - sum(began)
            assert unique == accepted, f"{accepted} accepted, {unique} different stored"
            for site, sent in zip(sites, senders.counts, strict=True):
                shard = first if site in own[1] else second
                history_of_site = sum(1 for event in events if sites[event[0]] is site)
                assert int(count(shard, site)) == sent + history_of_site, site
            until("the visits", lambda: sum(map(wrong_visits, cluster.shards)) == 0)
            rows.append((f"shard 2 killed for {AWAY_SECONDS} s under {accepted / (AWAY_SECONDS + 7):,.0f} events/s: events of shard 1's sites counted after",
                         f"{sum(marks) / len(marks):.1f} s on average, {max(marks):.1f} s at most"))
            rows.append(("its own events: the metric of the oldest segment, and their bytes on disk", f"{oldest:.0f} s, {unsent / 1e6:.1f} MB"))
            rows.append(("after its return: all events stored", f"{accepted:,} of {accepted:,} after {caught_up:.1f} s, 0 twice, 0 visits wrong"))
            print("a dead shard delayed only its own events", flush=True)

            took = []
            for site in (own[1][0], own[2][0]):
                fixture.call("DELETE", f"{stack['base_url']}/api/analytics/sites/{site['id']}", key)
                gone = lambda: all(count(shard, site, table) == "0" for shard in cluster.shards for table in ("events_local", "sessions_local", "returns_local"))
                took.append(until("the events of a deleted site to go", gone))
            rows.append(("a site of each shard deleted: its rows are gone on both after", f"{max(took):.1f} s at most"))
    return rows


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--short"]
    program = arguments[0] if arguments else None
    try:
        chdb = packages.libchdb()
    except packages.Missing as missing:
        print(missing)
        return NOT_RUN
    with tempfile.TemporaryDirectory(prefix="web-runtime-shards-") as folder:
        if "--short" in sys.argv:
            check_short(program, pathlib.Path(folder), chdb)
            return 0
        rows = check(program, pathlib.Path(folder), chdb)
    table = "\n".join(f"| {what} | {result} |" for what, result in rows)
    (HERE / "shards.md").write_text(f"""# Two ClickHouse shards

Made by `tests/nightly/shards.py`, {datetime.date.today()}: the whole system with its stores on one machine, two processes of libchdb as the shards.

| what | result |
| --- | --- |
{table}
""")
    print(table)


if __name__ == "__main__":
    sys.exit(main())
