#!/usr/bin/env python3
"""What an installation needs: connections, memory, disk and processor time, measured on one replica of each service.

    tests/bench/sizing.py [PROGRAM]             five minutes; PROGRAM is a local runner that is built already

A complete system with each service as a process. Pages are read, submissions, events and API calls are sent, so many of each;
CPU and memory come from /proc, connections from /metrics, sizes from the stores. A million generated events are inserted into
ClickHouse and merged, and events wait in segments while ClickHouse hangs. Writes deploy/docs/sizing.md.
"""

import argparse
import datetime
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import urllib.request

import analytics
import fixture
import webhooks

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = fixture.ROOT / "deploy/docs/sizing.md"
SERVICES = ("edge-server", "control-plane", "collector", "job-runner")
STORES = ("postgres", "redis", "clickhouse")
THREADS = 8
# Answers 503 of a machine that is busy with other things.
MAX_BUSY = 50
WAITING_EVENTS = 2_000
EVENTS = 1_000_000
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SETTINGS = ("forms.max_submissions_per_minute=1000000", "forms.max_submissions_per_day=1000000", "collector.events_per_minute=1000000")
# Replicas of edge, control plane, collector and job-runner.
SIZES = {"one of each": (1, 1, 1, 1), "Compose with `--replicas`": (2, 2, 2, 2), "Kubernetes, base": (2, 2, 3, 2), "large": (6, 3, 6, 4)}
# For migrations, backups, monitoring, and the superuser.
RESERVED = 15


class Usage:
    """Processor time and memory of services and stores."""

    def __init__(self, stack):
        self.stack = stack
        self.pids = {name: stack["services"][name]["pid"] for name in SERVICES} | {name: stack["stores"][name]["pid"] for name in STORES}

    def cpu(self):
        return {name: webhooks.cpu_seconds(pid) for name, pid in self.pids.items()}

    def memory_mb(self):
        """Memory that is not shared with others counts whole, shared memory by its share."""
        return {name: sum(pss_mb(one) for one in [pid, *webhooks.children(pid)]) for name, pid in self.pids.items()}


