#!/usr/bin/env python3
"""Does a data folder of one build start under another with everything in it?

    tests/nightly/data_folder.py BEFORE AFTER        a minute

BEFORE and AFTER are local runners. BEFORE fills a folder: a page, a form, submissions of which one is delivered and one
is still to be retried, and counted visits. Then it stops, AFTER starts on the same folder, and every item is read back
through the API, changed, and served.
"""

import contextlib
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

TIMEOUT_SECONDS = 60
BROWSER = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"}


class Receiver(http.server.BaseHTTPRequestHandler):
    """Records webhook deliveries; answers 500 while `refuses`."""

    refuses = False
    received = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not Receiver.refuses:
            Receiver.received.append(body["data"].get("submissionId"))
        self.send_response(500 if Receiver.refuses else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def call(method, url, key=None, body=None, headers=None):
    headers = {"content-type": "application/json", **(headers or {}), **({"authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request) as response:
        text = response.read()
    return json.loads(text) if text[:1] in (b"{", b"[") else text.decode()


def until(condition, check):
    """Polls until `check` returns something true and returns that."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError, OSError):
            if value := check():
                return value
        time.sleep(0.1)
    sys.exit(f"waited {TIMEOUT_SECONDS} s for {condition}")


@contextlib.contextmanager
def running(program, folder, port):
    schedule = 'webhooks.retry_schedule=["0s", "2s", "2s", "2s", "2s", "2s", "2s", "2s"]'
    command = [program, "up", "--detach", "--dir", folder, "--port", str(port)]
    if subprocess.run([*command, "--set", schedule], capture_output=True).returncode:
        # The setting's name until 0.1.
        subprocess.run([*command, "--set", schedule.replace("retry_schedule", "schedule")], check=True, stdout=subprocess.DEVNULL)
    try:
        yield json.loads((pathlib.Path(folder) / "stack.json").read_text())["base_url"]
    finally:
        subprocess.run([program, "down", "--dir", folder], check=True, stdout=subprocess.DEVNULL)


def served(url):
    """A page of a site under localhost, whose name need not resolve."""
    _, _, host, *path = url.split("/")
    request = urllib.request.Request(f"http://127.0.0.1:{host.rpartition(':')[2]}/{'/'.join(path)}", headers={"host": host})
    return urllib.request.urlopen(request).read().decode()


def fill(base, receiver):
    """Creates one of everything; returns what must be there afterwards."""
    key = call("POST", f"{base}/api/trial")["key"]
    page = call("POST", f"{base}/api/pages", key, {"slug": "index", "title": "T", "html": "<h1>before</h1>"})
    form = call("POST", f"{base}/api/forms", key, {"name": "F", "fields": [{"name": "n", "label": "N", "type": "number"}]})
    hook = call("POST", f"{base}/api/webhooks", key, {"url": receiver})
    site = call("POST", f"{base}/api/analytics/sites", key, {"name": "S"})["site"]
    delivered = call("POST", form["submitUrl"], body={"n": 1})["submissionId"]
    until("the first delivery", lambda: delivered in Receiver.received)
    Receiver.refuses = True
    pending = call("POST", form["submitUrl"], body={"n": 2})["submissionId"]
    event = {"siteToken": site["siteToken"], "name": "page_view", "url": "https://example.com/"}
    call("POST", f"{base}/api/collect", body=event, headers=BROWSER)
    assert "<h1>before</h1>" in until("the page", lambda: served(page["subdomainUrl"]))
    return {"key": key, "page": page, "form": form, "hook": hook, "site": site, "event": event, "submissions": {delivered, pending},
            "pending": pending}


def check(base, items):
    """Reads everything back, and changes it."""
    key = items["key"]
    assert "<h1>before</h1>" in until("the page", lambda: served(items["page"]["subdomainUrl"]))
    print("the page is served", flush=True)
    form = items["form"]["formId"]
    listed = call("GET", f"{base}/api/forms/{form}/submissions", key)["submissions"]
    assert {one["id"] for one in listed} == items["submissions"], listed
    print("both submissions are listed", flush=True)
    Receiver.refuses = False
    until("the pending delivery", lambda: items["pending"] in Receiver.received)
    print("the delivery that was pending arrived", flush=True)
    query = f"{base}/api/analytics/query?siteId={items['site']['id']}&metric=page_views&period=7d"
    until("the visit to be counted", lambda: call("GET", query, key)["total"] == 1)
    print("the visit is counted once", flush=True)
    call("PUT", f"{base}/api/pages/{items['page']['id']}", key, {"html": "<h1>after</h1>"})
    until("the edit", lambda: "<h1>after</h1>" in served(items["page"]["subdomainUrl"]))
    submission = call("POST", items["form"]["submitUrl"], body={"n": 3})["submissionId"]
    until("a new delivery", lambda: submission in Receiver.received)
    call("POST", f"{base}/api/collect", body=items["event"], headers=BROWSER)
    until("a second visit", lambda: call("GET", query, key)["total"] == 2)
    print("edits, submissions, deliveries and events work", flush=True)


def main():
    before, after = sys.argv[1:3]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    receiver = f"http://127.0.0.1:{server.server_port}/hook"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as probe:
        port = probe.server_port
    with tempfile.TemporaryDirectory(prefix="web-runtime-nightly-") as folder:
        with running(before, folder, port) as base:
            items = fill(base, receiver)
        print("filled and stopped the first build", flush=True)
        with running(after, folder, port) as base:
            check(base, items)


if __name__ == "__main__":
    main()
