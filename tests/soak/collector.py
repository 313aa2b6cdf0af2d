#!/usr/bin/env python3
"""Is every event counted once when ClickHouse is unavailable for ten minutes and the collector is killed meanwhile?

    tests/soak/collector.py                   fifteen minutes; needs rustc and psql
    tests/soak/collector.py --outage 20       to check that it runs

Sends 2,000 page views per second to a separate collector. A proxy in front of ClickHouse passes connections for a minute,
then refuses them for `--outage` seconds, in the middle of which the collector is killed with SIGKILL and restarted; then it
passes them again, still under load. In the end every acknowledged event must be stored once and be in visits once. An
event in flight when the collector was killed may be stored or not. Writes tests/soak/collector.md.
"""

import argparse
import contextlib
import json
import pathlib
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))

import collect  # noqa: E402
import fixture  # noqa: E402


class FaultProxy(socketserver.ThreadingTCPServer):
    """Forwards connections to ClickHouse, or closes them while blocked."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, url):
        target = urllib.parse.urlsplit(url)
        self.target, self.is_open, self.connections = (target.hostname, target.port), True, set()
        super().__init__(("127.0.0.1", 0), Forwarding)
        self.url = target._replace(netloc=f"127.0.0.1:{self.server_address[1]}").geturl()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def block(self):
        self.is_open = False
        for one in list(self.connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Forwarding(socketserver.BaseRequestHandler):
    def handle(self):
        if not self.server.is_open:
            return
        with socket.create_connection(self.server.target) as target:
            self.server.connections |= {self.request, target}
            back = threading.Thread(target=self.copy, args=(target, self.request), daemon=True)
            back.start()
            self.copy(self.request, target)
            back.join()
            self.server.connections -= {self.request, target}

    @staticmethod
    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def collector(stack, folder, port, proxy):
    settings = [f"listen.main=127.0.0.1:{port}", f"listen.ops=127.0.0.1:{fixture.free_port()}",
                f"segments.folder={folder}/segments", f"warehouse.url={proxy.url}", f"secrets.edge_token={collect.EDGE}"]
    target = fixture.ROOT / "target" / ("debug" if fixture.PROFILE == "dev" else fixture.PROFILE) / "local"
    process = subprocess.Popen([target, "service", "collector", "--dir", pathlib.Path(stack["log_dir"]).parent,
                                *[part for one in settings for part in ("--set", one)]], stderr=subprocess.DEVNULL)
    for _ in range(1200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return process
        time.sleep(0.05)
    raise SystemExit("the collector does not listen")


def unsent(folder):
    """Bytes of events in segments, without the zeros of preallocated space."""
    total = 0
    for path in pathlib.Path(folder, "segments").iterdir():
        with contextlib.suppress(FileNotFoundError):
            total += len(path.read_bytes().rstrip(b"\0")) if path.suffix == ".open" else path.stat().st_size
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outage", type=int, default=600)
    parser.add_argument("--rate", type=int, default=2000)
    arguments = parser.parse_args()
    minute = min(60, arguments.outage)
    with tempfile.TemporaryDirectory() as folder, fixture.system(f"secrets.edge_token={collect.EDGE}") as stack:
        key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
        fixture.call("POST", f"{stack['base_url']}/api/account/upgrade", key, {"plan": "scale"})
        site = fixture.call("POST", f"{stack['base_url']}/api/analytics/sites", key, {"name": "Shop"})["site"]
        visits = pathlib.Path(folder) / "visits"
        subprocess.run(["rustc", "--edition", "2024", "-O", "-o", visits, HERE.parent / "bench" / "visits" / "main.rs"], check=True)
        proxy, port = FaultProxy(stack["clickhouse_url"]), fixture.free_port()
        process = collector(stack, folder, port, proxy)
        load = subprocess.Popen([visits, f"to=127.0.0.1:{port}", f"token={site['siteToken']}", f"edge={collect.EDGE}",
                                 f"rate={arguments.rate}", f"seconds={2 * minute + arguments.outage}", "connections=32"],
                                stdout=subprocess.PIPE, text=True)
        time.sleep(minute)
        proxy.block()
        stored = int(collect.clickhouse(stack, "SELECT count() FROM events")[0])
        time.sleep(arguments.outage / 2)
        process.kill()
        process.wait()
        process = collector(stack, folder, port, proxy)
        time.sleep(arguments.outage / 2)
        waited = unsent(folder)
        assert int(collect.clickhouse(stack, "SELECT count() FROM events")[0]) == stored, "the proxy was not blocked"
        proxy.is_open, opened = True, time.time()
        output = json.loads(load.communicate()[0])
        while left := unsent(folder):
            assert time.time() - opened < 1800, left
            time.sleep(0.2)
        caught_up = time.time() - opened
        process.send_signal(signal.SIGTERM)
        process.wait()
        events, ids = map(int, collect.clickhouse(stack, "SELECT count(), uniqExact(id) FROM events"))
        (visited,) = map(int, collect.clickhouse(stack, "SELECT sum(events) FROM sessions FINAL"))
    assert events == ids == visited, (events, ids, visited)
    assert output["answered"] <= events <= output["sent"], (output, events)
    text = f"""# ClickHouse unavailable for {arguments.outage} s at {arguments.rate:,} events per second

Made by `tests/soak/collector.py`, with a SIGKILL of the collector in the middle.

| | |
| --- | ---: |
| sent | {output['sent']:,} |
| acknowledged | {output['answered']:,} |
| stored | {events:,} |
| of those, distinct | {ids:,} |
| in visits | {visited:,} |
| largest backlog on disk | {waited / 1e6:,.0f} MB |
| backlog shipped after | {caught_up:.0f} s, of which {minute} s under load |
| p99 of a response over the whole run | {output['p99']:.1f} ms |

Every acknowledged event is stored; events that are stored and not acknowledged ({events - output['answered']:,}) were in flight
when the collector was killed. Response times count from the scheduled send time, so they include the restart.
"""
    (HERE / "collector.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
