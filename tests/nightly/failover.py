#!/usr/bin/env python3
"""Stores that fail, disks that are full and clocks that are wrong, under load: is anything lost that was accepted?

    tests/nightly/failover.py [PROGRAM] [--only postgres,redis,disk,clocks]       ten minutes; PROGRAM is a local runner that is built already

- postgres: Patroni, etcd and HAProxy with the settings of deploy/docs/failover.md. Postgres alone is killed; then the machine.
- redis: three Sentinels; the primary is killed.
- disk: the collector's segments and Postgres' data each on a tmpfs that is filled and freed again. Needs root.
- clocks: each service has a clock of its own (libfaketime): minutes apart, and jumping by a day and back by an hour.

Meanwhile pages are read, submissions, events and changes of a page are sent, ten of each per second, and a real Prometheus
has the alerts with minutes made seconds. Afterwards everything that was acknowledged must be stored, counted and delivered,
by its number. The programs are Debian's packages, unpacked into a cache. Writes tests/nightly/failover.md.
"""

import argparse
import contextlib
import datetime
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

import fixture  # noqa: E402
from faults import alerts, clocks, disk, load, packages, patroni, sentinels, wait  # noqa: E402

NOT_RUN = 77
RESULTS = HERE / "failover.md"
BEFORE_SECONDS, AFTER_SECONDS = 5, 5
ERRORS = ("ApiErrors", "EdgeErrors")
# Postgres alone is replaced as soon as Patroni sees it; a machine only after its lock ran out (`ttl`).
MAX_PROCESS_SECONDS, MAX_MACHINE_SECONDS, MAX_REDIS_SECONDS = 15, 30, 15


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Report:
    """The rows of the table, and what went wrong."""

    def __init__(self):
        self.rows, self.problems, self.not_run = [], [], []

    def check(self, fault, is_right, problem):
        if not is_right:
            self.problems.append(f"{fault}: {problem}")
            say(f"{fault}: {problem}")

    def add(self, fault, sent, seconds, alert, notes, found):
        kept = " · ".join(f"{len(sent.acknowledged[kind])} {kind}s" for kind in ("submission", "event", "write"))
        failed = len(sent.failures["page"])
        row = (fault, seconds, kept, f"{failed} of {sent.count['page']}", alert, "; ".join([notes] * bool(notes) + found) or "nothing")
        say(" | ".join(row))
        self.rows.append(row)
        self.problems += [f"{fault}: {problem}" for problem in found]


def target(url):
    return url.split("/")[2]


def targets(stack):
    return {name: target(service["metrics_url"]) for name, service in stack["services"].items()}


def until_recovered(sent, since):
    """Waits until submissions and changes of pages have succeeded for three seconds after a fault."""

    def has():
        with sent.lock:
            failed = [ended for kind in ("submission", "write", "event") for _, ended, *_ in sent.failures[kind]]
            return time.monotonic() - max([since, *failed]) > 3

    wait.until(has, "requests succeed again")


def stores(report, program, folder, parts):
    """Postgres by Patroni, and Redis by Sentinel."""
    with patroni.Cluster(folder) as cluster, sentinels.Group(folder) if "redis" in parts else contextlib.nullcontext() as group:
        say("Patroni and Sentinel run")
        redis = group.settings if group else ()
        with fixture.system(f"store.url={cluster.url}", *redis, *load.SETTINGS, program=program) as stack:
            account = load.Account(stack, load.Receiver())
            with alerts.Alerts(targets(stack), folder) as seen:
                if "postgres" in parts:
                    failover_of_postgres(report, cluster, account, seen, "Postgres' process killed (primary)", patroni.Node.kill_postgres, MAX_PROCESS_SECONDS, ())
                    failover_of_postgres(report, cluster, account, seen, "Postgres' machine lost (primary)", patroni.Node.kill, MAX_MACHINE_SECONDS, ERRORS)
                if "redis" in parts:
                    failover_of_redis(report, cluster, group, account, seen)


