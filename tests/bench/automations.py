#!/usr/bin/env python3
"""How many runs of automations does the system execute, and how soon is each done?

    tests/bench/automations.py [PROGRAM]      about ten minutes; needs wrk and psql; PROGRAM is a local runner that is built already
    tests/bench/automations.py PROGRAM --seconds 4 --backlog 5000 --rounds 1 --pages 40      to see that it runs

A complete system with each service as a process, Postgres with fsync, Redis with its append-only file, all on the cores that
wrk uses too. Each automation has three steps: a condition, in it a `set`, and a `create_entry`. A page holds at most 500
entries, so there are many pages with an automation each. The runs are started by requests to trigger URLs and by submissions
of forms: at 50 per second, then as fast as they are accepted. Then runs are due that were inserted before: a tenth first, to see
whether memory grows with the backlog. Steps without I/O and hostile inputs are timed in one process. Writes tests/bench/automations.md.

Exits with 1 if a bar is missed, or if a run that was accepted is not there.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import fixture
from webhooks import Peak, cpu_seconds, stores

HERE = pathlib.Path(__file__).resolve().parent
CONNECTIONS = 64
RATE = 50
BARS = {"saturation": 2000, "p99": 50, "drain": 0.8, "memory": 1.25, "step": 20}

LUA = """
local paths, n = {%s}, 0
function init(args) math.randomseed(os.time() + tonumber(tostring({}):sub(10), 16) %% 1000000) end
function request()
    n = n + 1
    local body = '{"email": "ana' .. n .. '@example.com", "score": ' .. (n %% 100) .. '}'
    return wrk.format("POST", paths[math.random(#paths)], {["Content-Type"] = "application/json"}, body)
end
local refused = 0
function response(status) if status >= 300 then refused = refused + 1 end end
"""


def steps(page):
    return [
        {"id": "check", "type": "condition", "branches": [{"if": "trigger.payload.score >= 0", "steps": [
            {"id": "lead", "type": "set", "values": {"label": "{{ trigger.payload.email }} ({{ trigger.payload.score }})"}}]}]},
        {"id": "keep", "type": "create_entry", "pageId": page, "data": {"label": "{{ steps.lead.label }}"}},
    ]


class Bench:
    """A system with pages, and automations that write to them."""

    def __init__(self, stack, pages):
        self.stack, self.base = stack, stack["base_url"]
        self.key = fixture.call("POST", f"{self.base}/api/trial")["key"]
        account = fixture.call("GET", f"{self.base}/api/account", self.key)["id"]
        self.account = account
        folder = pathlib.Path(stack["log_dir"]).parent
        subprocess.run([*stack["runner"], "admin", "--dir", folder, "plan", account, "scale"], check=True, cwd=fixture.ROOT,
                       stdout=subprocess.DEVNULL)
        while fixture.call("GET", f"{self.base}/api/account", self.key)["_meta"]["plan"] != "scale":
            time.sleep(0.05)  # services cache a key for up to a second
        with ThreadPoolExecutor(4) as pool:
            self.pages = list(pool.map(self.page, range(pages)))
            made = list(pool.map(self.automation, enumerate(self.pages)))
        self.urls = [one["triggerUrl"] for one in made]
        self.ids = [one["id"] for one in made]
        services = stack["services"]
        postgres, redis = stores(stack)
        self.runner = services["job-runner"]["pid"]
        self.parts = {"job-runner": self.runner, "control-plane": services["control-plane"]["pid"],
                      "edge": services["edge-server"]["pid"], "Postgres": postgres, "Redis": redis}
        self.peak = Peak(self.runner)

    def page(self, number):
        page = {"slug": f"leads-{number}", "title": "Leads", "html": "<ul>{{entries}}</ul>", "entryTemplate": "<li>{{label}}</li>"}
        return fixture.call("POST", f"{self.base}/api/pages", self.key, page)["id"]

    def automation(self, numbered, trigger=None, more=()):
        number, page = numbered
        body = {"name": f"Leads {number}", "slug": f"leads-{number}", "trigger": trigger or {"type": "http"},
                "steps": [*steps(page), *more]}
        return fixture.call("POST", f"{self.base}/api/automations", self.key, body)

    def clear(self):
        """Empties the pages, which hold 500 entries each. Runs stay, as they do for days. Statistics are those that
        autovacuum makes every minute."""
        fixture.query(self.stack, "delete from page_entries; update pages set entry_count = 0;"
                                  "analyze automation_runs; analyze automation_steps; analyze page_entries; analyze outbox;")

    def until_ended(self, limit=300):
        began = time.monotonic()
        while int(fixture.query(self.stack, "select count(*) from automation_runs where due_at is not null")
                  or 0) + int(fixture.query(self.stack, "select count(*) from automation_triggers")):
            if time.monotonic() - began > limit:
                raise SystemExit("runs did not end")
            time.sleep(0.2)

    def measured(self, name, work):
        """Runs `work` on empty pages and returns what the rows say about its runs."""
        self.clear()
        began = fixture.query(self.stack, "select clock_timestamp()")
        self.peak.read()
        before = {part: cpu_seconds(pid) for part, pid in self.parts.items()}
        accepted = work()
        self.until_ended()
        row = fixture.query(self.stack, """
            select count(*), count(*) filter (where status = 'success'),
                   extract(epoch from max(finished_at) - min(created_at)),
                   percentile_cont(0.5) within group (order by ms), percentile_cont(0.99) within group (order by ms)
            from (select *, extract(epoch from finished_at - created_at) * 1000 as ms from automation_runs
                  where created_at >= '%s') r""" % began).split("|")
        runs, succeeded, took, p50, p99 = [float(field) for field in row]
        output = {"name": name, "accepted": accepted, "runs": int(runs), "failed": int(runs - succeeded), "rate": runs / took,
                  "p50": p50, "p99": p99, "rss": self.peak.read()}
        output["cpu"] = {part: (cpu_seconds(pid) - before[part]) / max(runs, 1) * 1000 for part, pid in self.parts.items()}
        print(json.dumps(output), flush=True)
        return output

    def wrk(self, folder, paths, seconds, connections=CONNECTIONS):
        """Posts to the paths as fast as they are answered. Returns the number of answers with a status below 300."""
        script = pathlib.Path(folder) / "post.lua"
        script.write_text(LUA % ", ".join(f'"{path}"' for path in paths))
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s", script, f"http://127.0.0.1:{self.stack['http_port']}"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        answers = int(re.search(r"(\d+) requests in", output).group(1))
        refused = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
        if "Socket errors" in output or refused:
            print(output, flush=True)
        return answers - (int(refused.group(1)) if refused else 0)

    def by_rate(self, urls, seconds):
        """Posts at RATE per second. Returns the milliseconds of each answer."""
        def post(numbered):
            number, url = numbered
            time.sleep(max(began + number / RATE - time.monotonic(), 0))
            start = time.monotonic()
            body = json.dumps({"email": f"ana{number}@example.com", "score": number % 100}).encode()
            request = urllib.request.Request(url, body, {"content-type": "application/json"}, method="POST")
            with urllib.request.urlopen(request) as response:
                response.read()
            return (time.monotonic() - start) * 1000

        count = RATE * seconds
        with ThreadPoolExecutor(16) as pool:
            began = time.monotonic() + 0.1
            return list(pool.map(post, ((number, urls[number % len(urls)]) for number in range(count))))

    def backlog(self, count):
        """Inserts runs that all become due at once, a while later."""
        fixture.query(self.stack, f"""
            insert into automation_runs (id, account_id, automation_id, definition_hash, trigger_type, trigger, status, due_at, created_at)
            select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
                    || substr(replace(gen_random_uuid()::text, '-', ''), 13))::uuid,
                   a.account_id, a.id, a.definition_hash, 'http',
                   json_build_object('payload', json_build_object('email', 'ana' || n || '@example.com', 'score', n % 100)),
                   'queued', now() + interval '1 hour', now()
            from generate_series(1, {count}) n
            join (select *, row_number() over () - 1 as place from automations where id = any('{{{",".join(self.ids)}}}')) a
                on a.place = n % {len(self.ids)};
            analyze automation_runs;
            update automation_runs set due_at = now(), created_at = clock_timestamp() where due_at > now() + interval '1 minute';""")
        return count


def submissions(bench):
    """Creates forms whose submissions start automations. Returns the paths of their submit addresses."""
    paths = []
    for number, page in enumerate(bench.pages[:100]):  # a page holds 500 entries
        fields = [{"name": "email", "label": "E-mail", "type": "email"}, {"name": "score", "label": "Score", "type": "number"}]
        form = fixture.call("POST", f"{bench.base}/api/forms", bench.key, {"name": f"Lead {number}", "fields": fields})
        trigger = {"type": "form_submission", "formId": form["formId"]}
        bench.automation((f"form-{number}", page), trigger)
        paths.append(f"/api/forms/{form['formId']}/submit")
    return paths


def percentile(values, share):
    return statistics.quantiles(values, n=1000)[int(share * 1000) - 1]


def measure(stack, arguments, folder):
    bench = Bench(stack, arguments.pages)
    paths = [url.split("/", 3)[3] for url in bench.urls]
    paths = [f"/{path}" for path in paths]
    forms = submissions(bench)
    answering = bench.automation(("answer", bench.pages[0]), more=[
        {"id": "answer", "type": "respond", "status": 200, "body": {"label": "{{ steps.lead.label }}"}}])["triggerUrl"]
    bench.wrk(folder, paths, 2)  # warms up
    bench.until_ended()
    rows = []
    form_urls = [f"{bench.base}{path}" for path in forms]
    rows.append(bench.measured(f"submissions, {RATE} a second", lambda: len(bench.by_rate(form_urls, arguments.seconds))))
    rows.append(bench.measured(f"requests, {RATE} a second", lambda: len(bench.by_rate(bench.urls, arguments.seconds))))
    answers = []
    # A page holds 500 entries.
    rows.append(bench.measured(f"requests that are answered, {RATE} a second",
                               lambda: answers.extend(bench.by_rate([answering], min(arguments.seconds, 9))) or len(answers)))
    rows[-1] |= {"answer_p50": percentile(answers, 0.5), "answer_p99": percentile(answers, 0.99)}
    for number in range(arguments.rounds):
        rows.append(bench.measured(f"requests, saturation {number + 1}", lambda: bench.wrk(folder, paths, arguments.seconds)))
        rows.append(bench.measured(f"submissions, saturation {number + 1}", lambda: bench.wrk(folder, forms, min(arguments.seconds, 6))))
    for name, count in [("backlog, a tenth", arguments.backlog // 10), ("backlog", arguments.backlog)]:
        rows.append(bench.measured(name, lambda: bench.backlog(count)))
    return rows


def example(name):
    """The table that an example of the crate `automation` prints."""
    command = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "automation", "--example", name]
    if fixture.PROFILE == "dev":
        command.remove("--release")
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=fixture.ROOT, env=os.environ | {"SQLX_OFFLINE": "true"}).stdout


def slowest_inputs(hostile, count=20):
    """The rows of the inputs that take longest, and the line about all."""
    head, line, *rows = [one for one in hostile.splitlines() if one.startswith("|")]
    rows.sort(key=lambda row: -float(row.split("|")[-2]))
    return "\n".join([head, line, *rows[:count]]), hostile.strip().splitlines()[-1]


def judge(rows, costs, arguments):
    """Compares the figures with the bars. Returns lines `(what, figure, bar, is met)`."""
    by = {row["name"]: row for row in rows}
    steady = statistics.median(row["rate"] for row in rows if row["name"].startswith("requests, saturation"))
    forms = statistics.median(row["rate"] for row in rows if row["name"].startswith("submissions, saturation"))
    slowest = max(by[f"{kind}, {RATE} a second"]["p99"] for kind in ["submissions", "requests"])
    answered = by[f"requests that are answered, {RATE} a second"]["answer_p99"]
    drained, tenth = by["backlog"], by["backlog, a tenth"]
    step = max(float(cell) for cell in re.findall(r"^\| (?:set|condition)[^|]*\| ([\d.]+)", costs, re.MULTILINE))
    lost = sum(max(row["accepted"] - row["runs"], 0) + row["failed"] for row in rows)
    return [
        ("runs/s by requests at saturation, median", f"{steady:,.0f}", f"≥ {BARS['saturation']:,}", steady >= BARS["saturation"]),
        ("runs/s by submissions at saturation, median", f"{forms:,.0f}", "", True),
        (f"p99 from trigger to done at {RATE} a second", f"{slowest:.1f} ms", f"≤ {BARS['p99']} ms", slowest <= BARS["p99"]),
        (f"p99 of an answer by `respond` at {RATE} a second", f"{answered:.1f} ms", f"≤ {BARS['p99']} ms", answered <= BARS["p99"]),
        (f"{arguments.backlog:,} queued runs, against the rate by requests", f"{drained['rate']:,.0f}/s, {drained['rate'] / steady:.0%}",
         f"≥ {BARS['drain']:.0%}", drained["rate"] >= BARS["drain"] * steady),
        ("memory of the job-runner, backlog against a tenth", f"{drained['rss']:.0f} MB, {drained['rss'] / tenth['rss']:.2f} ×",
         f"≤ {BARS['memory']} ×", drained["rss"] <= BARS["memory"] * tenth["rss"]),
        ("a step without I/O", f"{step:.1f} µs", f"≤ {BARS['step']} µs", step <= BARS["step"]),
        ("accepted runs that are missing or failed", f"{lost}", "0", lost == 0),
    ]


def table(rows, costs, hostile, verdicts, arguments):
    def line(row):
        cpu = " · ".join(f"{row['cpu'][part]:.2f}" for part in row["cpu"])
        answer = f"{row['answer_p50']:.1f} / {row['answer_p99']:.1f}" if "answer_p50" in row else ""
        return (f"| {row['name']} | {row['runs']:,} | {row['rate']:,.0f} | {row['p50']:,.1f} / {row['p99']:,.1f} | {answer} |"
                f" {row['rss']:.0f} MB | {cpu} | {row['failed']} |")

    parts = " · ".join(rows[0]["cpu"])
    inputs, summary = slowest_inputs(hostile)
    lines = "\n".join(line(row) for row in rows)
    bars = "\n".join(f"| {what} | {figure} | {bar} | {'yes' if met else '**no**'} |" for what, figure, bar, met in verdicts)
    return f"""# Runs of automations

Made by `tests/bench/automations.py` ({fixture.PROFILE} build). Each run has three steps: a condition, in it a `set`, and a
`create_entry`; {arguments.pages} pages and automations. wrk with {CONNECTIONS} connections and all services share {os.cpu_count()} cores.

| | figure | bar | met |
| --- | ---: | ---: | --- |
{bars}

Milliseconds from the insertion of the run to its end, and of the whole answer. Memory is that of the job-runner.

| load | runs | runs/s | done p50 / p99 | answer p50 / p99 | memory | CPU ms per run: {parts} | failed |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{lines}

At saturation the time to the end is that of the queue: wrk sends more than is executed.

Steps without I/O, in one process (`cargo run -p automation --release --example step_cost`):

{costs}
Hostile inputs, one evaluation each, the slowest first (`--example hostile_table` prints all). {summary}
Allowed are 20,000 operations and 16 MB.

{inputs}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", metavar="PROGRAM")
    for name, default in [("seconds", 10), ("backlog", 100_000), ("rounds", 3), ("pages", 250)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    costs, hostile = example("step_cost"), example("hostile_table")
    settings = ["automations.max_requests_per_minute=0"]
    with tempfile.TemporaryDirectory() as folder, fixture.system(*settings, program=arguments.program) as stack:
        rows = measure(stack, arguments, folder)
    verdicts = judge(rows, costs, arguments)
    text = table(rows, costs, hostile, verdicts, arguments)
    (HERE / "automations.md").write_text(text)
    print(text)
    if not all(met for *_, met in verdicts):
        sys.exit("a bar is missed")


if __name__ == "__main__":
    main()
