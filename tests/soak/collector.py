#!/usr/bin/env python3
"""Is every event counted once when ClickHouse is away for ten minutes, and the collector is killed meanwhile?

    tests/soak/collector.py                   fifteen minutes; needs rustc and psql
    tests/soak/collector.py --away 20         to see that it runs

2,000 page views a second to a collector of its own. ClickHouse is behind a door: open for a minute, then shut for
`--away` seconds, in the middle of which the collector is killed with -9 and started again; then open while it catches
up, with the load going on. In the end what was answered must be stored, each once, and be in visits, exactly once too.
What was sent when the collector was killed and got no answer may be there or not. Writes tests/soak/collector.md.
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


class Door(socketserver.ThreadingTCPServer):
    """Passes connections on, or, while shut, ends them."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, url):
        there = urllib.parse.urlsplit(url)
        self.there, self.open, self.passing = (there.hostname, there.port), True, set()
        super().__init__(("127.0.0.1", 0), Passage)
        self.url = there._replace(netloc=f"127.0.0.1:{self.server_address[1]}").geturl()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def shut(self):
        self.open = False
        for one in list(self.passing):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Passage(socketserver.BaseRequestHandler):
    def handle(self):
        if not self.server.open:
            return
        with socket.create_connection(self.server.there) as there:
            self.server.passing |= {self.request, there}
            back = threading.Thread(target=self.copy, args=(there, self.request), daemon=True)
            back.start()
            self.copy(self.request, there)
            back.join()
            self.server.passing -= {self.request, there}

    @staticmethod
    def copy(here, there):
        with contextlib.suppress(OSError):
            while more := here.recv(1 << 16):
                there.sendall(more)
        with contextlib.suppress(OSError):
            there.shutdown(socket.SHUT_WR)


def collector(stack, folder, port, door):
    settings = [f"listen.main=127.0.0.1:{port}", f"listen.ops=127.0.0.1:{fixture.free_port()}",
                f"segments.folder={folder}/segments", f"warehouse.url={door.url}", f"secrets.edge_token={collect.EDGE}"]
    target = fixture.ROOT / "target" / ("debug" if fixture.PROFILE == "dev" else fixture.PROFILE) / "local"
    process = subprocess.Popen([target, "service", "collector", "--dir", pathlib.Path(stack["log_dir"]).parent,
                                *[part for one in settings for part in ("--set", one)]], stderr=subprocess.DEVNULL)
    for _ in range(1200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return process
        time.sleep(0.05)
    raise SystemExit("the collector doesn't listen")


def unsent(folder):
    """Bytes of events that wait in segments: the zeros of one that was made ready wait for nothing."""
    total = 0
    for path in pathlib.Path(folder, "segments").iterdir():
        with contextlib.suppress(FileNotFoundError):
            total += len(path.read_bytes().rstrip(b"\0")) if path.suffix == ".open" else path.stat().st_size
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--away", type=int, default=600)
    parser.add_argument("--rate", type=int, default=2000)
    arguments = parser.parse_args()
    minute = min(60, arguments.away)
    with tempfile.TemporaryDirectory() as folder, fixture.system(f"secrets.edge_token={collect.EDGE}") as stack:
        key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
        fixture.call("POST", f"{stack['base_url']}/api/account/upgrade", key, {"plan": "scale"})
        site = fixture.call("POST", f"{stack['base_url']}/api/analytics/sites", key, {"name": "Shop"})["site"]
        visits = pathlib.Path(folder) / "visits"
        subprocess.run(["rustc", "--edition", "2024", "-O", "-o", visits, HERE.parent / "bench" / "visits" / "main.rs"], check=True)
        door, port = Door(stack["clickhouse_url"]), fixture.free_port()
        process = collector(stack, folder, port, door)
        load = subprocess.Popen([visits, f"to=127.0.0.1:{port}", f"token={site['siteToken']}", f"edge={collect.EDGE}",
                                 f"rate={arguments.rate}", f"seconds={2 * minute + arguments.away}", "connections=32"],
                                stdout=subprocess.PIPE, text=True)
        time.sleep(minute)
        door.shut()
        stored = int(collect.clickhouse(stack, "SELECT count() FROM events")[0])
        time.sleep(arguments.away / 2)
        process.kill()
        process.wait()
        process = collector(stack, folder, port, door)
        time.sleep(arguments.away / 2)
        waited = unsent(folder)
        assert int(collect.clickhouse(stack, "SELECT count() FROM events")[0]) == stored, "the door was not shut"
        door.open, opened = True, time.time()
        told = json.loads(load.communicate()[0])
        while left := unsent(folder):
            assert time.time() - opened < 1800, left
            time.sleep(0.2)
        caught_up = time.time() - opened
        process.send_signal(signal.SIGTERM)
        process.wait()
        events, ids = map(int, collect.clickhouse(stack, "SELECT count(), uniqExact(id) FROM events"))
        (visited,) = map(int, collect.clickhouse(stack, "SELECT sum(events) FROM sessions FINAL"))
    assert events == ids == visited, (events, ids, visited)
    assert told["answered"] <= events <= told["sent"], (told, events)
    text = f"""# ClickHouse away for {arguments.away} s at {arguments.rate:,} events a second

Made by `tests/soak/collector.py`, with a kill -9 of the collector in the middle.

| | |
| --- | ---: |
| sent | {told['sent']:,} |
| answered | {told['answered']:,} |
| stored | {events:,} |
| of those, different ones | {ids:,} |
| in visits | {visited:,} |
| waited on disk at most | {waited / 1e6:,.0f} MB |
| all sent on after | {caught_up:.0f} s, of which {minute} s under load |
| p99 of an answer over all the time | {told['p99']:.1f} ms |

What was answered is stored, and what is stored and was not answered ({events - told['answered']:,}) was under way when
the collector was killed. An answer's time counts from when its turn was: that the collector was away is in it.
"""
    (HERE / "collector.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
