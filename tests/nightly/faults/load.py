"""Visitors and clients at a steady rate while something fails, and what must be there afterwards.

Every submission, event and page write has a number. What was acknowledged is compared with what is stored, by number."""

import collections
import contextlib
import http.client
import http.server
import json
import pathlib
import re
import subprocess
import threading
import time
import urllib.request

import automations
import fixture

from . import wait

PER_SECOND = 10
TIMEOUT_SECONDS = 30
MAX_RUN_SECONDS = 60
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
JSON_TYPE = {"content-type": "application/json"}
# The load comes from one address.
SETTINGS = ("forms.max_submissions_per_minute=1000000", "forms.max_submissions_per_day=1000000", "collector.events_per_minute=1000000")


class Receiver:
    """A receiver of webhooks that remembers the numbers of the submissions."""

    def __init__(self):
        received, arrived = self.received, self.arrived = collections.Counter(), {}
        lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                number = find_number(json.loads(body))
                if number is not None:
                    with lock:
                        received[number] += 1
                        arrived.setdefault(number, time.monotonic())
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def find_number(value):
    """The value of `number` anywhere in a message."""
    if isinstance(value, dict):
        if "number" in value:
            return int(value["number"])
        value = list(value.values())
    if isinstance(value, list):
        return next((found for one in value if (found := find_number(one)) is not None), None)
    return None


class Account:
    """An account with a page, a form, a webhook and an analytics site."""

    def __init__(self, stack, receiver):
        base = stack["base_url"]
        self.stack = stack
        self.key = fixture.call("POST", f"{base}/api/trial")["key"]
        account = fixture.call("GET", f"{base}/api/account", self.key)["id"]
        folder = pathlib.Path(stack["log_dir"]).parent
        subprocess.run([*stack["runner"], "admin", "--dir", folder, "plan", account, "scale"], check=True, cwd=fixture.ROOT, stdout=subprocess.DEVNULL)
        plan = lambda: fixture.call("GET", f"{base}/api/account", self.key)["_meta"]["plan"]
        wait.until(lambda: plan() == "scale", "the services know the plan")
        post = lambda path, body: fixture.call("POST", f"{base}/api/{path}", self.key, body)
        self.post, self.receiver = post, receiver
        self.page = post("pages", {"slug": "index", "title": "0", "html": html(0), "entryTemplate": "<li>{{label}}</li>"})["id"]
        post("pages", {"slug": "warm", "title": "Warm", "html": "<h1>Never changed</h1>"})
        self.host = f"{fixture.site_host(stack, self.key)}:{stack['http_port']}"

        steps = automations.steps(self.page)
        self.trigger = post("automations", {"name": "Faults", "slug": "faults", "trigger": {"type": "http"}, "steps": steps})["triggerUrl"]

    def run_automation(self, query):
        """Triggers an automation, and returns how long it took until the run succeeded."""
        done = lambda: int(query("select count(*) from automation_runs where status = 'success'") or 0)
        before = done()
        body = json.dumps({"score": 9, "email": "ana@example.com", "message": "x"}).encode()
        urllib.request.urlopen(urllib.request.Request(self.trigger, body, JSON_TYPE)).read()
        return wait.until(lambda: done() > before, "a run of an automation succeeds", MAX_RUN_SECONDS)

    def start(self):
        """Begins anew for the next fault: numbers start at zero."""
        self.receiver.received.clear()
        self.receiver.arrived.clear()
        self.form = self.post("forms", {"name": "Faults", "fields": [{"name": "number", "label": "Number", "type": "number"}]})["formId"]
        self.post("webhooks", {"url": f"http://127.0.0.1:{self.receiver.port}/", "formIds": [self.form]})
        self.site = self.post("analytics/sites", {"name": "Faults"})["site"]
        fixture.call("PUT", f"{self.stack['base_url']}/api/pages/{self.page}", self.key, {"title": "0", "html": html(0)})


def html(number):
    return f"<h1>number {number}.</h1>"


