"""The first story through the published port: a trial, a page, a file, a form, a submission and its delivery, and analytics."""

import http.client
import http.server
import json
import sys
import threading
import time

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082")
TIMEOUT_SECONDS = 90
PORT = 8080


def until(what, check):
    """Polls until `check` returns something true, and returns that. A refused connection is no answer yet."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    last = None
    while time.monotonic() < deadline:
        try:
            if value := check():
                return value
        except (OSError, http.client.HTTPException, Unexpected) as error:
            last = error
        time.sleep(0.2)
    sys.exit(f"waited {TIMEOUT_SECONDS} s for {what}; the last error: {last}")


class Unexpected(Exception):
    """A response with another status than 2xx."""


def send(method, url, body=b"", **headers):
    """Sends one request to the published port; names under localhost need not resolve."""
    _, _, host, path = url.split("/", 3)
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    try:
        connection.request(method, f"/{path}", body, {"host": host} | {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        content = response.read()
        if not 200 <= response.status < 300:
            raise Unexpected(f"{method} {url}: {response.status} {content[:300]!r}")
        return content
    finally:
        connection.close()


class Receiver:
    """A receiver of webhooks beside the containers."""

    def __init__(self):
        received = self.received = set()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                received.add(body["data"].get("submissionId"))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # The address of docker0, which containers of every network with a route out can reach.
        self.url = f"http://172.17.0.1:{server.server_port}/hook"


class Story:
    """The items of one account, each of which is read back after a restart. `query` runs a statement on Postgres."""

    def __init__(self, base, query):
        self.base, self.query = base, query
        self.key = ""
        self.submissions = []
        self.visits = 0

    def call(self, method, path, body=None):
        url = path if path.startswith("http") else f"{self.base}{path}"
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        if body is not None:
            headers["content-type"] = "application/json"
        text = send(method, url, b"" if body is None else json.dumps(body).encode(), **headers)
        return json.loads(text) if text else None

    def tell(self, receiver):
        self.key = self.call("POST", "/api/trial")["key"]
        # A trial stores 100 submissions.
        self.query("update accounts set plan = 'scale'")
        self.page = self.call("POST", "/api/pages", {"slug": "index", "title": "Hello", "html": "<h1>Hello</h1>"})
        self.asset = self.call("POST", "/api/pages/assets", {"filename": "dot.png", "contentType": "image/png", "sizeBytes": len(PNG)})
        send("PUT", self.asset["uploadUrl"], PNG, **self.asset["uploadHeaders"])
        self.form = self.call("POST", "/api/forms", {"name": "Contact", "fields": [{"name": "n", "label": "N", "type": "number"}]})
        self.receiver = receiver
        self.call("POST", "/api/webhooks", {"url": receiver.url, "formIds": [self.form["formId"]]})
        self.site = self.call("POST", "/api/analytics/sites", {"name": "Hello"})["site"]
        until("the form", lambda: send("GET", self.form["hostedFormUrl"]))
        self.more()
        self.check()

    def more(self):
        """One more submission and one more visit."""
        self.submissions.append(self.call("POST", self.form["submitUrl"], {"n": 1})["submissionId"])
        event = {"siteToken": self.site["siteToken"], "name": "page_view", "url": self.page["subdomainUrl"]}
        send("POST", f"{self.base}/api/collect", json.dumps(event).encode(), user_agent=BROWSER, content_type="text/plain")
        self.visits += 1

    def check(self):
        """Reads everything back. What was acknowledged is there; an answer may have been lost with its connection."""
        until("the page", lambda: b"<h1>Hello</h1>" in send("GET", self.page["subdomainUrl"]))
        until("the file", lambda: send("GET", self.asset["publicUrl"]) == PNG)
        until("the API", lambda: self.call("GET", "/api/account"))
        stored = until("Postgres", lambda: self.query(f"select id from submissions where form_id = '{self.form['formId']}'")).split()
        if missing := set(self.submissions) - set(stored):
            sys.exit(f"{len(missing)} of {len(self.submissions)} submissions are missing: {sorted(missing)[:5]}")
        until("the deliveries", lambda: set(self.submissions) <= self.receiver.received)
        query = f"/api/analytics/query?siteId={self.site['id']}&metric=page_views&period=7d"
        until(f"{self.visits} visits to be counted", lambda: self.call("GET", query)["total"] >= self.visits)

    def recover(self):
        """Waits until all of it works again."""
        until("everything to work again", lambda: self.more() or True)
        self.check()
