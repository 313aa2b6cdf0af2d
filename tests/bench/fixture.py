"""A stand for benchmarks: the whole system with an account of its own, and more edges beside its own one.

BENCH_PROFILE=dev takes a debug build: to see that a benchmark runs, not for figures.
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
def system(*settings):
    """Runs everything, each service as a process; gives what stack.json says."""
    with tempfile.TemporaryDirectory(prefix="web-runtime-bench-") as folder:
        place = ["--dir", folder]
        print("building and starting (release)", flush=True)
        more = [part for setting in settings for part in ("--set", setting)]
        subprocess.run([*RUNNER, "up", "--detach", "--processes", "--port", "0", *place, *more], check=True, cwd=ROOT)
        try:
            yield json.loads((pathlib.Path(folder) / "stack.json").read_text())
        finally:
            subprocess.run([*RUNNER, "down", *place], check=True, cwd=ROOT)


@contextlib.contextmanager
def another_edge(stack, *settings, under=()):
    """One more edge over the same stores, run `under` another program if one is named; gives its port and its process
    id."""
    port = free_port()
    settings = [f"listen.main=127.0.0.1:{port}", f"listen.ops=127.0.0.1:{free_port()}", *settings]
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    program = target / ("debug" if PROFILE == "dev" else PROFILE) / "local"
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
    """What psql says to statements, one or several, run on the stack's Postgres."""
    command = ["psql", "-qAt", "-v", "ON_ERROR_STOP=1", stack["postgres_url"]]
    return subprocess.run(command, input=sql, check=True, capture_output=True, text=True).stdout.strip()


def site_host(stack, key):
    """The host of the account's site, without port."""
    site = call("GET", f"{stack['base_url']}/api/account", key)["siteUrl"]
    return site.split("//")[1].split("/")[0].split(":")[0]


def rss_mb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024
