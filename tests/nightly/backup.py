#!/usr/bin/env python3
"""Does a backup bring back what was acknowledged, and nothing that was deleted?

    tests/nightly/backup.py [PROGRAM]        three minutes; PROGRAM is a local runner that is built already, `webruntime` beside it

A local stack on a Postgres that archives its log with pgBackRest, a ClickHouse that writes backups, and a Redis. Clients and visitors
add, change and delete pages, submissions with files, events, a site and an account; a ledger has what they were told. In between:
a full and an incremental backup while submissions go on, and `webruntime backup check`. Then ClickHouse is lost, later everything
else: all is killed with -9 and wiped but for the keys and the collector's disk. It is restored to the end of the log, compared with
the ledger, backed up, restored to a point in time, and compared again. At last the salts of visitor ids are looked for in all backups,
which pgBackRest does not compress here: none may be found, and what Postgres stores in the same way must be found.

Needs pgBackRest, installed or as Debian's package, one that knows the Postgres of this machine. Writes tests/nightly/backup.md.
"""

import contextlib
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

import fixture  # noqa: E402
from backups import acknowledged, installation, search  # noqa: E402
from faults import clocks, packages, wait  # noqa: E402

NOT_RUN = 77
RESULTS = HERE / "backup.md"
PAGES, SUBMISSIONS, EVENTS = 4, 40, 50


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Report:
    """The rows of the table, and what went wrong."""

    def __init__(self):
        self.rows, self.problems = [], []

    def add(self, step, seconds, megabytes=None):
        self.rows.append((step, f"{seconds:.1f}", "" if megabytes is None else f"{megabytes:.1f}"))
        say(f"{step}: {seconds:.1f} s" + (f", {megabytes:.1f} MB" if megabytes is not None else ""))

    def check(self, is_right, problem):
        if not is_right:
            self.problems.append(problem)
            say(problem)

    def compare(self, books, states, point):
        """Compares what is there with the ledger. Returns what was compared."""
        began = time.monotonic()
        found = books.problems(states)
        for problem in found:
            self.check(False, f"{point}: {problem}")
        counts = sum((state.counts() for state in states.values()), start=acknowledged.State().counts())
        text = ", ".join([f"{len(states)} accounts", *(f"{counts[kind]} {kind}" for kind in ("pages", "submissions", "files", "events"))])
        say(f"{point}: compared {text} in {time.monotonic() - began:.1f} s, {len(found)} problems")
        return text


