#!/usr/bin/env python3
"""How many submissions are accepted per second, each on disk before its response? The edge beside pgbench.

    tests/bench/submissions.py                       five minutes; needs wrk, pgbench and psql
    tests/bench/submissions.py --seconds 5 --rounds 1 to see that it runs

Both write to the same Postgres, with fsync on, over 32 connections: wrk posts to a form's submit endpoint, and pgbench
writes the same row and counter as one prepared statement in its own transaction. A third run inserts the row alone. They
alternate, and ratios are taken within a round. Afterwards every 2xx must be a row, and counted. Writes tests/bench/submissions.md.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile

import fixture

HERE = pathlib.Path(__file__).resolve().parent
CONNECTIONS = 32
ANSWERS = {"name": "Ana Example", "email": "ana@example.com", "message": "Hello! " * 20}
ROW = """
insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
values (gen_random_uuid(), '{account}', '{form}', '{payload}', now(), now())"""
# Counts as the edge does: one counter row per connection, so that none waits for another.
COUNT = """
with stored as ({row} returning form_id)
insert into form_tallies as t (form_id, slot, submissions) select form_id, pg_backend_pid() % 64, 1 from stored
on conflict (form_id, slot) do update set submissions = t.submissions + 1"""
POST = """
wrk.method, wrk.body = "POST", [[{body}]]
wrk.headers["Content-Type"] = "application/json"
"""


def milliseconds(text):
    number, unit = re.match(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def edge(folder, url, seconds):
    script = folder / "post.lua"
    script.write_text(POST.format(body=fixture.json.dumps(ANSWERS)))
    command = ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", str(script), url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
    assert refused is None, output
    accepted = int(re.search(r"(\d+) requests in", output).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))
    return accepted, rate, milliseconds(re.search(r"^\s+99%\s+(\S+)", output, re.MULTILINE).group(1))


def pgbench(folder, url, script, seconds):
    path = folder / "insert.sql"
    path.write_text(script)
    command = ["pgbench", "-n", "-M", "prepared", "-c", str(CONNECTIONS), "-j", "2", "-T", str(seconds), "-f", str(path),
               "-l", "--log-prefix", str(folder / "took"), url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took = []
    for log in folder.glob("took.*"):
        took.extend(int(line.split()[2]) / 1000 for line in log.read_text().splitlines())
        log.unlink()
    return float(re.search(r"tps = ([\d.]+)", output).group(1)), statistics.quantiles(took, n=100)[98]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as folder, fixture.system() as stack:
        folder = pathlib.Path(folder)
        assert fixture.query(stack, "show fsync") == "on" and fixture.query(stack, "show synchronous_commit") == "on"
        key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
        fixture.call("POST", f"{stack['base_url']}/api/account/upgrade", key, {"plan": "scale"})
        made = fixture.call("POST", f"{stack['base_url']}/api/workflows/contact", key, {})
        other = fixture.call("POST", f"{stack['base_url']}/api/workflows/contact", key, {})["formId"]
        account = fixture.call("GET", f"{stack['base_url']}/api/account", key)["id"]
        payload = fixture.json.dumps(ANSWERS)
        row = ROW.format(account=account, form=other, payload=payload)
        scripts = [COUNT.format(row=row) + ";", row + ";"]
        edge(folder, made["submitUrl"], 2)
        counter = f"select sum(submissions) from form_tallies where form_id = '{made['formId']}'"
        counted = f"select count(*) from submissions where form_id = '{made['formId']}'"
        before, answered = int(fixture.query(stack, counted)), 0
        for round in range(arguments.rounds):
            accepted, rate, p99 = edge(folder, made["submitUrl"], arguments.seconds)
            answered += accepted
            theirs = [pgbench(folder, stack["postgres_url"], script, arguments.seconds) for script in scripts]
            ratios.append([rate / tps for tps, _ in theirs])
            cells = [f"{rate:,.0f}", f"{p99:.1f} ms"]
            for tps, pg_p99 in theirs:
                cells += [f"{tps:,.0f}", f"{pg_p99:.1f} ms", f"{rate / tps:.0%}"]
            rows.append(f"| {round + 1} | {' | '.join(cells)} |")
            print(rows[-1], flush=True)
        stored = int(fixture.query(stack, counted))
        # wrk closes connections with requests in flight when its time is over.
        assert answered <= stored - before <= answered + arguments.rounds * CONNECTIONS, (answered, stored, before)
        assert int(fixture.query(stack, counter)) == stored, "the counter differs from the stored rows"
    table = "\n".join(rows)
    same, bare = (statistics.median(column) for column in zip(*ratios))
    text = f"""# Submissions per second, each on disk

Made by `tests/bench/submissions.py`: {CONNECTIONS} connections, {arguments.seconds} s per run, fsync on, the same Postgres.
{answered:,} got a 201, and as many are stored and counted.

The edge parses an HTTP request, validates it against its form, looks up webhooks, checks that the form is not being edited,
and responds when row and counter are committed. `pgbench -M prepared` writes the same row and counter from constants as
one auto-committed statement: no `begin`, no form or webhooks. The bare insert leaves out the counter too.

| round | edge | p99 | pgbench: row and count | p99 | edge / pgbench | pgbench: bare insert | p99 | edge / bare |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{table}

Median of the ratios: {same:.0%} of row and count (the bar: at least 70 %), {bare:.0%} of the bare insert.
"""
    (HERE / "submissions.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
