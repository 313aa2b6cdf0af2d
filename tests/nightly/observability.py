#!/usr/bin/env python3
"""Does every panel and every alert see something? A real Prometheus and real exporters beside a running stack, under load and faults.

    tests/nightly/observability.py [PROGRAM] [--short]      two minutes, or one; PROGRAM is a local runner that is built already

Visitors load pages, submit a form, and send events; a client uses the API and deploys; webhooks go to a receiver that accepts
and to one that answers 500; a form and the month of an account are full. Then ClickHouse, Postgres, the receivers and the job-runner
are stopped for a while, stores refuse their exporters, and a backup is old: each fault must fire its alerts, by rules whose times are
shortened, and no earlier. At the end each expression of deploy/observability, with the dashboard's variables filled in and an
alert's limits left out, must yield at least one series that is no NaN; expressions.SILENT names those that can't. Each metric of
.ci/deploy_lint/exporters.py is served by its exporter, and the SQL of the runbooks runs on the stores.
"""

import contextlib
import http.client
import http.server
import json
import pathlib
import sys
import tempfile
import threading
import time
import types
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "bench"), str(HERE.parent / "soak"), str(ROOT / ".ci")]

import fixture  # noqa: E402
import automations  # noqa: E402
import neighbours  # noqa: E402
import webhooks  # noqa: E402
from deploy_lint import exporters as listed, runbooks  # noqa: E402
from monitoring import exporters, expressions, faults, prometheus  # noqa: E402
from monitoring.faults import Fault  # noqa: E402

NOT_RUN = 77
# Without --short: the load before the faults and after them.
CALM_SECONDS = 30
REQUEST_SECONDS, PAUSE_SECONDS = 30, 0.2
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


class Receiver(http.server.BaseHTTPRequestHandler):
    """Accepts what is sent to /hook/0 and answers 500 to everything else."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200 if self.path == "/hook/0" else 500)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def listen(port=0):
    """Starts the receivers of webhooks on a port."""
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    return receiver


@contextlib.contextmanager
def refusing(receiver):
    """The port of the receivers refuses connections."""
    receiver.shutdown()
    receiver.server_close()
    yield
    listen(receiver.server_port)


def full_account(stack):
    """An account whose month has no event left. Returns the token of its site."""
    base = stack["base_url"]
    key = fixture.call("POST", f"{base}/api/trial")["key"]
    account = fixture.call("GET", f"{base}/api/account", key)["id"]
    fixture.query(stack, f"insert into monthly_usage (account_id, month, events) values ('{account}', date_trunc('month', now() at time zone 'utc'), 1000000)")
    return fixture.call("POST", f"{base}/api/analytics/sites", key, {"name": "Full"})["site"]["siteToken"]


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
    over = full_account(stack)
    answer = lambda number: {"score": number, "email": f"ana{number}@example.com", "message": "x"}
    view = lambda token, number: {"siteToken": token, "name": "page_view", "url": f"https://shop.example/{number}"}
    return [
        lambda number: send("GET", f"http://127.0.0.1:{port}/", host=host),
        lambda number: send("GET", f"http://127.0.0.1:{port}/missing-{number}", host=host),
        lambda number: send("POST", f"{base}/api/forms/{form}/submit", answer(number)),
        lambda number: send("POST", f"{base}/api/forms/{full}/submit", {"email": f"ana{number}@example.com"}),
        lambda number: send("POST", f"{base}/api/collect", view(site["siteToken"], number)),
        lambda number: send("POST", f"{base}/api/collect", view(over, number)),
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


@contextlib.contextmanager
def traffic(stack, receiver):
    """Does everything again and again, each thing in a thread of its own."""
    ended = threading.Event()

    def repeat(action):
        number = 0
        while not ended.is_set():
            action(number)
            number += 1
            ended.wait(PAUSE_SECONDS)

    threads = [threading.Thread(target=repeat, args=[action], daemon=True) for action in set_up(stack, receiver)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def rounds(stack, running, folder, receiver):
    """The faults, by rounds of those that are there at the same time."""
    stores = {name: store["pid"] for name, store in stack["stores"].items()}
    pids = {job: process.pid for job, process in running.processes.items()}
    clickhouse = [stores["clickhouse"], *([pids["clickhouse"]] if "clickhouse" in pids else [])]
    job_runner = stack["services"]["job-runner"]["pid"]

    @contextlib.contextmanager
    def backup_old():
        exporters.write_backup(folder / "textfiles", blobs=27 * 3600)
        yield
        exporters.write_backup(folder / "textfiles")

    named = lambda *names: [{"alertname": name} for name in names]
    attempts = 'rate(job_runner_deliveries_attempted_total{result="http_status"}[15s])'
    dropped = 'rate(collector_events_dropped_total{reason="quota"}[15s])'
    away = [{"alertname": "StoreErrors", "store": "clickhouse"}, *named("SegmentsOld", *["ClickHouseDown"][: len(clickhouse) - 1])]
    return [[
        Fault("a webhook answers 500", contextlib.nullcontext, grows=[attempts]),
        Fault("the month of an account is full", contextlib.nullcontext, grows=[dropped]),
    ], [
        Fault("ClickHouse hangs", lambda: faults.stopped(*clickhouse), away),
        Fault("the receivers of webhooks are gone", lambda: refusing(receiver), named("DeliveriesUnreachable")),
        Fault("a backup is old", backup_old, [{"alertname": "BackupOld", "part": "blobs"}]),
    ], [
        Fault("Postgres refuses its exporter", lambda: running.refused("postgres"), named("PostgresDown")),
        Fault("Redis refuses its exporter", lambda: running.refused("redis"), named("RedisDown")),
        Fault("the job-runner hangs", lambda: faults.stopped(job_runner),
              [{"alertname": "ServiceUnavailable", "job": "job-runner"}, *named("InstanceDown", "QueuesNotMeasured")]),
    ], [
        Fault("Postgres hangs", lambda: faults.stopped(*faults.backends(stores["postgres"])),
              [{"alertname": "ExporterDown", "job": "postgres"}, *named("EdgeErrors")]),
    ]]


def run_sql(stack):
    """Runs the statements of the runbooks' safe commands. They are for operators, who paste them."""
    statements = [runbooks.sql_of(command) for command in runbooks.all_commands(ROOT)]
    for store, statement in filter(None, statements):
        if store == "psql":
            fixture.query(stack, statement)
        else:
            user = {"x-clickhouse-user": stack["clickhouse_user"], "x-clickhouse-key": stack["clickhouse_password"]}
            urllib.request.urlopen(urllib.request.Request(stack["clickhouse_url"], statement.encode(), user), timeout=30).read()
        yield statement