class Rehearsal:
    """One installation, from its first day to its last."""

    def __init__(self, program, folder, report):
        self.report, self.folder = report, folder
        self.site = installation.Installation(program, folder)
        self.books, self.salts = acknowledged.Ledger(self.site), set()

    def __enter__(self):
        for store in self.site.stores:
            store.start()
        self.site.postgres.until_ready()
        self.site.up()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self.site.kill()
        for store in self.site.stores:
            with contextlib.suppress(Exception):
                store.kill()

    def load(self):
        """The first days."""
        began = time.monotonic()
        # The other two stay trials: the deadline of one will pass.
        self.main, self.other, self.leaving = (acknowledged.Account(self.site, plan) for plan in ("scale", "scale", None))
        self.books.accounts = [self.main, self.other, self.leaving]
        for account in self.books.accounts:
            account.shop, account.closed = account.add_site(), account.add_site()
            for _ in range(2 if account is self.leaving else PAGES):
                account.add_page()
            for _ in range(10):
                account.submit()
            account.submit_file()
            account.add_asset()
            self.visit(account, 10)
        self.more(self.main)
        self.report.add("load before the first backup", time.monotonic() - began)

    def visit(self, account, events):
        for number in range(events):
            account.send_event(account.closed if number % 5 == 0 and account.closed["id"] in account.state.sites else account.shop)

    def more(self, account, can_upload=True):
        """Each thing once more, and deletions."""
        for _ in range(SUBMISSIONS):
            account.submit()
        if can_upload:
            account.submit_file()
        account.add_page()
        pages, submissions = list(account.state.pages), list(account.state.submissions)
        account.change_page(pages[-1])
        account.delete_page(pages[0])
        account.delete_submission(submissions[0])
        self.visit(account, EVENTS)

    def back_up(self, step, expected):
        """Backs up while submissions go on."""
        self.books.until_shipped()
        self.remember_salts()
        before = self.site.backup_bytes()
        with acknowledged.Steady(self.main):
            printed, seconds = self.site.webruntime("backup")
        self.report.check(expected in printed, f"{step}: {printed}")
        self.report.add(step, seconds, (self.site.backup_bytes() - before) / 1e6)

    def remember_salts(self):
        rows = self.site.postgres.query("select encode(salt, 'hex') from salts union select encode(salt, 'hex') from retention_salts")
        self.salts |= {bytes.fromhex(row) for row in rows.split()}

    def verify(self):
        printed, seconds = self.site.webruntime("backup", "check")
        self.report.check("files have their checksums" in printed and "failed" not in printed, f"backup check: {printed}")
        listed, _ = self.site.webruntime("backup", "list")
        self.report.check(len(listed.splitlines()) == 3, f"backup list: {listed}")
        metrics = (self.site.metrics / "webruntime_backup.prom").read_text()
        for part in ("postgres", "clickhouse", "blobs"):
            self.report.check(f'webruntime_backup_last_success_timestamp_seconds{{part="{part}"}}' in metrics, f"no metric of {part}: {metrics}")
        self.report.add("verification of both backups (`backup check`)", seconds)

    def lose_everything(self):
        """From the loss of ClickHouse on, events wait on the collector's disk. A file of these hours is in no backup."""
        self.site.clickhouse.kill()
        self.site.clickhouse.wipe()
        for account in (self.main, self.other):
            self.more(account, can_upload=False)
        self.visit(self.leaving, 10)
        self.main.add_asset(is_recorded=False)
        self.main.delete_site(self.main.closed)
        self.books.deleted_sites.append(self.main.closed["id"])
        self.books.accounts.remove(self.leaving)
        self.leaving.expire()
        self.books.deleted.append(self.leaving)
        self.remember_salts()
        self.site.postgres.archive()
        self.site.kill()
        for store in (self.site.postgres, self.site.redis):
            store.kill()
            store.wipe()
        self.site.wipe()
        say("everything is killed and wiped, but for the keys and the collector's disk")

    def restore_to_the_end(self):
        """In the steps of deploy/compose/webruntime."""
        step = "restore to the end of the log"
        self.site.clickhouse.start()
        self.site.redis.start()
        _, seconds = self.site.webruntime("restore", "--step", "files")
        self.report.add(f"{step}: files of Postgres", seconds)
        self.site.postgres.start()
        printed, seconds = self.site.webruntime("restore", "--step", "stores")
        self.report.add(f"{step}: log of Postgres, ClickHouse, blobs, purges", seconds)
        self.report.check(", 1 missing" in printed, f"the file after the last backup is not named: {printed}")
        self.report.check(re.search(r"the events of [1-9]\d* sites that Postgres does not have", printed), f"no events of deleted sites were in the backup: {printed}")
        left = self.site.postgres.query("select (select count(*) from salts) + (select count(*) from retention_salts)")
        self.report.check(left == "0", f"{left} salts came out of the backup")
        self.site.up()
        for account in (self.main, self.other):
            self.visit(account, 5)
        compared = self.report.compare(self.books, self.books.states(), step)
        lost = self.site.metric("collector", "collector_salts_lost_total")
        self.report.check(lost > 0, "the collector counts no lost salt, although Postgres and Redis were wiped")
        for account in (self.main, self.other):
            self.more(account)
        self.report.compare(self.books, self.books.states(), f"{step}, after more load")
        return compared

    def restore_to(self, at, states):
        """In one run, over what is there. What was deleted since that point is deleted again: accounts, and sites."""
        step = "restore to a point in time"
        self.site.down()
        self.site.webruntime("restore", "--step", "deletions")
        self.site.postgres.stop()
        printed, _ = self.site.webruntime("restore", "--replace", "--at", at)
        seconds = {name: float(value) for name, value in re.findall(r"([a-z][a-z ]*) ([\d.]+)(?:,|$)", printed.partition("seconds: ")[2].splitlines()[0])}
        self.report.add(f"{step}: files of Postgres", seconds.pop("postgres files"))
        self.report.add(f"{step}: log of Postgres, ClickHouse, blobs, purges", sum(seconds.values()))
        self.report.check("deleted again: 1 accounts, 1 sites" in printed and ", 0 missing" in printed, f"{step}: {printed}")
        self.site.up()
        # ClickHouse is that of the last backup: events are facts.
        for account, state in states.items():
            state.sites = account.state.sites
        self.report.compare(self.books, {account: state for account, state in states.items() if account not in self.books.deleted}, step)

    def search(self):
        """The digests of files are stored as salts are, but in logged tables."""
        began, folder = time.monotonic(), self.site.backups
        known = list(search.files_with(folder, self.main.digests()[:2]))
        for part in ("/archive/", "/backup/"):
            self.report.check(any(part in path for path in known), f"the search finds no known value in {part}: {known}")
        found = list(search.files_with(folder, self.salts))
        self.report.check(len(self.salts) > 3, f"only {len(self.salts)} salts were made")
        self.report.check(not found, f"salts are in backups: {found}")
        files = sum(1 for path in folder.rglob("*") if path.is_file())
        say(f"{len(self.salts)} salts are in none of {files} files; a known value is in {len(known)}; {time.monotonic() - began:.1f} s")
        return f"{len(self.salts)} salts of visitor ids are in none of {files} files"