def pss_mb(pid):
    try:
        return int(re.search(r"^Pss:\s+(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)[1]) / 1024
    except (OSError, TypeError):
        return 0


def metrics(stack, service):
    with urllib.request.urlopen(stack["services"][service]["metrics_url"]) as answer:
        lines = re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", answer.read().decode(), re.MULTILINE)
    sums = {}
    for name, value in lines:
        sums[name] = sums.get(name, 0) + float(value)
    return sums


class Peaks:
    """The most memory and connections while something runs, within `with`."""

    def __init__(self, stack, usage):
        self.stack, self.usage, self.ended = stack, usage, threading.Event()
        self.memory, self.connections = dict.fromkeys(usage.pids, 0), dict.fromkeys(SERVICES, 0)

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def watch(self):
        while not self.ended.wait(0.5):
            for name, now in self.usage.memory_mb().items():
                self.memory[name] = max(self.memory[name], now)
            for name in SERVICES:
                self.connections[name] = max(self.connections[name], int(metrics(self.stack, name).get("webruntime_postgres_connections", 0)))


def send(stack, count, request):
    """Sends so many requests over kept connections. Every answer must be a success, but for a few by a busy machine."""
    numbers, lock, failures, retries = iter(range(count)), threading.Lock(), [], [None] * MAX_BUSY

    def work():
        connection = http.client.HTTPConnection("127.0.0.1", stack["http_port"], timeout=60)
        while not failures:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            method, path, body, headers = request(number)
            connection.request(method, path, body and json.dumps(body), headers | ({"content-type": "application/json"} if body else {}))
            response = connection.getresponse()
            content = response.read()
            if response.status == 503 and retries:
                retries.pop()
                time.sleep(0.5)
                continue
            if response.status not in (200, 201, 204):
                failures.append(f"{method} {path}: {response.status} {content[:200]}")

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(failures[0])
    return count / (time.monotonic() - began)


def until(condition, what, seconds=180):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not reached within {seconds} s: {what}")
        time.sleep(0.2)


def disk(stack):
    """Bytes of Postgres' tables with indexes, and of its log since it began."""
    found = fixture.query(stack, "select sum(pg_total_relation_size(oid)) from pg_class where relkind in ('r', 'm') and relnamespace = 'public'::regnamespace; "
                                 "select pg_current_wal_lsn() - '0/0'::pg_lsn")
    return [int(float(line)) for line in found.splitlines()]


def set_up(stack):
    receiver = fixture.free_port()
    key, account, form = webhooks.set_up(stack, receiver, hooks=0)
    base = stack["base_url"]
    fixture.call("POST", f"{base}/api/pages", key, {"slug": "index", "title": "A page", "html": "<p>text</p>" * 900})
    site = fixture.call("POST", f"{base}/api/analytics/sites", key, {"name": "Shop"})["site"]
    return key, account, form, site


def phases(stack, key, form, site):
    """What is sent, by kind."""
    host, base_host = f"{fixture.site_host(stack, key)}:{stack['http_port']}", stack["base_url"].split("//")[1]
    browser = {"host": base_host, "user-agent": BROWSER}
    page = lambda number: ("GET", "/", None, {"host": host, "user-agent": BROWSER, "accept-encoding": "gzip"})
    submission = lambda number: ("POST", f"/api/forms/{form}/submit", {"email": f"ana{number}@example.com", "message": "x" * 800}, browser)
    event = lambda number: ("POST", "/api/collect", {"siteToken": site["siteToken"], "name": "page_view", "url": f"https://shop.example/{number % 500}"}, browser)
    call = lambda number: ("GET", "/api/pages", None, {"host": base_host, "authorization": f"Bearer {key}"})
    return {"warm page of 10 KB": page, "submission of 1 KB": submission, "event": event, "API call (`GET /api/pages`)": call}


def waiting_bytes(stack, event):
    """Bytes of an event that waits in a segment, while ClickHouse hangs."""
    unsent = lambda: metrics(stack, "collector")["collector_segment_unsent_bytes"]
    pid = stack["stores"]["clickhouse"]["pid"]
    before = unsent()
    os.kill(pid, signal.SIGSTOP)
    try:
        send(stack, WAITING_EVENTS, event)
        time.sleep(1)
        return (unsent() - before) / WAITING_EVENTS
    finally:
        os.kill(pid, signal.SIGCONT)


def warehouse(stack, account):
    """Bytes of each table for a million events, merged."""
    site = "00000000-0000-7000-8000-000000000001"
    today = datetime.datetime.now(datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    clickhouse = analytics.ClickHouse(stack, account, site, today - datetime.timedelta(days=29), EVENTS)
    total, _ = clickhouse.fill()
    lines = clickhouse.query("select table, sum(bytes_on_disk) from system.parts where active and database = 'webruntime' group by table order by 2 desc format TabSeparated")
    return total, {table: int(size) for table, size in (line.split("\t") for line in lines.splitlines())}


def measure(stack, count):
    usage = Usage(stack)
    key, account, form, site = set_up(stack)
    kinds = phases(stack, key, form, site)
    time.sleep(10)
    idle = usage.memory_mb()
    rows, sizes = {}, None
    with Peaks(stack, usage) as peaks:
        for name, request in kinds.items():
            send(stack, 200, request)
            before, tables, began = usage.cpu(), disk(stack), time.monotonic()
            rate = send(stack, count, request)
            if name.startswith("event"):
                until(lambda: metrics(stack, "collector")["collector_segment_unsent_bytes"] == 0, "events are in ClickHouse")
            time.sleep(3)
            after = usage.cpu()
            rows[name] = rate, {one: (after[one] - before[one]) * 1000 / count for one in after}
            print(f"{name}: {rate:.0f}/s in {time.monotonic() - began:.0f} s", flush=True)
            if name.startswith("submission"):
                fixture.query(stack, "vacuum analyze submissions")
                sizes = [(now - then) / count for now, then in zip(disk(stack), tables)]
        waiting = waiting_bytes(stack, kinds["event"])
    limits = {name: int(metrics(stack, name)["webruntime_postgres_connections_max"]) for name in SERVICES}
    print("generating events", flush=True)
    events = warehouse(stack, account)
    return {"idle": idle, "peaks": peaks, "rows": rows, "sizes": sizes, "waiting": waiting, "limits": limits, "events": events, "count": count}


def write(found, build):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=fixture.ROOT, capture_output=True, text=True).stdout.strip()
    limits, peaks, (total, tables) = found["limits"], found["peaks"], found["events"]
    services = "\n".join(f"| {name} | {limits[name]} | {peaks.connections[name]} | {found['idle'][name]:.0f} MB | {peaks.memory[name]:.0f} MB |" for name in SERVICES)
    stores = "\n".join(f"| {name} |  |  | {found['idle'][name]:.0f} MB | {peaks.memory[name]:.0f} MB |" for name in STORES)
    sizes = "\n".join(f"| {name} | {' · '.join(map(str, replicas))} | {(most := sum(n * limits[one] for n, one in zip(replicas, SERVICES)))} | {-(-(most + RESERVED) // 10) * 10} |"
                      for name, replicas in SIZES.items())
    clickhouse = " · ".join(f"{table} {size / total:.1f}" for table, size in tables.items() if size / total >= 0.05)
    rows, log = found["sizes"]
    RESULTS.write_text(f"""# Sizing

Made by `tests/bench/sizing.py` on {datetime.date.today()} at {commit}: one replica of each service ({build}), {found['count']:,} requests of each kind over {THREADS} connections,
on {os.cpu_count()} cores shared with the stores and the clients.

## Connections and memory of a replica

| process | connections to Postgres, at most | seen | memory idle | memory under this load |
| --- | ---: | ---: | ---: | ---: |
{services}
{stores}

"At most" is the sum of `store.max_connections` and the connections that a service reserves. Memory is PSS. Postgres' is that of the sandbox's
settings; ClickHouse's that of libchdb. The caches of an edge grow up to `[cache]` in its settings, which is what its limit in
`deploy/compose` is made for; figures under full load are in `tests/bench`: [edge](../../tests/bench/edge.md), [collect](../../tests/bench/collect.md),
[webhooks](../../tests/bench/webhooks.md).

## `max_connections` of Postgres

| installation | replicas: edge · control plane · collector · job-runner | connections at most | `max_connections` |
| --- | --- | ---: | ---: |
{sizes}

The last column adds {RESERVED} for migrations, backups, monitoring and the superuser. During an update, old and new replicas run together: add
those of one replica of each service, or twice the number if all are replaced at once. A pooler in transaction mode is refused.

## Disk

| | bytes each | of a million |
| --- | ---: | ---: |
| event in ClickHouse, merged ({clickhouse} bytes) | {sum(tables.values()) / total:.1f} | {sum(tables.values()) / total:.0f} MB |
| event that waits in a segment while ClickHouse is away | {found['waiting']:.0f} | {found['waiting']:.0f} MB |
| submission of 1 KB in Postgres, with indexes | {rows:.0f} | {rows:.0f} MB |
| the same in Postgres' log (WAL), until it is archived or recycled | {log:.0f} | {log:.0f} MB |

So 100,000 submissions take {rows / 10:.0f} MB, and 1,000 events a second during an hour without ClickHouse take {found['waiting'] * 3.6 / 1000:.1f} GB of a collector's disk. A merge of
ClickHouse needs free space for the part that it writes.

{processor(found, build)}""")


def processor(found, build):
    """The section on processor time: that of earlier benchmarks, and what was measured here if this is a release build."""
    page = re.search(r"## browser:.*?\| edge \| [^|]+\| [^|]+\| [^|]+\| [^|]+\| ([\d.]+)", (HERE / "edge.md").read_text(), re.DOTALL)[1]
    steady, saturated = (re.search(rf"^\| {row} \|.*?\| ([\d.]+ · [\d.]+ · [\d.]+ · [\d.]+) \|", (HERE / "webhooks.md").read_text(), re.MULTILINE)[1]
                         for row in ("200 a second", "saturation, long"))
    collected = re.search(r"of the rates ([\d,]+)/s", (HERE / "collect.md").read_text())[1]
    text = f"""## Processor time

Milliseconds per request; also: processors per thousand requests a second. By release builds on two cores.

| request | time | from |
| --- | --- | --- |
| warm page of 10 KB, a browser's headers | edge {float(page) / 1000:.4f} | [edge](../../tests/bench/edge.md) |
| submission of 1 KB with its delivery, 200 a second | job-runner · edge · Postgres · Redis: {steady} | [webhooks](../../tests/bench/webhooks.md) |
| the same at saturation, when commits are shared by more requests | {saturated} | [webhooks](../../tests/bench/webhooks.md) |
| event | {collected} a second on two cores with their client: less than 0.04 of the collector | [collect](../../tests/bench/collect.md) |
"""
    if build != "release build":
        return text
    names = (*SERVICES, *STORES)
    cpu = "\n".join(f"| {kind} | {' | '.join(f'{times[name]:.2f}' for name in names)} | {sum(times.values()):.2f} |" for kind, (_, times) in found["rows"].items())
    return f"""{text}
Measured here, with {THREADS} connections that wait for each answer:

| request | {' | '.join(names)} | sum |
| --- | {' | '.join('---:' for _ in names)} | ---: |
{cpu}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="a local runner that is built already; without it, cargo builds one")
    parser.add_argument("--count", type=int, default=20_000, help="requests of each kind")
    arguments = parser.parse_args()
    is_debug = fixture.PROFILE == "dev" or "/debug/" in (arguments.program or "")
    with fixture.system(*SETTINGS, program=arguments.program) as stack:
        write(measure(stack, arguments.count), "debug build" if is_debug else "release build")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