def failover_of_postgres(report, cluster, account, seen, fault, kill, max_seconds, expected):
    """An outage of seconds, as that of Postgres alone, is shorter than any alert waits."""
    say(fault)
    seen.forget(*ERRORS)
    account.start()
    old = cluster.primary()
    with load.Load(account) as sent:
        time.sleep(BEFORE_SECONDS)
        began = time.monotonic()
        kill(old)
        wait.until(lambda: cluster.primary() is not old, "the standby is the primary")
        promoted = time.monotonic() - began
        until_recovered(sent, began)
        alert = seen.until_fired(*expected) if expected else "none: shorter than alerts wait"
        time.sleep(AFTER_SECONDS)
    query = lambda sql: cluster.query(cluster.primary(), sql)
    found = load.problems(sent, query, account.stack)
    seconds = sent.outage_seconds("submission")
    report.check(fault, not sent.failures["page"], f"{len(sent.failures['page'])} reads of a warm page failed: {sent.failures['page'][:2]}")
    report.check(fault, not sent.failures["event"], f"{len(sent.failures['event'])} events were refused: {sent.failures['event'][:2]}")
    report.check(fault, 0 < seconds <= max_seconds, f"submissions failed for {seconds:.1f} s")
    report.check(fault, set(sent.statuses("submission")) <= {503}, f"submissions got {dict(sent.statuses('submission'))}: {sent.failures['submission'][:3]}")
    if old.process.poll() is not None:
        old.start()
    back = wait.until(lambda: old.state().get("role") not in ("master", "primary") and old.state().get("state") in ("running", "streaming"), "the old primary is a standby")
    cluster.until_synchronous()
    seen.until_resolved(*expected)
    notes = f"promoted after {promoted:.1f} s; {len(sent.failures['submission'])} submissions got 503; the old primary is a standby {back:.0f} s later"
    report.add(fault, sent, f"{seconds:.1f} s of 503", alert, notes, found)


def failover_of_redis(report, cluster, group, account, seen):
    fault = "Redis' primary killed"
    say(fault)
    seen.forget("StoreErrors", "RedisReconnects")
    account.start()
    with load.Load(account) as sent:
        time.sleep(BEFORE_SECONDS)
        began = time.monotonic()
        old = group.kill_primary()
        wait.until(lambda: group.primary() not in (None, old), "the replica is the primary")
        promoted = time.monotonic() - began
        alert = seen.until_fired("StoreErrors", "RedisReconnects")
        until_recovered(sent, began)
        wait.until(lambda: load.invalidation_is_quick(sent), "changes are visible at once")
        bus = max((at for at in sent.late_changes() if at >= began), default=began) - began
        queue = max((at for at in sent.late_deliveries() if at >= began), default=began) - began
        time.sleep(AFTER_SECONDS)
    found = load.problems(sent, lambda sql: cluster.query(cluster.primary(), sql), account.stack)
    for kind in ("page", "submission", "event", "write"):
        report.check(fault, not sent.failures[kind], f"{len(sent.failures[kind])} of kind {kind} failed: {sent.failures[kind][:2]}")
    report.check(fault, max(bus, queue) <= MAX_REDIS_SECONDS, f"changes were late for {bus:.1f} s, deliveries for {queue:.1f} s")
    group.start(old)
    wait.until(lambda: "role:slave" in group.ask(old, sentinels.PASSWORD, "INFO replication"), "the old primary is a replica")
    seen.until_resolved(alert)
    report.add(fault, sent, "no request failed", alert, f"promoted after {promoted:.1f} s; changes late for {bus:.1f} s, deliveries for {queue:.1f} s", found)


def full_disks(report, program, folder):
    """The collector's segments, then Postgres' data."""
    if os.getuid() != 0:
        report.not_run.append("disks: only root can mount a tmpfs")
        return
    with disk.SmallDisk(pathlib.Path(folder) / "segments", 48) as segments, disk.SmallDisk(pathlib.Path(folder) / "postgres", 256, disk.Postgres.USER) as data:
        with disk.Postgres(data) as postgres:
            receiver = load.Receiver()
            settings = (f"segments.folder={segments.folder}/events", "segments.max_unsent_bytes=16777216", f"store.url={postgres.url}")
            with fixture.system(*settings, *load.SETTINGS, program=program) as stack:
                account = load.Account(stack, receiver)
                with alerts.Alerts(targets(stack), folder) as seen:
                    full_segments(report, segments, postgres, account, seen)
                    full_postgres(report, data, postgres, account, seen)