def rehearse(program, folder, report):
    with Rehearsal(program, folder, report) as one:
        one.load()
        one.back_up("full backup", "full")
        one.more(one.main)
        one.more(one.other)
        # Before this point nothing happens at the same time, so the ledger's state is exactly that of Postgres.
        at, states = one.site.postgres.time(), one.books.states()
        one.more(one.main)
        one.back_up("incremental backup", "incremental")
        one.verify()
        one.lose_everything()
        compared = one.restore_to_the_end()
        one.back_up("incremental backup after the restore", "incremental")
        one.site.postgres.archive()
        one.restore_to(at, states)
        return compared, one.search()


def write(report, compared, searched):
    lines = "\n".join(f"| {' | '.join(row)} |" for row in report.rows)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    RESULTS.write_text(f"""# Rehearsal of backups

Made by `tests/nightly/backup.py` on {datetime.date.today()} at {commit}, {os.cpu_count()} cores, {platform.machine()}. Compared: {compared}.
pgBackRest compressed nothing, so that the backups could be searched: {searched}.
MB are what a step added to the folder of backups, with the log of Postgres.

| step | seconds | MB |
| --- | ---: | ---: |
{lines}
""")


def main():
    if "--help" in sys.argv or "-h" in sys.argv:
        sys.exit(__doc__)
    program = sys.argv[1] if len(sys.argv) > 1 else None
    if program is None:
        build = ["cargo", "build", "--release", "--locked", "--package", "local", "--package", "operator"]
        subprocess.run(build, cwd=fixture.ROOT, check=True)
        program = fixture.ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/local"
    program, report = pathlib.Path(program).resolve(), Report()
    if not program.with_name("webruntime").exists():
        sys.exit(f"{program.with_name('webruntime')} is missing: cargo build --release --package local --package operator")
    with tempfile.TemporaryDirectory(prefix="web-runtime-backup-") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        try:
            fetch_stores(program, folder)
            compared, searched = rehearse(program, folder, report)
        except packages.Missing as missing:
            print(missing)
            return NOT_RUN
        except (wait.TooLate, RuntimeError) as error:
            report.problems.append(str(error))
    print("\n".join(report.problems))
    if report.problems:
        return 1
    write(report, compared, searched)
    return 0


def fetch_stores(program, folder):
    """The local runner fetches the stores that this machine lacks."""
    try:
        packages.libchdb(), packages.redis()
    except packages.Missing:
        (folder / "fetched").mkdir()
        with clocks.only_stores(program, folder / "fetched"):
            say("the stores are fetched")


if __name__ == "__main__":
    sys.exit(main())
