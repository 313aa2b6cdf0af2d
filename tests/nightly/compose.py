#!/usr/bin/env python3
"""Does the stack of deploy/compose work in containers: from `up` to everything read back, under crashes, and in an upgrade?

    tests/nightly/compose.py [--keep]               a quarter of an hour; needs root, and the network at the first run
    tests/nightly/compose.py --build                only fetches and builds what is missing

1. `up --wait`, the first story through the published port, `down`, `up --wait`, everything read back, the runbooks' safe commands.
2. Each container's process is killed in turn; afterwards the story goes on and everything is read back.
3. Profile `replicas`: deploy/compose/upgrade from version 0.1 to this one, under load. No request may fail.
4. The same for one of each service: what a lone edge refuses is measured.

Docker's engine, Compose, a Debian and the stores are made from packages in the user's cache and run in namespaces of
their own, so nothing of this machine changes. Writes tests/nightly/compose.md.

BINARIES          a folder with edge-server, control-plane, collector, job-runner and webruntime of this checkout (default: a release build)
BASELINE_BINARIES the same of version 0.1 (default: a release build of the tag v0.1; without one, this version again)
--keep            keeps the engine running after a failure, until Enter
--only-upgrades   leaves out 1 and 2, and writes no table
"""

import datetime
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from containers import engine, images, packages, runbooks, story  # noqa: E402
from containers.load import Load  # noqa: E402

