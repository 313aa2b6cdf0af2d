#!/usr/bin/env python3
"""Is anything that was answered 201 ever lost? Submissions at a steady rate while one part after the other is killed.

    tests/bench/soak.py                    ten minutes at 100 a second, a kill -9 every 30 s; needs psql
    tests/bench/soak.py --seconds 60 --every 10

Killed are the edge, the job-runner, Redis and Postgres, in random order. Services are started again by the stack that
watches over them, the stores by this script, as they were. In the end each submission that was answered 201 must stand in
Postgres, by its id, and a webhook must have been told of it. Writes tests/bench/soak.md.
"""

import argparse
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
import urllib.parse

import stand

HERE = pathlib.Path(__file__).resolve().parent
SENDERS = 32
# Receivers that were told late are told in the end: pauses as long as a restart takes.
SETTINGS = ['outbound.allow=["127.0.0.1"]', 'webhooks.schedule=["0s", "1s", "2s", "5s", "5s", "5s", "10s", "10s", "20s"]']


class Receiver:
    """A webhook's end: keeps the ids it is told."""

    def __init__(self):
        told = self.told = set()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                told.add(body["data"].get("submissionId"))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


class Senders:
    """Submits at a steady rate; remembers what was answered 201, and how often it wasn't."""

    def __init__(self, url, rate):
        self.url, self.rate = urllib.parse.urlsplit(url), rate
        self.answered, self.refused, self.broken, self.done = [], 0, 0, threading.Event()
        self.threads = [threading.Thread(target=self.send, args=(number,)) for number in range(SENDERS)]

    def send(self, number):
        pause, due, connection = SENDERS / self.rate, time.monotonic() + number / self.rate, None
        while not self.done.wait(max(0, due - time.monotonic())):
            # What could not be sent in time is not made up for.
            due = max(due + pause, time.monotonic() - pause)
            body = json.dumps({"name": f"Sender {number}", "email": "ana@example.com", "message": str(random.random())})
            try:
                connection = connection or http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=10)
                connection.request("POST", self.url.path, body, {"content-type": "application/json"})
                answer = connection.getresponse()
                text = answer.read()
                if answer.status == 201:
                    self.answered.append(json.loads(text)["submissionId"])
                else:
                    self.refused += 1
            except (OSError, http.client.HTTPException):
                self.broken += 1
                connection = None

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        for thread in self.threads:
            thread.join()


class Store:
    """A server of the stack's own, killed and started again as it was."""

    def __init__(self, name, url):
        self.name, self.process = name, None
        self.port = urllib.parse.urlsplit(url).port
        self.pid = self.listener()
        proc = pathlib.Path(f"/proc/{self.pid}")
        self.command = proc.joinpath("cmdline").read_bytes().decode().split("\0")[:-1]
        self.program = os.readlink(proc / "exe")
        self.folder = os.readlink(proc / "cwd")
        self.environment = dict(line.split("=", 1) for line in proc.joinpath("environ").read_text().split("\0") if "=" in line)
        ids = {line.split(":")[0]: line.split()[1] for line in proc.joinpath("status").read_text().splitlines() if ":" in line
               and len(line.split()) > 1}
        self.user, self.group = int(ids["Uid"]), int(ids["Gid"])

    def listener(self):
        """The process that listens at the port."""
        wanted = f"0100007F:{self.port:04X}"
        rows = (line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:])
        inodes = {f"socket:[{row[9]}]" for row in rows if row[1] == wanted and row[3] == "0A"}
        found = []
        for fd in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
            with contextlib.suppress(OSError):
                if os.readlink(fd) in inodes:
                    found.append(int(fd.parts[2]))
        return min(found)

    def kill(self):
        pid = self.process.pid if self.process else self.pid
        os.kill(pid, signal.SIGKILL)
        if self.process:
            self.process.wait()
        time.sleep(1)
        # Of Postgres some children live on for a moment; until they have gone it refuses to start.
        for _ in range(60):
            self.process = subprocess.Popen(self.command, executable=self.program, cwd=self.folder, env=self.environment,
                                            user=self.user, group=self.group, extra_groups=[], start_new_session=True,
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
            if self.process.poll() is None:
                return
        raise SystemExit(f"{self.name} does not come up again")

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()


def kill_service(stack, name):
    file = pathlib.Path(stack["log_dir"]).parent / "stack.json"
    os.kill(json.loads(file.read_text())["services"][name]["pid"], signal.SIGKILL)


def until(what, seconds):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--every", type=int, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    receiver, kills, stores = Receiver(), [], []
    try:
        with stand.system(*SETTINGS) as stack:
            key = stand.call("POST", f"{stack['base_url']}/api/trial")["key"]
            stand.call("POST", f"{stack['base_url']}/api/account/upgrade", key, {"plan": "scale"})
            made = stand.call("POST", f"{stack['base_url']}/api/workflows/contact", key, {})
            stand.call("POST", f"{stack['base_url']}/api/webhooks", key, {"url": receiver.url, "formIds": [made["formId"]]})
            stores = [Store("Postgres", stack["postgres_url"]), Store("Redis", stack["redis_url"])]
            victims = {store.name: store.kill for store in stores}
            victims |= {name: lambda name=name: kill_service(stack, name) for name in ("edge-server", "job-runner")}
            with Senders(made["submitUrl"], arguments.rate) as senders:
                end, turn = time.monotonic() + arguments.seconds, []
                while time.monotonic() + arguments.every < end:
                    time.sleep(arguments.every)
                    # Each once before any a second time.
                    turn = turn or random.sample(sorted(victims), len(victims))
                    name = turn.pop()
                    victims[name]()
                    kills.append(name)
                    print(f"killed {name}; {len(senders.answered):,} answered so far", flush=True)
                time.sleep(max(0, end - time.monotonic()))
            answered = set(senders.answered)
            stored = set()
            rows = f"select id from submissions where form_id = '{made['formId']}'"

            def is_back():
                with contextlib.suppress(subprocess.CalledProcessError):
                    stored.update(stand.ask(stack, rows).split())
                    return True
                return False

            assert until(is_back, 60), "Postgres is not back"
            missing = answered - stored
            until(lambda: answered <= receiver.told, 180)
            untold = answered - receiver.told
    finally:
        for store in stores:
            store.stop()
    counts = ", ".join(f"{name} {kills.count(name)}" for name in sorted(set(kills)))
    text = f"""# Nothing submitted is ever lost

Made by `tests/bench/soak.py --seed {arguments.seed}`: {arguments.seconds} s at {arguments.rate} submissions a second, a
`kill -9` every {arguments.every} s ({counts}).

| answered 201 | other answers | no answer | stored in all | answered and missing | answered and no webhook told |
| ---: | ---: | ---: | ---: | ---: | ---: |
| {len(answered):,} | {senders.refused:,} | {senders.broken:,} | {len(stored):,} | {len(missing)} | {len(untold)} |
"""
    (HERE / "soak.md").write_text(text)
    print(text)
    if missing or untold:
        raise SystemExit(f"missing: {sorted(missing)[:10]}, untold: {sorted(untold)[:10]}")


if __name__ == "__main__":
    main()