def full_segments(report, segments, postgres, account, seen):
    """`POST /api/collect` always answers 204, so what is kept and what is not is what the collector counts."""
    fault = "the collector's disk full"
    say(fault)
    seen.forget("SegmentDiskLow", "EventsDropped")
    account.start()
    collector = target(account.stack["services"]["collector"]["metrics_url"])
    accepted, dropped = (lambda: load.metric(collector, "collector_events_accepted_total")), lambda: load.metric(collector, "collector_events_dropped_total", "unwritable")
    accepted_before, dropped_before = accepted(), dropped()
    with load.Load(account) as sent:
        time.sleep(BEFORE_SECONDS)
        began = time.monotonic()
        segments.fill()
        wait.until(lambda: dropped() > dropped_before, "events are dropped")
        unready = wait.until(lambda: not clocks.answers(f"http://{collector}/readyz"), "the collector says that it is not ready")
        seen.until_fired("SegmentDiskLow")
        seen.until_fired("EventsDropped")
        segments.free()
        freed = time.monotonic()
        ready = wait.until(lambda: clocks.answers(f"http://{collector}/readyz"), "the collector is ready again")
        time.sleep(AFTER_SECONDS)
    lost = int(dropped() - dropped_before)
    kept = accepted() - accepted_before
    found = load.problems(sent, postgres.query, account.stack, events=False)
    with contextlib.suppress(wait.TooLate):
        wait.until(lambda: sum(load.events(account.stack, account.site).values()) == kept, "all events are counted")
    stored = load.events(account.stack, account.site)
    report.check(fault, sum(stored.values()) == kept and max(stored.values()) == 1, f"{kept} events were written, and {sum(stored.values())} are stored")
    report.check(fault, kept + lost == len(sent.acknowledged["event"]), f"{len(sent.acknowledged['event'])} events got 204, but {kept} were written and {lost} counted as dropped")
    for kind in ("page", "submission", "write"):
        report.check(fault, not sent.failures[kind], f"{len(sent.failures[kind])} of kind {kind} failed: {sent.failures[kind][:2]}")
    seen.until_resolved("SegmentDiskLow", "EventsDropped")
    notes = f"{lost} events counted as dropped, {len(stored)} written and stored; `/readyz` 503 after {unready:.1f} s, ready {ready:.1f} s after space was freed"
    sent.acknowledged["event"] = set(stored)
    report.add(fault, sent, f"{freed - began:.1f} s without events", "SegmentDiskLow, EventsDropped", notes, found)


def full_postgres(report, data, postgres, account, seen):
    fault = "Postgres' disk full"
    say(fault)
    seen.forget(*ERRORS)
    account.start()
    with load.Load(account) as sent:
        time.sleep(BEFORE_SECONDS)
        began = time.monotonic()
        data.fill()
        refused = wait.until(lambda: keeps_running(postgres) and sent.failures["submission"], "submissions are refused")
        alert = seen.until_fired(*ERRORS)
        wait.until(lambda: keeps_running(postgres) or True, "")
        data.free()
        freed = time.monotonic()
        wait.until(lambda: keeps_running(postgres) and postgres.query("select 1") == "1", "Postgres answers again")
        until_recovered(sent, freed)
        seconds = sent.outage_seconds("submission", began)
        after = max(ended for _, ended, *_ in sent.failures["submission"]) - freed
        time.sleep(AFTER_SECONDS)
    found = load.problems(sent, postgres.query, account.stack)
    seen.until_resolved(alert)
    report.check(fault, not sent.failures["page"], f"reads of a warm page failed: {sent.failures['page'][:2]}")
    report.check(fault, not sent.failures["event"], f"events were refused: {sent.failures['event'][:2]}")
    wrong = [failure for failure in sent.failures["submission"] if failure[2] != 503]
    report.check(fault, not wrong, f"{len(wrong)} submissions got no 503: {wrong[:3]}")
    notes = f"refused after {refused:.1f} s with {dict(sent.statuses('submission'))}; accepted again {max(0, after):.1f} s after space was freed"
    report.add(fault, sent, f"{seconds:.1f} s of 503", alert, notes, found)


def keeps_running(postgres):
    """Starts Postgres again if it ended, as its supervisor does."""
    postgres.restart_if_ended()
    return True


def wrong_clocks(report, program, folder):
    """Services whose clocks differ and jump."""
    with clocks.only_stores(program, folder, *load.SETTINGS) as stack:
        with clocks.Services(stack, folder) as services:
            account = load.Account(stack, load.Receiver())
            apart = lambda: [services.set(name, offset) for name, offset in zip(clocks.SERVICES, ("+5m", "-5m", "+3m", "-3m"))]
            jump = lambda offset: [services.set(name, offset) for name in clocks.SERVICES]
            wrong_clock(report, services, account, "clocks ten minutes apart", apart)
            wrong_clock(report, services, account, "clocks jump by +1 day", lambda: jump("+1d"))
            wrong_clock(report, services, account, "clocks jump back to -1 hour", lambda: jump("-1h"))
            report.check("clocks", "from this machine's" in checked(stack, services.library, "+10m"), "`webruntime check` names no difference of clocks")