NOT_RUN = 77
HERE = pathlib.Path(__file__).resolve().parent
BASELINE_TAG = "v0.1"
OLD, NEW = "0.1", "next"
# A container takes about a second from the end of the old one to the first answer of the new one.
LONE_OUTAGE_SECONDS = 3
BASE = f"http://localhost:{story.PORT}"


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Stack:
    """One installation of deploy/compose, and the engine that runs it."""

    def __init__(self, docker, folder, version, *options):
        self.docker, self.folder, self.version = docker, folder, version
        images.installation(folder, version, *options)

    def compose(self, *arguments, check=True):
        command = ["docker", "compose", "--progress", "quiet", *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self.docker.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if check and done.returncode:
            logs = subprocess.run(["docker", "compose", "logs", "--tail", "8"], cwd=self.folder, env=self.docker.environment, capture_output=True, text=True)
            sys.exit(f"docker compose {' '.join(arguments)}: {done.stdout[-1500:]}\n{logs.stdout[-8000:]}")
        return done.stdout.strip()

    def up(self):
        began = time.monotonic()
        self.compose("up", "--detach", "--wait", "--no-build", "--wait-timeout", "300")
        return time.monotonic() - began

    def containers(self):
        """The running containers by their services."""
        lines = self.compose("ps", "--format", "{{.Service}} {{.ID}}").splitlines()
        return dict(line.split() for line in sorted(lines))

    def events(self):
        """The number of stored events of the load."""
        query = "select+count()+from+webruntime.events+where+name='load'"
        return int(self.compose("exec", "-T", "clickhouse", "wget", "-qO-", f"http://127.0.0.1:8123/?query={query}"))

    def upgrade(self, version):
        """Runs deploy/compose/upgrade; returns its lines by their first words."""
        done = subprocess.run([self.folder / "upgrade", version], env=self.docker.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"upgrade: {done.stdout[-3000:]}\n{self.compose('logs', '--tail', '10', check=False)[-6000:]}")
        return [line for line in done.stdout.splitlines() if line.endswith(" s")]

    def query(self, sql):
        """Runs a statement on Postgres. Raises `Unexpected` while Postgres does not answer."""
        command = ["docker", "compose", "exec", "-T", "postgres", "psql", "-qAt", "--host=/tmp", "--username=webruntime", f"--command={sql}"]
        done = subprocess.run(command, cwd=self.folder, env=self.docker.environment, capture_output=True, text=True)
        if done.returncode:
            raise story.Unexpected(done.stderr.strip())
        return done.stdout.strip()

    def down(self):
        self.compose("down", "--volumes", "--timeout", "60")


def everything(stack, receiver, rows):
    """Part 1 and 2; returns the memory of each container."""
    rows.append(("`up --wait` from nothing", f"{stack.up():.1f} s"))
    told = story.Story(BASE, stack.query)
    told.tell(receiver)
    say("the first story works")
    stack.compose("down")
    rows.append(("`up --wait` on existing volumes", f"{stack.up():.1f} s"))
    told.check()
    told.more()
    told.check()
    say("everything is there after down and up")
    rows.append(("safe commands of the runbooks that work", run_runbooks(stack)))
    memory = {service: sum(stack.docker.memory_mb(container)) for service, container in stack.containers().items()}
    for service, container in stack.containers().items():
        began = time.monotonic()
        stack.docker.kill(container)
        told.recover()
        rows.append((f"`kill -9` of {service}: until everything works", f"{time.monotonic() - began:.1f} s"))
        say(f"recovered from kill -9 of {service}")
    stack.down()
    return memory


def run_runbooks(stack):
    """Runs the commands that operators paste. Those of profile `observability` need images that can't be had here."""
    found = list(runbooks.results(stack.folder, stack.docker.environment))
    if failed := [f"{about}\n  {error}" for about, _, error in found if error]:
        sys.exit("\n".join(failed))
    ran = [about for about, missing, _ in found if not missing]
    say(f"{len(ran)} safe commands of the runbooks work; not run: {len(found) - len(ran)}, whose services don't run here")
    return f"{len(ran)} of {len(found)}"


def upgrade(stack, receiver, rows, title):
    """Part 3 and 4: an upgrade under load; returns the load."""
    stack.up()
    told = story.Story(BASE, stack.query)
    told.tell(receiver)
    with Load(BASE, told) as load:
        time.sleep(3)
        steps = stack.upgrade(NEW)
        time.sleep(3)
    say(f"{title}: {', '.join(steps)}")
    used = {stack.docker.docker("inspect", container, "--format", "{{.Config.Image}}").rpartition(":")[2]
            for service, container in stack.containers().items() if service not in images.STORES}
    if used != {NEW}:
        sys.exit(f"after the upgrade containers have the versions {used}")
    told.submissions += load.submissions
    told.check()
    story.until("every acknowledged event to be stored", lambda: stack.events() >= load.events)
    for step in steps:
        name, _, seconds = step.rpartition(" in ") if step.startswith("upgraded") else step.partition(": ")
        rows.append((f"{title}: {name}", seconds))
    rows.append((f"{title}: requests ({', '.join(load.count)}), on kept and on new connections", f"{sum(load.count.values()):,}"))
    rows.append((f"{title}: acknowledged submissions and events, all stored", f"{len(load.submissions):,} and {load.events:,}"))
    rows.append((f"{title}: slowest", f"{max(load.slowest.values()):.1f} s ({max(load.slowest, key=load.slowest.get)})"))
    rows.append((f"{title}: failed", f"{len(load.failures)}"))
    if load.failures:
        rows.append((f"{title}: from the first failure to the last", f"{load.outage_seconds():.1f} s"))
    for failure in load.failures[:20]:
        say(failure)
    stack.down()
    return load


def write(rows, sizes, memory, notes):
    lines = ["# The stack in containers", "", f"Made by `tests/nightly/compose.py` on {datetime.date.today()}. {notes}", "",
             "| | |", "| --- | ---: |", *[f"| {name} | {value} |" for name, value in rows], "",
             "Memory is the resident memory of a container's processes after the story, and shared pages count once. The images of the",
             "stores are stand-ins made from packages.", "",
             "| container | image, MB | memory, MB |", "| --- | ---: | ---: |",
             *[f"| {name} | {sizes[name]:.0f} | {format(memory[name], '.0f') if name in memory else ''} |" for name in sorted(sizes)], ""]
    (HERE / "compose.md").write_text("\n".join(lines))
    print("\n".join(lines), flush=True)


def prove(docker, binaries, baseline, notes):
    began = time.monotonic()
    images.add_bases(docker)
    images.add_stores(docker)
    images.add_programs(docker, binaries, NEW)
    images.add_programs(docker, baseline or binaries, OLD)
    say(f"all images after {time.monotonic() - began:.0f} s")
    sizes = {name: docker.size_mb(f"web-runtime/{name}:{NEW}") for name in images.PROGRAMS}
    sizes |= {name: docker.size_mb(f"{images.PREFIX}/{name}:test") for name in images.STORES}
    rows = []
    with tempfile.TemporaryDirectory(dir=engine.STATE) as folder:
        folder = pathlib.Path(folder)
        receiver = story.Receiver()
        memory = {} if "--only-upgrades" in sys.argv else everything(Stack(docker, folder / "single", NEW), receiver, rows)
        load = upgrade(Stack(docker, folder / "replicas", OLD, "--replicas"), receiver, rows, "replicas")
        lone = upgrade(Stack(docker, folder / "lone", OLD), receiver, rows, "one of each")
    if "--only-upgrades" in sys.argv:
        print("\n".join(f"{name}: {value}" for name, value in rows))
    else:
        write(rows, sizes, {name.replace("edge", "edge-server"): mb for name, mb in memory.items()}, notes)
    if load.failures:
        sys.exit(f"{len(load.failures)} requests failed in profile replicas")
    # Only while the edge itself is replaced: the restarts of the others take longer together.
    if lone.outage_seconds() > LONE_OUTAGE_SECONDS:
        sys.exit(f"with one of each, requests failed for {lone.outage_seconds():.1f} s; {LONE_OUTAGE_SECONDS} s are permitted")


def main():
    if "--help" in sys.argv or "-h" in sys.argv:
        sys.exit(__doc__)
    not_run = 0 if "--build" in sys.argv else NOT_RUN
    if reason := engine.reason_against():
        print(reason)
        sys.exit(not_run)
    if not os.environ.get(engine.INSIDE):
        try:
            packages.prepare()
        except packages.Missing as missing:
            print(" ".join(str(missing).split()))
            sys.exit(not_run)
        os.environ["BINARIES"] = os.environ.get("BINARIES") or str(images.build_binaries(images.ROOT))
        os.environ["BASELINE_BINARIES"] = os.environ.get("BASELINE_BINARIES") or str(images.baseline_binaries(BASELINE_TAG) or "")
        if "--build" in sys.argv:
            return
    engine.enter()
    binaries, baseline = pathlib.Path(os.environ["BINARIES"]), os.environ["BASELINE_BINARIES"]
    is_other = baseline and pathlib.Path(baseline).resolve() != binaries.resolve()
    notes = "Upgrades are from version 0.1 to this one." if is_other else "Without a build of version 0.1, upgrades are from this version to itself."
    docker = engine.Engine()
    try:
        prove(docker, binaries, pathlib.Path(baseline) if baseline else None, notes)
    except BaseException:
        if "--keep" in sys.argv:
            input("failed; Enter ends it")
        raise
    finally:
        docker.stop()


if __name__ == "__main__":
    main()
