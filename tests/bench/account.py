#!/usr/bin/env python3
"""How fast is an authenticated read? GET /api/account against the same server's /healthz, side by side in one run.

    tests/bench/account.py            about two minutes; needs oha (`cargo install oha --locked`)

Both are requested from the control plane directly, over 127.0.0.1, with the same number of connections, in alternation. The
median counts. Then /api/account is loaded at half the rate it reached, with latency corrected for coordinated omission.
Writes tests/bench/account.md.
"""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys

import fixture

ROUNDS, SECONDS, CONNECTIONS = 7, 4, 16
HERE = pathlib.Path(__file__).resolve().parent


def oha(url, *more):
    """Requests per second and the p50 and p99 latency in milliseconds."""
    command = ["oha", "--no-tui", "--output-format", "json", "-z", f"{SECONDS}s", "-c", str(CONNECTIONS), *more, url]
    output = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if set(output["statusCodeDistribution"]) != {"200"}:
        sys.exit(f"{url} answered {output['statusCodeDistribution']}")
    latency = output["latencyPercentiles"]
    return output["summary"]["requestsPerSec"], latency["p50"] * 1000, latency["p99"] * 1000


def measure(stack):
    service = stack["services"]["control-plane"]
    health = service["metrics_url"].replace("/metrics", "/healthz")
    key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
    account = [f"{service['url']}/api/account", "-H", f"authorization: Bearer {key}"]
    account = (account[0], *account[1:])
    turns = []
    for turn in range(ROUNDS + 1):
        pair = (oha(health), oha(account[0], *account[1:]))
        if turn > 0:  # the first round warms up
            turns.append(pair)
        print(f"  round {turn}: /healthz {pair[0][0]:,.0f}/s, /api/account {pair[1][0]:,.0f}/s", flush=True)
    health_rate = statistics.median(pair[0][0] for pair in turns)
    account_rate = statistics.median(pair[1][0] for pair in turns)
    share = statistics.median(pair[1][0] / pair[0][0] for pair in turns)
    half = [oha(account[0], *account[1:], "-q", str(int(account_rate / 2)), "--latency-correction") for _ in range(3)]
    p50 = statistics.median(run[1] for run in half)
    p99 = statistics.median(run[2] for run in half)
    return health_rate, account_rate, share, p50, p99


def main():
    if not shutil.which("oha"):
        sys.exit("oha is missing: cargo install oha --locked")
    with fixture.system() as stack:
        health, account, share, p50, p99 = measure(stack)
    table = f"""# An authenticated read against /healthz

Made by `tests/bench/account.py`: {ROUNDS} rounds of {SECONDS} s each, {CONNECTIONS} connections, medians.

| | requests/s | share |
| --- | ---: | ---: |
| `/healthz` | {health:,.0f} | 1.00 |
| `GET /api/account` | {account:,.0f} | {share:.2f} |

At half that rate ({account / 2:,.0f}/s, latency corrected): p50 {p50:.2f} ms, p99 {p99:.2f} ms.
"""
    (HERE / "account.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
