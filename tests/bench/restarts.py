#!/usr/bin/env python3
"""What do clients notice of a restart? Runs the tests of restarts and writes down what they count.

    tests/bench/restarts.py             four minutes; a debug build, each process on the same two cores

HAProxy comes from Debian's package; without it that row says why. Writes tests/bench/restarts.md.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
COMMAND = ["cargo", "test", "-p", "tests", "--test", "e2e", "restarts::", "--", "--nocapture", "--test-threads=1"]


def main():
    run = subprocess.run(COMMAND, cwd=HERE, capture_output=True, text=True)
    rows = re.findall(r"(?:RESTART |NOT TESTED: )(.*)", run.stdout)
    if run.returncode != 0 or not rows:
        sys.exit(run.stdout + run.stderr)
    rows = [row if row.startswith("|") else f"| {row} | | | |" for row in rows]
    HERE.joinpath("restarts.md").write_text("\n".join([
        "# Restarts under load",
        "",
        "Written by `restarts.py`. Each process ends by SIGTERM with `listen.drain = \"5s\"` and is started again at once, while",
        "requests for pages (kept and new connections, HTTP/2), API calls, submissions and events arrive at 9 to 38 a second.",
        "",
        "| restarted | requests | failed | longest |",
        "| --- | --- | --- | --- |",
        *sorted(rows),
        "",
    ]))


if __name__ == "__main__":
    main()
