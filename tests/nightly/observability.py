#!/usr/bin/env python3
"""Does every panel and every alert see something? A real Prometheus scrapes a running stack under load and faults.

    tests/nightly/observability.py [PROGRAM]        three minutes; PROGRAM is a local runner that is built already

Visitors load pages, submit a form, and send events; a client uses the API and deploys; webhooks go to a receiver that accepts
and to one that answers 500; a form is full; ClickHouse hangs for a while. Then each expression of deploy/observability, with the
dashboard's variables filled in and an alert's limits left out, must yield at least one series that is no NaN. SILENT names
those that only another fault fills.
"""

import contextlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "bench"), str(HERE.parent / "soak"), str(ROOT / ".ci")]

import fixture  # noqa: E402
import automations  # noqa: E402
import neighbours  # noqa: E402
import webhooks  # noqa: E402

OBSERVABILITY = ROOT / "deploy/observability"
SERVICES = ("edge-server", "control-plane", "collector", "job-runner")
BEFORE_SECONDS, CLICKHOUSE_AWAY_SECONDS, AFTER_SECONDS = 20, 40, 20
REQUEST_SECONDS, PAUSE_SECONDS = 60, 0.2
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
NOT_RUN = 77
# Metrics that have no value here, and why.
SILENT = {
    "job_runner_certificates_min_left_days": "no certificate is ordered on a local stack",
    "job_runner_job_seconds": "no mail is configured, and nothing is purged",
}


