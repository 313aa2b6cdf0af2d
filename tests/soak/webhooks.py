#!/usr/bin/env python3
"""Is every submission kept and delivered, whatever is killed? Ten minutes under fire, then a count by id.

    tests/soak/webhooks.py                    eleven minutes; needs rustc and psql
    tests/soak/webhooks.py --seconds 90 --every 10          to see that it runs

100 submissions a second to two webhooks each, while every 30 s one of edge-server, job-runner, Redis and Postgres is
killed with -9, in random order, each once before any a second time. The system brings its services back by itself; the
stores, which it only borrows here, this script brings back. In the end each submission that was answered 201 must stand in
Postgres and have reached both webhooks; how many were delivered twice is told, and is no fault: they carry the same
webhook-id. Writes tests/soak/webhooks.md.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))

import fixture  # noqa: E402
import webhooks  # noqa: E402

SERVICES = ["edge-server", "job-runner"]


def pid_of(folder, service):
    return json.loads((folder / "stack.json").read_text())["services"][service]["pid"]


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Store:
    """A store of the system, brought back as it was started: same program, same user, same folder."""

    def __init__(self, name, pid):
        self.name, self.pid = name, pid
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        self.user = int(status.split("Uid:")[1].split()[0])
        self.group = int(status.split("Gid:")[1].split()[0])
        self.command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
        self.folder = os.readlink(f"/proc/{pid}/cwd")
        if name == "Redis":
            # It writes a title over what it was started with: program and address.
            port = self.command[0].rpartition(":")[2]
            self.command = [os.readlink(f"/proc/{pid}/exe"), "--bind", "127.0.0.1", "--port", port, "--save", "",
                            "--appendonly", "yes", "--appendfsync", "everysec", "--dir", self.folder]
        self.process = None
        self.log = open(os.devnull, "wb")

    def kill(self):
        # A postmaster that is gone leaves its children behind for a moment; the next one waits for none.
        family = [self.pid, *webhooks.children(self.pid)]
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process:
            self.process.wait()
        while any(runs(pid) for pid in family):
            time.sleep(0.01)

    def start(self):
        # Made anew by the server; the old one names a process id that may be somebody else's by now.
        if self.name == "Postgres":
            data = pathlib.Path(self.command[self.command.index("-D") + 1])
            (data / "postmaster.pid").unlink(missing_ok=True)
        self.process = subprocess.Popen(self.command, cwd=self.folder, user=self.user, group=self.group,
                                        extra_groups=[], stdout=self.log, stderr=self.log,
                                        start_new_session=True)
        self.pid = self.process.pid

    def stop(self):
        """What this script brought back nobody else ends."""
        if self.process:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()


def fire(folder, stores, every, until, told):
    """Kills one after the other until the time is up."""
    turn = []
    while time.monotonic() + every < until:
        time.sleep(every)
        turn = turn or random.sample([*SERVICES, *stores], 4)
        victim = turn.pop()
        if victim in stores:
            stores[victim].kill()
            time.sleep(random.uniform(0.2, 2))
            stores[victim].start()
        else:
            os.kill(pid_of(folder, victim), signal.SIGKILL)
        told.append(victim)
        print(f"killed {victim}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in [("seconds", 600), ("every", 30), ("rate", 100), ("seed", int(time.time()))]:
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    # What a killed job-runner had under way is due again when its lease is over, a quarter of a minute after this.
    settings = ["webhooks.timeout=5s", "webhooks.schedule=" + json.dumps(["0s"] + ["2s"] * 30)]
    killed, stores = [], {}
    try:
        with tempfile.TemporaryDirectory() as place, fixture.system(*settings) as stack:
            program, folder = webhooks.build_load(place), pathlib.Path(stack["log_dir"]).parent
            sink = fixture.free_port()
            _, _, form = webhooks.set_up(stack, sink, hooks=2)
            stores |= {name: Store(name, pid) for name, pid in zip(["Postgres", "Redis"], webhooks.stores(stack))}
            options = webhooks.submit_options(stack, form, sink)
            until = time.monotonic() + arguments.seconds
            shots = threading.Thread(target=fire, args=(folder, stores, arguments.every, until, killed))
            shots.start()
            ids = pathlib.Path(place) / "answered"
            told = webhooks.load(program, **options, hooks=2, rate=arguments.rate, seconds=arguments.seconds,
                                 count=10**9, patience=90, ids=ids)
            shots.join()
            answered = set(ids.read_text().split())
            told["lost"] = len(answered - stored(stack, form))
            finish(told, killed, arguments)
    finally:
        for store in stores.values():
            store.stop()
    if told["missing"] or told["lost"]:
        sys.exit(f"{told['lost']} submissions are not stored, {told['missing']} did not reach both webhooks")


def stored(stack, form):
    """The ids of what Postgres has, once it is back."""
    end = time.monotonic() + 60
    while True:
        try:
            return set(fixture.query(stack, f"select id from submissions where form_id = '{form}'").split())
        except subprocess.CalledProcessError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def finish(told, killed, arguments):
    counts = {victim: killed.count(victim) for victim in [*SERVICES, "Postgres", "Redis"]}
    victims = ", ".join(f"{victim} {count}" for victim, count in counts.items())
    text = f"""# Delivered under fire

Made by `tests/soak/webhooks.py` ({fixture.PROFILE} build, seed {arguments.seed}): {arguments.seconds} s at {arguments.rate}
submissions a second with two webhooks each; every {arguments.every} s a kill -9 ({victims}).

| answered 201 | not answered so | answered and not stored | reached both webhooks | missing | delivered more than once |
| ---: | ---: | ---: | ---: | ---: | ---: |
| {told['accepted']:,} | {told['unanswered']:,} | {told['lost']} | {told['accepted'] - told['missing']:,} | {told['missing']} | {told['doubled']:,} |
"""
    (HERE / "webhooks.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