def wrong_clock(report, services, account, fault, change):
    say(fault)
    account.start()
    with load.Load(account) as sent:
        time.sleep(BEFORE_SECONDS)
        change()
        time.sleep(BEFORE_SECONDS + AFTER_SECONDS)
    query = lambda sql: fixture.query(account.stack, sql)
    found = load.problems(sent, query, account.stack) + services.panics()
    try:
        notes = f"a run of an automation succeeded after {account.run_automation(query):.1f} s"
    except wait.TooLate as error:
        notes, found = "", [*found, str(error)]
    repeated = [number for number, times in account.receiver.received.items() if times > 1]
    for kind in ("page", "submission", "event", "write"):
        report.check(fault, not sent.failures[kind], f"{len(sent.failures[kind])} of kind {kind} failed: {sent.failures[kind][:2]}")
    report.check(fault, not repeated, f"{len(repeated)} submissions were delivered twice: {repeated[:5]}")
    report.add(fault, sent, "no request failed", "none: nothing fails", notes, found)


def checked(stack, library, offset):
    """What `webruntime check` says of the clock if it differs from Postgres'."""
    program = pathlib.Path(stack["program"]).with_name("webruntime")
    if not program.exists():
        return f"{program} is missing: cargo build --release --package local --package operator"
    environment = os.environ | {"LD_PRELOAD": str(library), "FAKETIME": offset}
    done = subprocess.run([program, "check", "--set", f"store.url={stack['postgres_url']}"], env=environment, capture_output=True, text=True)
    found = "\n".join(line for line in done.stdout.splitlines() if "clock" in line.lower())
    say(found or done.stdout[-500:] + done.stderr[-500:])
    return found


def write(report):
    lines = "\n".join(f"| {' | '.join(row)} |" for row in report.rows)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    RESULTS.write_text(f"""# Failover and faults

Made by `tests/nightly/failover.py` on {datetime.date.today()} at {commit}, {os.cpu_count()} cores. Load: ten page reads, submissions, events and page
changes per second each. In the rules of Prometheus a minute is {60 // alerts.FASTER} seconds. Acknowledged and afterwards stored, counted and delivered: all
that the third column counts.

| fault | unavailable | acknowledged and kept | failed page reads | alert that fired and ended | notes |
| --- | --- | --- | --- | --- | --- |
{lines}
""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="a local runner that is built already; without it, cargo builds one")
    parser.add_argument("--only", default="postgres,redis,disk,clocks")
    parser.add_argument("--keep", metavar="DIR", help="keeps logs in this folder, which must not exist")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # ends what was started
    parts, report = arguments.only.split(","), Report()
    program = arguments.program or built()
    try:
        for name, part in (("stores", lambda folder: stores(report, arguments.program, folder, parts)),
                           ("disk", lambda folder: full_disks(report, program, folder)),
                           ("clocks", lambda folder: wrong_clocks(report, program, folder))):
            if name in parts or (name == "stores" and {"postgres", "redis"} & set(parts)):
                with folder_for(arguments.keep, name) as folder:
                    part(folder)
    except wait.TooLate as error:
        report.problems.append(str(error))
    except packages.Missing as error:
        print(error)
        return NOT_RUN
    if arguments.only == parser.get_default("only"):
        write(report)
    print("\n".join(report.problems + report.not_run))
    if not report.problems and report.not_run:
        return NOT_RUN
    return 1 if report.problems else 0


def built():
    """Builds the local runner and `webruntime`, and returns the former."""
    subprocess.run(["cargo", "build", "--release", "--locked", "--package", "local", "--package", "operator"], cwd=fixture.ROOT, check=True)
    return fixture.ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/local"


def folder_for(keep, name):
    if keep:
        folder = pathlib.Path(keep) / name
        folder.mkdir(parents=True)
        return contextlib.nullcontext(folder)
    return readable_folder()


@contextlib.contextmanager
def readable_folder():
    """A temporary folder that the account of Postgres can enter."""
    with tempfile.TemporaryDirectory(prefix="web-runtime-failover-") as folder:
        os.chmod(folder, 0o755)
        yield folder


if __name__ == "__main__":
    sys.exit(main())
