#!/usr/bin/env python3
"""How many submissions are taken a second, each on disk before it is answered? The edge beside pgbench.

    tests/bench/submissions.py                       five minutes; needs wrk, pgbench and psql
    tests/bench/submissions.py --seconds 5 --rounds 1 to see that it runs

Both write into the same Postgres, with fsync on, over 32 connections: wrk posts to a form's submit endpoint, and pgbench
inserts the same row, one a transaction, by a prepared statement. They take turns, and what is compared are ratios within
a round. Afterwards every 2xx must be a row. Writes tests/bench/submissions.md.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile

import stand

HERE = pathlib.Path(__file__).resolve().parent
CONNECTIONS = 32
ANSWERS = {"name": "Ana Example", "email": "ana@example.com", "message": "Hello! " * 20}
INSERT = """
insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
values (gen_random_uuid(), '{account}', '{form}', '{payload}', now(), now());
"""
POST = """
wrk.method, wrk.body = "POST", [[{body}]]
wrk.headers["Content-Type"] = "application/json"
"""


def milliseconds(text):
    number, unit = re.match(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def edge(folder, url, seconds):
    script = folder / "post.lua"
    script.write_text(POST.format(body=stand.json.dumps(ANSWERS)))
    command = ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", str(script), url]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", told)
    assert refused is None, told
    taken = int(re.search(r"(\d+) requests in", told).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", told).group(1))
    return taken, rate, milliseconds(re.search(r"99%\s+(\S+)", told).group(1))


def pgbench(folder, url, script, seconds):
    path = folder / "insert.sql"
    path.write_text(script)
    command = ["pgbench", "-n", "-M", "prepared", "-c", str(CONNECTIONS), "-j", "2", "-T", str(seconds), "-f", str(path),
               "-l", "--log-prefix", str(folder / "took"), url]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took = []
    for log in folder.glob("took.*"):
        took.extend(int(line.split()[2]) / 1000 for line in log.read_text().splitlines())
        log.unlink()
    return float(re.search(r"tps = ([\d.]+)", told).group(1)), statistics.quantiles(took, n=100)[98]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as folder, stand.system() as stack:
        folder = pathlib.Path(folder)
        assert stand.ask(stack, "show fsync") == "on" and stand.ask(stack, "show synchronous_commit") == "on"
        key = stand.call("POST", f"{stack['base_url']}/api/trial")["key"]
        stand.call("POST", f"{stack['base_url']}/api/account/upgrade", key, {"plan": "scale"})
        made = stand.call("POST", f"{stack['base_url']}/api/workflows/contact", key, {})
        other = stand.call("POST", f"{stack['base_url']}/api/workflows/contact", key, {})["formId"]
        account = stand.call("GET", f"{stack['base_url']}/api/account", key)["id"]
        payload = stand.json.dumps(ANSWERS)
        script = INSERT.format(account=account, form=other, payload=payload)
        edge(folder, made["submitUrl"], 2)
        before = int(stand.ask(stack, f"select count(*) from submissions where form_id = '{made['formId']}'"))
        answered = 0
        for round in range(arguments.rounds):
            taken, rate, p99 = edge(folder, made["submitUrl"], arguments.seconds)
            answered += taken
            tps, pg_p99 = pgbench(folder, stack["postgres_url"], script, arguments.seconds)
            ratios.append(rate / tps)
            rows.append(f"| {round + 1} | {rate:,.0f} | {p99:.1f} ms | {tps:,.0f} | {pg_p99:.1f} ms | {rate / tps:.0%} |")
            print(rows[-1], flush=True)
        stored = int(stand.ask(stack, f"select count(*) from submissions where form_id = '{made['formId']}'")) - before
        # wrk hangs up on those that are under way when its time is over.
        assert answered <= stored <= answered + arguments.rounds * CONNECTIONS, (answered, stored)
    table = "\n".join(rows)
    text = f"""# Submissions a second, each on disk

Made by `tests/bench/submissions.py`: {CONNECTIONS} connections, {arguments.seconds} s a turn, fsync on, the same Postgres.
{answered:,} were answered 201, and as many are stored.

| round | edge | p99 | pgbench, the same insert | p99 | edge / pgbench |
| ---: | ---: | ---: | ---: | ---: | ---: |
{table}

Median of the ratios: {statistics.median(ratios):.0%}. The bar: at least 70 %.
"""
    (HERE / "submissions.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
