"""Fixtures of the benchmarks: a complete system on its own data folder, and additional edges over the same stores.

BENCH_PROFILE=dev uses a debug build, to check that a benchmark runs.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROFILE = os.environ.get("BENCH_PROFILE", "release")
RUNNER = ["cargo", "run", "--quiet", "--profile", PROFILE, "--locked", "--"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def call(method, url, key=None, body=None):
    headers = {"authorization": f"Bearer {key}"} if key else {}
    if body is not None:
        headers["content-type"] = "application/json"
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers, method=method)
    return json.load(urllib.request.urlopen(request))


@contextlib.contextmanager
def system(*settings, program=None, options=()):
    """Runs all services as processes and yields the contents of stack.json, plus `runner`, the command to administer
    them. `program` is a local runner that was built before; without it, cargo builds this checkout's. `options` are
    further ones of `up`."""
    runner = [program] if program else RUNNER
    with tempfile.TemporaryDirectory(prefix="web-runtime-bench-") as folder:
        directory = ["--dir", folder]
        print(f"starting {program}" if program else f"building and starting ({PROFILE})", flush=True)
        more = [part for setting in settings for part in ("--set", setting)]
        subprocess.run([*runner, "up", "--detach", "--processes", "--port", "0", *options, *directory, *more], check=True, cwd=ROOT)
        try:
            yield json.loads((pathlib.Path(folder) / "stack.json").read_text()) | {"runner": runner, "program": program}
        finally:
            subprocess.run([*runner, "down", *directory], check=True, cwd=ROOT)


@contextlib.contextmanager
def another_edge(stack, *settings, under=()):
    """Runs one more edge over the same stores, optionally `under` another program such as valgrind. Yields its port and
    process id."""
    port = free_port()
    settings = [f"listen.main=127.0.0.1:{port}", f"listen.ops=127.0.0.1:{free_port()}", *settings]
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    program = stack["program"] or target / ("debug" if PROFILE == "dev" else PROFILE) / "local"
    folder = pathlib.Path(stack["log_dir"]).parent
    service = [program, "service", "edge-server", "--dir", folder]
    process = subprocess.Popen([*under, *service, *[part for one in settings for part in ("--set", one)]])
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def query(stack, sql):
    """Runs one or several statements on the stack's Postgres and returns the output of psql."""
    command = ["psql", "-qAt", "-v", "ON_ERROR_STOP=1", stack["postgres_url"]]
    return subprocess.run(command, input=sql, check=True, capture_output=True, text=True).stdout.strip()


def site_host(stack, key):
    """The host of the account's site, without the port."""
    site = call("GET", f"{stack['base_url']}/api/account", key)["siteUrl"]
    return site.split("//")[1].split("/")[0].split(":")[0]


def rss_mb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024