class Receiver(http.server.BaseHTTPRequestHandler):
    """Accepts what is sent to /hook/0 and answers 500 to everything else."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200 if self.path == "/hook/0" else 500)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def prometheus(stack, program, folder):
    """Runs Prometheus with the alerts of deploy/observability. Yields a function that asks it."""
    port = fixture.free_port()
    jobs = [{"job_name": name, "static_configs": [{"targets": [stack["services"][name]["metrics_url"].split("/")[2]]}]} for name in SERVICES]
    config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": jobs,
              "rule_files": [str(OBSERVABILITY / "prometheus/rules/*.yml")]}
    file = folder / "prometheus.json"  # JSON is YAML
    file.write_text(json.dumps(config))
    options = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    with open(folder / "prometheus.log", "w") as log:
        process = subprocess.Popen([program, *options], stdout=log, stderr=log)
    base = f"http://127.0.0.1:{port}"

    def ask(expression):
        query = urllib.parse.urlencode({"query": expression})
        return json.load(urllib.request.urlopen(f"{base}/api/v1/query?{query}"))["data"]["result"]

    try:
        for _ in range(200):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{base}/-/ready")
                break
            time.sleep(0.1)
        yield ask
    finally:
        process.terminate()
        process.wait()


def set_up(stack, receiver):
    """An account with everything that is measured. Returns one function for each thing that visitors and clients do."""
    base, port = stack["base_url"], stack["http_port"]
    key, _, form = webhooks.set_up(stack, receiver, hooks=2)
    page = fixture.call("POST", f"{base}/api/pages", key, {"slug": "index", "title": "A page", "html": "<ul>{{entries}}</ul>", "entryTemplate": "<li>{{label}}</li>"})["id"]
    full = fixture.call("POST", f"{base}/api/forms", key, {"name": "Full", "maxSubmissions": 1, "fields": [{"name": "email", "label": "E-mail", "type": "email"}]})["formId"]
    run = fixture.call("POST", f"{base}/api/automations", key, {"name": "Leads", "slug": "leads", "trigger": {"type": "http"}, "steps": automations.steps(page)})["triggerUrl"]
    site = fixture.call("POST", f"{base}/api/analytics/sites", key, {"name": "Shop"})["site"]
    host = f"{fixture.site_host(stack, key)}:{port}"
    other = types.SimpleNamespace(base=base, key=fixture.call("POST", f"{base}/api/trial")["key"])
    answer = lambda number: {"score": number, "email": f"ana{number}@example.com", "message": "x"}
    return [
        lambda number: send("GET", f"http://127.0.0.1:{port}/", host=host),
        lambda number: send("GET", f"http://127.0.0.1:{port}/missing-{number}", host=host),
        lambda number: send("POST", f"{base}/api/forms/{form}/submit", answer(number)),
        lambda number: send("POST", f"{base}/api/forms/{full}/submit", {"email": f"ana{number}@example.com"}),
        lambda number: send("POST", f"{base}/api/collect", {"siteToken": site["siteToken"], "name": "page_view", "url": f"https://shop.example/{number}"}),
        lambda number: send("POST", run, answer(number)),
        lambda number: send("PUT", f"{base}/api/pages/{page}", {"title": f"Title {number}"}, authorization=f"Bearer {key}"),
        lambda number: send("GET", f"{base}/api/account", authorization=f"Bearer {key}"),
        lambda number: send("GET", f"{base}/api/analytics/query?siteId={site['id']}&period=7d", authorization=f"Bearer {key}"),
        lambda number: neighbours.deploy(other, neighbours.zip_of({"index.html": f"<h1>{number}</h1>"})),
    ]


def send(method, url, body=None, **headers):
    """Sends a request as a browser does. Refusals, errors and timeouts are part of the load."""
    headers |= {"user-agent": BROWSER} | ({"content-type": "application/json"} if body else {})
    request = urllib.request.Request(url, body and json.dumps(body).encode(), headers, method=method)
    with contextlib.suppress(OSError, http.client.HTTPException):
        urllib.request.urlopen(request, timeout=REQUEST_SECONDS).read()


def traffic(stack, receiver):
    """Does everything again and again, each thing in a thread of its own, while ClickHouse hangs for a while."""
    ended = threading.Event()

    def repeat(action):
        number = 0
        while not ended.is_set():
            action(number)
            number += 1
            ended.wait(PAUSE_SECONDS)

    threads = [threading.Thread(target=repeat, args=[action]) for action in set_up(stack, receiver)]
    for thread in threads:
        thread.start()
    clickhouse = stack["stores"]["clickhouse"]["pid"]
    try:
        time.sleep(BEFORE_SECONDS)
        os.kill(clickhouse, signal.SIGSTOP)
        time.sleep(CLICKHOUSE_AWAY_SECONDS)
    finally:
        os.kill(clickhouse, signal.SIGCONT)
        ended.wait(AFTER_SECONDS)
        ended.set()
        for thread in threads:
            thread.join()


def panels():
    """The expressions of the dashboards, with all services and replicas."""
    for path in sorted((OBSERVABILITY / "grafana/dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"] if panel["type"] != "logs" else []:
                filled = target["expr"].replace("$job", ".+").replace("$instance", ".+").replace("$__rate_interval", "1m")
                yield f"{path.stem}, {panel['title']}, {target['legendFormat']}", filled


def alerts():
    """The expressions of the alerts without their limits, with intervals that a short run fills."""
    for path in sorted((OBSERVABILITY / "prometheus/rules").glob("*.yml")):
        for name, expression in re.findall(r"- alert: (\w+)\n\s+expr: '(.*)'", path.read_text()):
            for part in expression.replace("''", "'").split(" unless "):
                part = re.sub(r"^on \([^)]*\) ", "", part)
                part = re.sub(r" (?:==|>=|>|<) [0-9.]+", "", part).replace(" < ", " - ")
                yield name, re.sub(r"^absent\((.*)\)$", r"\1", part)


def missing(ask, expressions):
    """The expressions without a value, but those that only another fault fills."""
    for name, expression in expressions:
        if any(metric in expression for metric in SILENT):
            continue
        values = [series["value"][1] for series in ask(expression)]
        if all(value == "NaN" for value in values):
            yield f"{name}: {'only NaN' if values else 'no series'} for {expression}"


def until_scraped(ask):
    """Waits until each service was scraped after the load."""
    since = time.time()
    while any(float(series["value"][1]) < since for series in ask("timestamp(webruntime_ready)")) or not ask("job_runner_queue_due_rows"):
        time.sleep(0.2)


def main():
    from importlib import machinery, util

    loader = machinery.SourceFileLoader("check_deploy", str(ROOT / ".ci/check-deploy"))
    check_deploy = util.module_from_spec(util.spec_from_loader("check_deploy", loader))
    loader.exec_module(check_deploy)
    promtool = check_deploy.promtool()
    if promtool is None:
        print("Prometheus can't be had (on Debian: the package prometheus)")
        return NOT_RUN
    program = shutil.which("prometheus") or pathlib.Path(promtool).parent / "prometheus"
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    local = sys.argv[1] if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory(prefix="web-runtime-prometheus-") as folder, fixture.system(program=local) as stack:
        with prometheus(stack, program, pathlib.Path(folder)) as ask:
            traffic(stack, receiver.server_port)
            until_scraped(ask)
            expressions = [*panels(), *alerts()]
            found = list(missing(ask, expressions))
            useless = [metric for metric in SILENT if not any(metric in expression for _, expression in expressions)]
    print("\n".join(found))
    if useless:
        print(f"SILENT names metrics of no expression: {', '.join(useless)}")
    print(f"{len(expressions)} expressions, {len(found)} without a value")
    return 1 if found or useless else 0


if __name__ == "__main__":
    sys.exit(main())
