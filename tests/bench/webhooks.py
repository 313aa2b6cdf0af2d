#!/usr/bin/env python3
"""How fast is a submission delivered? From a submit through edge, Postgres and job-runner to a receiver.

    tests/bench/webhooks.py                   six minutes; needs rustc and psql
    tests/bench/webhooks.py --rate 50 --seconds 8 --count 500 --backlog 5000 --rounds 1      to see that it runs

A complete system with each service as a process, Postgres with fsync, Redis with its append-only file. Sender and receiver
are one process (`load/main.rs`), so that one clock measures both: submissions of 1 KB over 32 connections, one webhook.
First at 200 per second, then at saturation, then both again, alternating without and with a hundred other webhooks whose
receiver never responds and which have thousands of due deliveries, then 100,000 deliveries that are due at once. CPU and
memory come from /proc. Writes tests/bench/webhooks.md.
"""

import argparse
import contextlib
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import threading
import time

import fixture

HERE = pathlib.Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
DEAD = 100


def build_load(folder):
    """Builds the program that submits and receives."""
    program = pathlib.Path(folder) / "load"
    subprocess.run(["rustc", "--edition", "2024", "-O", HERE / "load" / "main.rs", "-o", program], check=True)
    return program


def load(program, **options):
    output = subprocess.run([program, *[f"{key}={value}" for key, value in options.items()]], check=True, capture_output=True)
    return json.loads(output.stdout)


def stat(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), [int(field) / TICKS for field in fields[11:15]]


def children(pid):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if stat(entry.name)[0] == pid:
                found.append(int(entry.name))
    return found


def stores(stack):
    """The process ids of Postgres and Redis, children of the local runner."""
    names = {pid: pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in children(stack["pid"])}
    by_name = {name: pid for pid, name in names.items()}
    return by_name["postgres"], by_name["redis-server"]


def cpu_seconds(pid):
    """CPU time of a process and its children, including those that have exited."""
    total = sum(stat(pid)[1])
    for child in children(pid):
        with contextlib.suppress(OSError):
            total += sum(stat(child)[1])
    return total


class Peak:
    """The peak memory of a process since the last reading."""

    def __init__(self, pid):
        self.pid, self.most, self.ended = pid, 0, threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while not self.ended.wait(0.1):
            with contextlib.suppress(OSError, AttributeError):
                self.most = max(self.most, fixture.rss_mb(self.pid))

    def read(self):
        most, self.most = max(self.most, fixture.rss_mb(self.pid)), 0
        return most


class UnresponsiveReceiver:
    """Accepts connections and never responds; counts the callers that still wait."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port, self.waiting, self.lock = self.listener.getsockname()[1], 0, threading.Lock()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            threading.Thread(target=self.wait, args=(self.listener.accept()[0],), daemon=True).start()

    def wait(self, caller):
        self.count(1)
        with caller, contextlib.suppress(OSError):
            while caller.recv(65536):
                pass
        self.count(-1)

    def count(self, change):
        with self.lock:
            self.waiting += change

    def until(self, condition):
        while not condition(self.waiting):
            time.sleep(0.05)


def set_up(stack, sink, hooks=1):
    """Creates an account on the largest plan with a form and `hooks` webhooks. Returns its key, its id and the form's id."""
    key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
    account = fixture.call("GET", f"{stack['base_url']}/api/account", key)["id"]
    folder = pathlib.Path(stack["log_dir"]).parent
    subprocess.run([*stack["runner"], "admin", "--dir", folder, "plan", account, "scale"], check=True, cwd=fixture.ROOT,
                   stdout=subprocess.DEVNULL)
    while fixture.call("GET", f"{stack['base_url']}/api/account", key)["_meta"]["plan"] != "scale":
        time.sleep(0.05)  # services cache a key for up to a second
    form, _ = create_form(stack, key, sink, hooks)
    return key, account, form


def create_form(stack, key, sink, hooks):
    """Creates a form with `hooks` webhooks. Returns their ids."""
    fields = [{"name": "email", "label": "E-mail", "type": "email"}, {"name": "message", "label": "M", "type": "textarea"}]
    form = fixture.call("POST", f"{stack['base_url']}/api/forms", key, {"name": "Load", "fields": fields})["formId"]
    hook = {"url": f"http://127.0.0.1:{sink}/hook/", "formIds": [form]}
    made = [fixture.call("POST", f"{stack['base_url']}/api/webhooks", key, hook | {"url": hook["url"] + str(number)})
            for number in range(hooks)]
    return form, [one["id"] for one in made]


def submit_options(stack, form, sink):
    return {"sink": sink, "to": f"127.0.0.1:{stack['http_port']}", "path": f"/api/forms/{form}/submit"}


def backlog(stack, account, count):
    """Inserts deliveries that became due while none were sent, as after an outage of an hour."""
    statement = f"""
        insert into deliveries (id, account_id, webhook_id, event, payload, next_attempt_at, created_at)
        select gen_random_uuid(), account_id, webhook_id, event, payload, now() - interval '1 hour' * random(), now()
        from (select * from deliveries where account_id = '{account}' limit 1) one, generate_series(1, {count})"""
    subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", stack["postgres_url"], "-c", statement], check=True)


