#!/usr/bin/env python3
"""Is every submission stored and delivered when processes are killed? Ten minutes of faults, then a count by id.

    tests/soak/webhooks.py                    eleven minutes; needs rustc and psql
    tests/soak/webhooks.py --seconds 90 --every 10          to check that it runs

Sends 100 submissions per second to two webhooks each, while every 30 s one of edge-server, job-runner, Redis and Postgres
is killed with SIGKILL, in random order, each once before any a second time. The local runner restarts them. In the end every submission that got a 201 must be in Postgres and have reached both webhooks.
Duplicate deliveries are reported; they are allowed, because they carry the same webhook-id. Writes tests/soak/webhooks.md.
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

VICTIMS = ["edge-server", "job-runner", "postgres", "redis"]


def inject_faults(folder, every, until, killed):
    """Kills one process every `every` seconds until the deadline."""
    round = []
    while time.monotonic() + every < until:
        time.sleep(every)
        round = round or random.sample(VICTIMS, len(VICTIMS))
        victim = round.pop()
        stack = json.loads((folder / "stack.json").read_text())
        os.kill((stack["services"] | stack["stores"])[victim]["pid"], signal.SIGKILL)
        killed.append(victim)
        print(f"killed {victim}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in [("seconds", 600), ("every", 30), ("rate", 100), ("seed", int(time.time()))]:
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    # Deliveries in flight of a killed job-runner are due again when their lease expires, 15 s after this timeout.
    settings = ["webhooks.timeout=5s", "webhooks.retry_schedule=" + json.dumps(["0s"] + ["2s"] * 30)]
    killed = []
    with tempfile.TemporaryDirectory() as temporary, fixture.system(*settings) as stack:
        program, folder = webhooks.build_load(temporary), pathlib.Path(stack["log_dir"]).parent
        sink = fixture.free_port()
        _, _, form = webhooks.set_up(stack, sink, hooks=2)
        options = webhooks.submit_options(stack, form, sink)
        until = time.monotonic() + arguments.seconds
        faults = threading.Thread(target=inject_faults, args=(folder, arguments.every, until, killed))
        faults.start()
        ids = pathlib.Path(temporary) / "answered"
        output = webhooks.load(program, **options, hooks=2, rate=arguments.rate, seconds=arguments.seconds,
                             count=10**9, timeout=90, ids=ids)
        faults.join()
        answered = set(ids.read_text().split())
        output["lost"] = len(answered - stored(stack, form))
        finish(output, killed, arguments)
    if output["missing"] or output["lost"]:
        sys.exit(f"{output['lost']} submissions are not stored, {output['missing']} did not reach both webhooks")


def stored(stack, form):
    """The ids of the submissions in Postgres, once it has recovered."""
    end = time.monotonic() + 60
    while True:
        try:
            return set(fixture.query(stack, f"select id from submissions where form_id = '{form}'").split())
        except subprocess.CalledProcessError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def finish(output, killed, arguments):
    counts = {victim: killed.count(victim) for victim in VICTIMS}
    victims = ", ".join(f"{victim} {count}" for victim, count in counts.items())
    text = f"""# Deliveries under faults

Made by `tests/soak/webhooks.py` ({fixture.PROFILE} build, seed {arguments.seed}): {arguments.seconds} s at {arguments.rate}
submissions per second with two webhooks each; every {arguments.every} s a SIGKILL ({victims}).

| acknowledged | not acknowledged | acknowledged and not stored | reached both webhooks | missing | delivered more than once |
| ---: | ---: | ---: | ---: | ---: | ---: |
| {output['accepted']:,} | {output['unanswered']:,} | {output['lost']} | {output['accepted'] - output['missing']:,} | {output['missing']} | {output['doubled']:,} |
"""
    (HERE / "webhooks.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
