#!/usr/bin/env python3
"""Runs every command of deploy/observability/runbooks that is marked safe: each must succeed and print something.

    tests/nightly/containers/runbooks.py deploy/compose      a folder whose containers run, those of `observability` too
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / ".ci"))

from deploy_lint import runbooks  # noqa: E402

LIMIT_SECONDS = 120


def results(folder, environment):
    """What each command is about, the services it lacks, and its error if it ran and failed."""
    shell = lambda command: subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_SECONDS)
    running = set(shell("docker compose ps --services").stdout.split())
    for command, heading in runbooks.all_commands(ROOT).items():
        missing = runbooks.services_of(command) - running
        done = None if missing else shell(command)
        failed = done and (done.returncode != 0 or not done.stdout.strip())
        yield f"{heading}: {command}", missing, f"exit code {done.returncode}: {done.stdout.strip()[-500:]}" if failed else None


def main():
    found = list(results(sys.argv[1], os.environ))
    for about, missing, error in found:
        if missing or error:
            print(f"{about}\n  {error or 'not running: ' + ', '.join(sorted(missing))}")
    failed = sum(bool(missing or error) for _, missing, error in found)
    print(f"{len(found)} commands, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