def beside_unresponsive(stack, program, key, options, arguments):
    """Runs the healthy webhook alternating without and with a hundred unresponsive ones. Returns the medians of both."""
    hole = UnresponsiveReceiver()
    _, dead = create_form(stack, key, hole.port, DEAD)
    of_dead = "webhook_id in (" + ", ".join(f"'{one}'" for one in dead) + ")"
    due = f"""insert into deliveries (id, account_id, webhook_id, event, payload, next_attempt_at, created_at)
        select gen_random_uuid(), account_id, id, 'submission.created', '{{"data": {{}}}}', now(), now()
        from webhooks, generate_series(1, 50) where id in ({of_dead.partition("(")[2]}"""
    runs = {"without": [], "with": []}
    for number in range(2 * arguments.rounds):
        # Both are first equally often.
        name = ["without", "with", "with", "without"][number % 4]
        if name == "with":
            fixture.query(stack, due)
            hole.until(lambda waiting: waiting >= DEAD)
        steady = load(program, **options, rate=arguments.rate, count=arguments.rate * max(arguments.seconds // 4, 2))
        full = load(program, **options, count=arguments.count)
        runs[name].append((steady["delivery_p50"], full["delivered"] / full["delivering_s"]))
        print(json.dumps({name: runs[name][-1], "waiting": hole.waiting}), flush=True)
        fixture.query(stack, f"delete from deliveries where {of_dead}")
        hole.until(lambda waiting: waiting == 0)
    return {name: [statistics.median(column) for column in zip(*figures)] for name, figures in runs.items()}


def measure(stack, program, arguments):
    sink = fixture.free_port()
    key, account, form = set_up(stack, sink)
    options = submit_options(stack, form, sink)
    runner = stack["services"]["job-runner"]["pid"]
    postgres, redis = stores(stack)
    parts = {"job-runner": runner, "edge": stack["services"]["edge-server"]["pid"], "Postgres": postgres, "Redis": redis}
    peak, rows = Peak(runner), []
    load(program, **options, count=500)  # warms up

    def run(name, **more):
        before = {part: cpu_seconds(pid) for part, pid in parts.items()}
        output = load(program, **{**options, **more})
        each = max(output["delivered"], 1)
        output |= {"name": name, "rss": peak.read(), "rate": output["delivered"] / max(output["delivering_s"], 0.001)}
        output["cpu"] = {part: (cpu_seconds(pid) - before[part]) / each * 1000 for part, pid in parts.items()}
        rows.append(output)
        print(json.dumps(output), flush=True)
        return output

    run(f"{arguments.rate} a second", rate=arguments.rate, count=arguments.rate * arguments.seconds)
    for number in range(arguments.rounds):
        run(f"saturation, run {number + 1}", count=arguments.count)
    run("saturation, long", count=4 * arguments.count)
    dead = beside_unresponsive(stack, program, key, options, arguments)
    # Receives only. A tenth first, to see whether memory grows with the backlog.
    del options["to"], options["path"]
    for name, count in [("backlog, a tenth", arguments.backlog // 10), ("backlog", arguments.backlog)]:
        peak.read()
        waiting = threading.Thread(target=lambda: (time.sleep(0.5), backlog(stack, account, count)))
        waiting.start()
        run(name, count=count)
        waiting.join()
    return rows, dead


def table(rows, dead, arguments):
    def line(row):
        cpu = " · ".join(f"{row['cpu'][part]:.2f}" for part in row["cpu"])
        latency = f"{row['delivery_p50']:.1f} / {row['delivery_p99']:.1f}" if row["accepted"] else ""
        accept = f"{row['accept_p50']:.1f} / {row['accept_p99']:.1f}" if row["accepted"] else ""
        accepted = f"{row['accepted'] / row['sending_s']:,.0f}" if row["accepted"] else ""
        return (f"| {row['name']} | {accepted} | {accept} | {row['rate']:,.0f} | {latency} | {row['rss']:.0f} MB | {cpu} |"
                f" {row['missing']} / {row['doubled']} |")

    rates = [row["rate"] for row in rows if row["name"].startswith("saturation, run")]
    steady, drained = statistics.median(rates), rows[-1]["rate"]
    lines = "\n".join(line(row) for row in rows)
    parts = " · ".join(rows[0]["cpu"])
    return f"""# From submission to delivery

Made by `tests/bench/webhooks.py` ({fixture.PROFILE} build): submissions of 1 KB over 32 connections, one webhook, sender
and receiver on the same {os.cpu_count()} cores. Milliseconds: until the response to a submission, and from that response to its
delivery.

| run | accepted/s | accept p50 / p99 | delivered/s | delivery p50 / p99 | job-runner | CPU ms per delivery: {parts} | missing / doubled |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{lines}

The bars: accepted = delivered at 1,500 a second (1.5 times Svix 1.100's 756–1,007 on such a machine) within 47 MB;
p50 below 14 ms and p99 below 29 ms at 200 a second; the backlog at no less than 80 % of the steady rate, which is
{drained / steady:.0%} here ({arguments.backlog:,} deliveries due at once).

The same webhook beside {DEAD} others of the account whose receiver accepts connections and never responds, with 50
deliveries each due at the start of each run; medians of {arguments.rounds} runs each, alternating:

| | p50 at {arguments.rate} a second | delivered/s at saturation |
| --- | ---: | ---: |
| alone | {dead['without'][0]:.2f} ms | {dead['without'][1]:,.0f} |
| beside unresponsive ones | {dead['with'][0]:.2f} ms | {dead['with'][1]:,.0f} |
| change (the bar: 10 % slower) | {dead['with'][0] / dead['without'][0] - 1:+.1%} | {dead['with'][1] / dead['without'][1] - 1:+.1%} |
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in [("rate", 200), ("seconds", 60), ("count", 5000), ("backlog", 100_000), ("rounds", 3)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, fixture.system() as stack:
        rows, dead = measure(stack, build_load(folder), arguments)
    text = table(rows, dead, arguments)
    (HERE / "webhooks.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