class Load:
    """Runs within `with`; afterwards `acknowledged` has the numbers by kind."""

    def __init__(self, account, kinds=("page", "submission", "event", "write", "changed page")):
        self.account, self.stopping = account, threading.Event()
        self.count, self.acknowledged = collections.Counter(), collections.defaultdict(set)
        self.failures = collections.defaultdict(list)
        self.ids, self.sent_at, self.shown_at = {}, {}, []
        self.lock = threading.Lock()
        # Two connections of each, so that one that waits does not stop the other. One writer: the last title wins.
        self.threads = [threading.Thread(target=self.send, args=(kind, first, 1 if kind == "write" else 2))
                        for kind in kinds for first in range(1 if kind == "write" else 2)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def request(self, kind, number):
        account, base_host = self.account, self.account.stack["base_url"].split("//")[1]
        if kind == "page":
            return "GET", "/warm", None, {"host": account.host}
        if kind == "changed page":
            # A page is forgotten when it changes, because the change may be its end. So it is not served while Postgres is away.
            return "GET", "/", None, {"host": account.host}
        if kind == "submission":
            return "POST", f"/api/forms/{account.form}/submit", {"number": number}, {"host": base_host} | JSON_TYPE
        if kind == "event":
            url = f"https://shop.example/{number}"
            return "POST", "/api/collect", {"siteToken": account.site["siteToken"], "name": "page_view", "url": url}, {"host": base_host, "user-agent": BROWSER} | JSON_TYPE
        return "PUT", f"/api/pages/{account.page}", {"title": str(number), "html": html(number)}, {"host": base_host, "authorization": f"Bearer {account.key}"} | JSON_TYPE

    def send(self, kind, first, step):
        number, connection, due = first, None, time.monotonic()
        while not self.stopping.is_set():
            method, path, body, headers = self.request(kind, number)
            began, failure, status = time.monotonic(), None, 0
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.account.stack["http_port"], timeout=TIMEOUT_SECONDS)
                connection.request(method, path, json.dumps(body) if body else None, headers)
                response = connection.getresponse()
                content, status = response.read(), response.status
                if status not in (200, 201, 204):
                    failure = content[:200]
            except (OSError, http.client.HTTPException) as error:
                failure, connection = repr(error), None
            with self.lock:
                self.count[kind] += 1
                if failure is None:
                    self.acknowledged[kind].add(number)
                    self.record(kind, number, content)
                else:
                    self.failures[kind].append((began, time.monotonic(), status, failure))
            number += step
            due = max(due + step / PER_SECOND, time.monotonic() - 1)
            self.stopping.wait(max(0, due - time.monotonic()))

    def record(self, kind, number, content):
        now = time.monotonic()
        if kind == "submission":
            self.ids[number], self.sent_at["delivery", number] = json.loads(content)["submissionId"], now
        elif kind == "write":
            self.sent_at["write", number] = now
        elif kind == "changed page":
            self.shown_at.append((now, int(re.search(rb"number (\d+)", content)[1])))

    def late_changes(self, limit=1):
        """When changes became visible that were not within a second."""
        shown = iter(sorted(self.shown_at))
        at, newest = next(shown, (0, -1))
        for (kind, number), sent in sorted(self.sent_at.items(), key=lambda one: one[1]):
            if kind == "write":
                while newest < number and (following := next(shown, None)):
                    at, newest = following[0], max(newest, following[1])
                if newest >= number and at - sent > limit:
                    yield at

    def late_deliveries(self, limit=1):
        """When deliveries arrived that did not within a second."""
        for number, at in list(self.account.receiver.arrived.items()):
            if at - self.sent_at.get(("delivery", number), at) > limit:
                yield at

    def outage_seconds(self, kind, since=0):
        """From the begin of the first failed request after a time to the end of the last."""
        failed = [(began, ended) for began, ended, *_ in self.failures[kind] if began >= since]
        return max(ended for _, ended in failed) - min(began for began, _ in failed) if failed else 0

    def statuses(self, kind):
        return collections.Counter(status for *_, status, _ in self.failures[kind])


def invalidation_is_quick(load):
    """Whether the last changes were visible within a second."""
    with load.lock:
        newest = max((shown for at, shown in load.shown_at if at > time.monotonic() - 1), default=-1)
        return any(number <= newest and sent > time.monotonic() - 2 for (kind, number), sent in load.sent_at.items() if kind == "write")


def problems(load, query, stack, events=True):
    """What was acknowledged and is not there, or is there twice. `query` runs SQL on Postgres."""
    found, account = [], load.account
    stored = dict(line.split("|") for line in query(f"select id::text, payload->>'number' from submissions where form_id::text = '{account.form}'").splitlines())
    lost = [number for number, id in load.ids.items() if stored.get(id) != str(number)]
    twice = [number for number, times in collections.Counter(stored.values()).items() if times > 1]
    if lost:
        found.append(f"{len(lost)} acknowledged submissions are not stored: {lost[:5]}")
    if twice:
        found.append(f"{len(twice)} submissions are stored twice: {twice[:5]}")
    with contextlib.suppress(wait.TooLate):
        wait.until(lambda: load.acknowledged["submission"] <= set(account.receiver.received), "all deliveries arrive")
    undelivered = load.acknowledged["submission"] - set(account.receiver.received)
    if undelivered:
        found.append(f"{len(undelivered)} acknowledged submissions were not delivered: {sorted(undelivered)[:5]}")
    if "write" in load.acknowledged:
        title = int(query(f"select title from pages where id::text = '{account.page}'") or -1)
        if title < max(load.acknowledged["write"]):
            found.append(f"the page has title {title}, but {max(load.acknowledged['write'])} was acknowledged")
    return found + (problems_of_events(load, stack) if events else [])


def problems_of_events(load, stack):
    found, site = [], load.account.site
    with contextlib.suppress(wait.TooLate):
        wait.until(lambda: load.acknowledged["event"] <= set(events(stack, site)), "all events are counted")
    counted = events(stack, site)
    missing, repeated = load.acknowledged["event"] - set(counted), [number for number, times in counted.items() if times > 1]
    if missing:
        found.append(f"{len(missing)} accepted events are not counted: {sorted(missing)[:5]}")
    if repeated:
        found.append(f"{len(repeated)} events are counted twice: {repeated[:5]}")
    return found


def events(stack, site):
    """The numbers of the stored events of a site."""
    query = f"select toUInt64(substring(path, 2)) from webruntime.events where site_id = '{site['id']}' format TabSeparated"
    return collections.Counter(int(line) for line in clickhouse(stack, query).splitlines())


def metric(address, name, label=""):
    """The sum of a metric's series with a label of that value, as a service shows it."""
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        lines = re.findall(rf"^{name}(\{{.*\}})? (\S+)$", answer.read().decode(), re.MULTILINE)
    return sum(float(value) for labels, value in lines if label in labels)


def clickhouse(stack, query):
    connection = http.client.HTTPConnection(stack["stores"]["clickhouse"]["address"], timeout=60)
    headers = {"X-ClickHouse-User": stack["clickhouse_user"], "X-ClickHouse-Key": stack["clickhouse_password"]}
    connection.request("POST", "/", query, headers)
    response = connection.getresponse()
    text = response.read().decode()
    if response.status != 200:
        raise RuntimeError(text[:500])
    return text
