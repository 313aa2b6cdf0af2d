"""The exporters of deploy/compose beside a stack: those of Debian's packages, and ClickHouse's own /metrics from libchdb."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.request

import fixture
from deploy_lint import debian

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMPOSE = ROOT / "deploy/compose"
PACKAGES = ("prometheus", "prometheus-node-exporter", "prometheus-postgres-exporter", "prometheus-redis-exporter")
# ClickHouse's listeners, as tests/nightly/containers/clickhouse.sh starts them, and a table. The session ends with its process.
CLICKHOUSE = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
arguments = [part.encode() for part in ("clickhouse", *sys.argv[2:])]
library.chdb_query_cmdline(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
"""
STATEMENTS = """CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n; INSERT INTO t SELECT 1; SYSTEM START LISTEN HTTP;
SELECT sleepEachRow(1) FROM numbers(1000000) FORMAT Null SETTINGS function_sleep_max_microseconds_per_block = 0, max_block_size = 1"""
BACKUP_AGES = {"postgres": 3600, "clickhouse": 3600, "blobs": 3600}


def programs():
    """The paths of the packages' programs by package, or None if one can't be had."""
    found = {name: debian.program(name) for name in PACKAGES}
    return found if all(found.values()) else None


def write_backup(folder, **ages):
    """Writes what `webruntime backup` writes for the node-exporter. `ages` of a part's last backup are in seconds."""
    lines = []
    for name, kind in (("last_success_timestamp_seconds", lambda age: time.time() - age), ("last_bytes", lambda _: 1_000_000)):
        lines.append(f"# TYPE webruntime_backup_{name} gauge")
        lines += [f'webruntime_backup_{name}{{part="{part}"}} {kind(age):.0f}' for part, age in (BACKUP_AGES | ages).items()]
    partial = folder / "webruntime_backup.prom.new"
    partial.write_text("\n".join(lines) + "\n")
    partial.rename(folder / "webruntime_backup.prom")


def libchdb(stack):
    """The library of the stack's ClickHouse, or None if that is an installed server."""
    words = pathlib.Path(f"/proc/{stack['stores']['clickhouse']['pid']}/cmdline").read_text().split("\0")
    return words[words.index("--lib") + 1] if "--lib" in words else None


def clickhouse_command(library, folder, port):
    """ClickHouse with the product's own server.xml, which decides whether and where it serves /metrics."""
    here = ROOT / "tests/nightly/containers"
    (folder / "config.d").mkdir(parents=True)
    main = (here / "clickhouse.xml").read_text().replace("/etc/clickhouse-server/users.xml", str(here / "clickhouse_users.xml"))
    (folder / "config.xml").write_text(main)
    shutil.copy(COMPOSE / "clickhouse/server.xml", folder / "config.d")
    options = ["--config-file", folder / "config.xml", "--path", folder / "data", "--listen_host", "127.0.0.1", "--http_port", port]
    return [sys.executable, "-c", CLICKHOUSE, library, *options, "--query", STATEMENTS]


def commands(stack, found, folder, ports):
    """The command and the environment of each exporter, by the job of prometheus.yml."""
    compose = (COMPOSE / "compose.yml").read_text().partition("\n  node-exporter:\n")[2].partition("\n\n")[0]
    collectors = [option for option in re.findall(r"- (--collector\S+)", compose) if "directory" not in option]
    listen = {job: f"127.0.0.1:{port}" for job, port in ports.items()}
    textfiles = folder / "textfiles"
    textfiles.mkdir()
    write_backup(textfiles)
    node = [*collectors, f"--collector.textfile.directory={textfiles}", f"--web.listen-address={listen['node']}"]
    yield "node", [found["prometheus-node-exporter"], *node], {}
    url = stack["postgres_url"] + ("&" if "?" in stack["postgres_url"] else "?") + "sslmode=disable"
    yield "postgres", [found["prometheus-postgres-exporter"], f"--web.listen-address={listen['postgres']}"], {"DATA_SOURCE_NAME": url}
    redis = [f"-redis.addr={stack['redis_url']}", f"-web.listen-address={listen['redis']}"]
    yield "redis", [found["prometheus-redis-exporter"], *redis], {}
    if library := libchdb(stack):
        yield "clickhouse", clickhouse_command(library, folder / "clickhouse", ports["clickhouse"]), {}


class Running:
    """The exporters of a stack, by the jobs of prometheus.yml."""

    def __init__(self, stack, found, folder):
        self.folder = folder
        self.ports = {job: fixture.free_port() for job in ("node", "postgres", "redis", "clickhouse")}
        self.commands = {job: (command, environment) for job, command, environment in commands(stack, found, folder, self.ports)}
        self.processes = {}

    def start(self, job, replaced=None):
        """Starts an exporter. `replaced` is a part of its settings and what stands there instead."""
        command, environment = self.commands[job]
        change = lambda text: str(text).replace(*replaced) if replaced else str(text)
        environment = {name: change(value) for name, value in environment.items()}
        with open(self.folder / f"{job}-exporter.log", "w") as log:
            self.processes[job] = subprocess.Popen(list(map(change, command)), env=os.environ | environment, stdout=log, stderr=log)

    def stop(self, job):
        self.processes[job].kill()
        self.processes[job].wait()

    @contextlib.contextmanager
    def refused(self, job):
        """Replaces an exporter by one whose store refuses connections."""
        command, environment = self.commands[job]
        (address,) = set(re.findall(r"@?(127\.0\.0\.1:\d+|localhost:\d+)", f"{command} {environment}")) - {self.address(job)}
        self.stop(job)
        self.start(job, (address, f"127.0.0.1:{fixture.free_port()}"))
        try:
            yield
        finally:
            self.stop(job)
            self.start(job)
        self.until_served(job)

    def address(self, job):
        return f"127.0.0.1:{self.ports[job]}"

    def addresses(self):
        return {job: self.address(job) for job in self.commands}

    def until_served(self, job):
        deadline = time.monotonic() + 60
        while self.processes[job].poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                served(self.address(job))
                return
            time.sleep(0.1)
        sys.exit(f"the exporter of {job} serves no metrics: {(self.folder / f'{job}-exporter.log').read_text()[-2000:]}")


@contextlib.contextmanager
def running(stack, found, folder):
    """Runs the exporters of a stack."""
    exporters = Running(stack, found, folder)
    try:
        for job in exporters.commands:
            exporters.start(job)
        for job in exporters.commands:
            exporters.until_served(job)
        yield exporters
    finally:
        for job in exporters.processes:
            exporters.stop(job)


def served(address):
    """The names of the metrics that an exporter serves now."""
    text = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
    return set(re.findall(r"^([A-Za-z_:][A-Za-z0-9_:]*)[{ ]", text, re.MULTILINE))


def problems(stack, running, expected, computed):
    """The names of .ci/deploy_lint/exporters.py that no exporter serves."""
    for job, names in expected.items():
        if job in running.commands:
            yield from (f"the exporter of {job} serves no {name}" for name in sorted(names - served(running.address(job))))
        else:
            print(f"NOT CHECKED: the metrics of {job}, whose server is an installed one")
    if library := libchdb(stack):
        text = pathlib.Path(library).read_bytes()
        short = {name: name.removeprefix("ClickHouseAsyncMetrics_") for name in computed}
        yield from (f"ClickHouse computes no {name}" for name, metric in sorted(short.items()) if metric.encode() not in text)
