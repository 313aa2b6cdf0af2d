#!/usr/bin/env python3
"""Are the console's screens fast, accessible and well-built by Lighthouse's rules?

    tests/nightly/lighthouse.py [PROGRAM]     four minutes; PROGRAM is a local runner that is built already

Every screen of a filled account on Lighthouse's slow phone: performance, accessibility and best practices of at least 95 each, and
interactive within 1.5 seconds. Writes tests/nightly/lighthouse.md.
"""

import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "bench")]

import fixture  # noqa: E402

TABLE = HERE / "lighthouse.md"
NOT_RUN = 77
CATEGORIES = ["performance", "accessibility", "best-practices"]
LEAST_SCORE = 95
MOST_INTERACTIVE_MS = 1500


def install(folder):
    subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)


def problems(row):
    for name in CATEGORIES:
        if row[name] < LEAST_SCORE:
            yield f"{row['screen']}: {name} {row[name]} (at least {LEAST_SCORE}); failed audits: {', '.join(row['failed']) or 'none'}"
    if row["interactive"] > MOST_INTERACTIVE_MS:
        yield f"{row['screen']}: interactive after {row['interactive']} ms (at most {MOST_INTERACTIVE_MS})"


def table(rows):
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()
    lines = [f"| `{row['screen']}` | {row['performance']} | {row['accessibility']} | {row['best-practices']} | {row['interactive']} | {row['shift']:.2f} |"
             for row in rows]
    return ("# Lighthouse on the console\n\n"
            f"Made by `tests/nightly/lighthouse.py` on {datetime.date.today()} at {revision}, with Lighthouse's slow phone. At least {LEAST_SCORE} each.\n\n"
            "| screen | performance | accessibility | best practices | interactive, ms | layout shift |\n| --- | ---: | ---: | ---: | ---: | ---: |\n"
            + "\n".join(lines) + "\n")


def main():
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium or not shutil.which("npm"):
        print("not run: Chromium or npm is missing")
        return NOT_RUN
    for folder in (HERE.parent / "browser", HERE / "lighthouse"):
        install(folder)
    program = sys.argv[1] if len(sys.argv) > 1 else None
    rows = []
    with fixture.system("signin.local=true", program=program) as stack:
        command = ["node", "run.mjs", stack["base_url"]]
        process = subprocess.Popen(command, cwd=HERE / "lighthouse", env=os.environ | {"CHROMIUM": chromium}, stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            row = json.loads(line)
            rows.append(row)
            print(f"{row['screen']}: " + ", ".join(f"{name} {row[name]}" for name in CATEGORIES) + f", interactive {row['interactive']} ms", flush=True)
        if process.wait() != 0:
            print("Lighthouse failed: see above")
            return 1
    TABLE.write_text(table(rows))
    found = [problem for row in rows for problem in problems(row)]
    for problem in found:
        print(problem)
    print(f"{len(rows)} screens, {len(found)} problems")
    return 1 if found or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