def until_scraped(ask):
    """Waits until each service was scraped after the load."""
    since = time.time()
    while any(float(series["value"][1]) < since for series in ask("timestamp(webruntime_ready)")) or not ask("job_runner_queue_due_rows"):
        time.sleep(0.2)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--short"]
    calm = 0 if "--short" in sys.argv else CALM_SECONDS
    found = exporters.programs()
    if found is None:
        print(f"Debian's packages can't be had: {', '.join(exporters.PACKAGES)}")
        return NOT_RUN
    receiver = listen()
    with contextlib.ExitStack() as stop:
        folder = pathlib.Path(stop.enter_context(tempfile.TemporaryDirectory(prefix="web-runtime-prometheus-")))
        # All events come from one address, whose limit would keep the collector idle for the rest of a minute.
        program = arguments[0] if arguments else None
        stack = stop.enter_context(fixture.system("collector.events_per_minute=1000000", program=program))
        began = time.monotonic()
        running = stop.enter_context(exporters.running(stack, found, folder))
        (folder / "rules").mkdir()
        rules = expressions.short_rules(folder / "rules")
        ask = stop.enter_context(prometheus.running(found["prometheus"], stack, running.addresses(), rules, folder))
        with traffic(stack, receiver.server_port):
            time.sleep(calm)
            faulty = rounds(stack, running, folder, receiver)
            for one in faulty:
                faults.prove(ask, one)
            for one in faulty:
                faults.until_mended(ask, one)
            time.sleep(calm)
        until_scraped(ask)
        every = [*expressions.panels(), *expressions.alerts()]
        problems = [*expressions.problems(ask, every), *exporters.problems(stack, running, listed.EXPORTED, listed.COMPUTED)]
        statements, fired = len(list(run_sql(stack))), ask.ever_firing()
    print("\n".join(problems))
    print(f"fired: {', '.join(fired)}")
    print(f"{len(every)} expressions, {statements} statements, {len(problems)} problems after {time.monotonic() - began:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
