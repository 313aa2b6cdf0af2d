"""Requests at a steady rate while containers are replaced: pages, API calls, submissions and events, on kept and on new
connections. Every answer other than 2xx and every error of a connection is a failure; nothing is retried."""

import collections
import http.client
import json
import threading
import time

from containers import story

PER_SECOND = 10
TIMEOUT_SECONDS = 30


class Load:
    """Runs within `with`; afterwards `count`, `failures` and `slowest` have the result."""

    def __init__(self, base, told):
        host = base.split("/")[2]
        site = told.page["subdomainUrl"].split("/")[2]
        submit = "/" + told.form["submitUrl"].split("/", 3)[3]
        submit_host = told.form["submitUrl"].split("/")[2]
        account = {"authorization": f"Bearer {told.key}"}
        event = json.dumps({"siteToken": told.site["siteToken"], "name": "load", "url": told.page["subdomainUrl"]})
        page = {"title": "Hello", "html": "<h1>Hello</h1>"}
        json_type = {"content-type": "application/json"}
        self.kinds = {
            "page": ("GET", site, "/", None, {}),
            "API read": ("GET", host, "/api/account", None, account),
            "API write": ("PUT", host, f"/api/pages/{told.page['id']}", json.dumps(page), account | json_type),
            "submission": ("POST", submit_host, submit, json.dumps({"n": 2}), json_type),
            "event": ("POST", host, "/api/collect", event, {"content-type": "text/plain", "user-agent": story.BROWSER}),
        }
        self.count = collections.Counter()
        self.failures = []
        self.failed_at = []
        self.slowest = collections.Counter()
        self.submissions = []
        self.events = 0
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.send_steadily, args=(kind, kept)) for kind in self.kinds for kept in (True, False)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def outage_seconds(self):
        """From the first failure to the last."""
        return max(self.failed_at) - min(self.failed_at) if self.failed_at else 0

    def send_steadily(self, kind, kept):
        method, host, path, body, headers = self.kinds[kind]
        connection = None
        due = time.monotonic()
        while not self.stopping.is_set():
            began = time.monotonic()
            failure = None
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", story.PORT, timeout=TIMEOUT_SECONDS)
                connection.request(method, path, body, headers | {"host": host} | ({} if kept else {"connection": "close"}))
                response = connection.getresponse()
                content = response.read()
                if not 200 <= response.status < 300:
                    failure = f"{response.status} {content[:120]!r}"
                elif kind == "submission":
                    self.submissions.append(json.loads(content)["submissionId"])
                elif kind == "event":
                    with self.lock:
                        self.events += 1
                if response.will_close or not kept:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                failure = repr(error)
                connection.close()
                connection = None
            seconds = time.monotonic() - began
            with self.lock:
                self.count[kind] += 1
                self.slowest[kind] = max(self.slowest[kind], seconds)
                if failure:
                    self.failed_at.append(began)
                    self.failures.append(f"{time.strftime('%H:%M:%S')} {kind}, {'kept' if kept else 'new'} connection, after {seconds:.2f} s: {failure}")
            due = max(due + 1 / PER_SECOND, time.monotonic() - 1)
            self.stopping.wait(max(0, due - time.monotonic()))
