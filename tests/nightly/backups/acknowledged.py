"""What clients and visitors were told to be stored or deleted, and what of it is there."""

import collections
import copy
import hashlib
import http.client
import json
import os
import threading
import urllib.error
import urllib.request

import fixture
from faults import wait

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01"
FIELDS = [{"name": "number", "label": "Number", "type": "number"}, {"name": "photo", "label": "Photo", "type": "file"}]
STEADY_SECONDS = 0.1


class State:
    """What an account has, by ids."""

    def __init__(self):
        self.pages, self.submissions, self.files, self.sites = {}, {}, {}, {}

    def counts(self):
        events = sum(sum(numbers.values()) for numbers in self.sites.values())
        return collections.Counter({"pages": len(self.pages), "submissions": len(self.submissions), "files": len(self.files), "events": events})


class Account:
    """A client with its visitors. Each method changes the state once the service has acknowledged it."""

    numbers = collections.Counter()

    def __init__(self, installation, plan=None):
        self.installation, self.state, self.lock = installation, State(), threading.Lock()
        self.key = self.call("POST", "/api/trial")["key"]
        self.id = self.call("GET", "/api/account")["id"]
        if plan:
            installation.administer("plan", self.id, plan)
            wait.until(lambda: self.call("GET", "/api/account")["_meta"]["plan"] == plan, "the services know the plan")
        self.host = fixture.site_host({"base_url": installation.base}, self.key)
        self.form = self.call("POST", "/api/forms", {"name": "Ledger", "fields": FIELDS})["formId"]

    def call(self, method, path, body=None):
        return fixture.call(method, self.installation.base + path, getattr(self, "key", None), body)

    def next(self, kind):
        """Numbers are never used twice, by any account."""
        with self.lock:
            Account.numbers[kind] += 1
            return Account.numbers[kind]

    def add_page(self):
        number = self.next("page")
        page = self.call("POST", "/api/pages", {"slug": f"page-{number}", "title": f"Page {number}", "html": f"<h1>Page {number}.</h1>"})
        self.state.pages[page["id"]] = (f"page-{number}", f"Page {number}")

    def change_page(self, page):
        slug, number = self.state.pages[page][0], self.next("page")
        self.call("PUT", f"/api/pages/{page}", {"title": f"Page {number}", "html": f"<h1>Page {number}.</h1>"})
        self.state.pages[page] = (slug, f"Page {number}")

    def delete_page(self, page):
        self.call("DELETE", f"/api/pages/{page}")
        del self.state.pages[page]

    def submit(self, **answers):
        number = self.next("submission")
        submission = self.call("POST", f"/api/forms/{self.form}/submit", {"number": number, **answers})["submissionId"]
        with self.lock:
            self.state.submissions[submission] = number

    def delete_submission(self, submission):
        self.call("DELETE", f"/api/forms/{self.form}/submissions/{submission}")
        del self.state.submissions[submission]

    def submit_file(self):
        """A submission with a file."""
        content = PNG + os.urandom(20_000)
        announced = self.call("POST", f"/api/forms/{self.form}/upload", {"field": "photo", "filename": "me.png", "contentType": "image/png", "sizeBytes": len(content)})
        put(announced["uploadUrl"], content, announced["uploadHeaders"])
        self.submit(photo=announced["objectId"])
        self.state.files[f"/api/forms/{self.form}/files/{announced['objectId']}"] = content

    def add_asset(self, is_recorded=True):
        content = PNG + os.urandom(20_000)
        asset = self.call("POST", "/api/pages/assets", {"filename": f"{self.next('asset')}.png", "contentType": "image/png", "sizeBytes": len(content)})
        put(asset["uploadUrl"], content, asset["uploadHeaders"])
        if is_recorded:
            self.state.files[asset["publicUrl"]] = content

    def add_site(self):
        site = self.call("POST", "/api/analytics/sites", {"name": "Shop"})["site"]
        self.state.sites[site["id"]] = collections.Counter()
        return site

    def delete_site(self, site):
        self.call("DELETE", f"/api/analytics/sites/{site['id']}")
        del self.state.sites[site["id"]]

    def send_event(self, site):
        number = self.next("event")
        body = {"siteToken": site["siteToken"], "name": "page_view", "url": f"https://shop.example/{number}"}
        headers = {"user-agent": BROWSER, "content-type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(f"{self.installation.base}/api/collect", json.dumps(body).encode(), headers), timeout=30).read()
        self.state.sites[site["id"]][number] += 1

    def expire(self):
        """The deadline of an unclaimed trial passes: the job-runner deletes the account."""
        postgres = self.installation.postgres
        postgres.query(f"update accounts set claim_deadline = now() - interval '1 second' where id = '{self.id}'")
        wait.until(lambda: postgres.query(f"select count(*) from accounts where id = '{self.id}'") == "0", "the account is deleted")

    def digests(self):
        """The SHA-256 of the files, which Postgres stores as bytes."""
        return [hashlib.sha256(content).digest() for content in self.state.files.values()]


def put(url, content, headers):
    urllib.request.urlopen(urllib.request.Request(url, content, headers, method="PUT"), timeout=30).read()


def get(installation, url):
    """The status and the bytes of an address of ours, whose host need not resolve. Follows one redirect."""
    for _ in range(2):
        _, _, rest = url.partition("://")
        host, _, path = rest.partition("/")
        connection = http.client.HTTPConnection("127.0.0.1", installation.port, timeout=30)
        connection.request("GET", f"/{path}", headers={"host": host})
        response = connection.getresponse()
        content, url = response.read(), response.getheader("location")
        connection.close()
        if not url:
            break
        url = url if "://" in url else f"http://{host}{url}"
    return response.status, content


class Steady:
    """Submissions within `with`, one after the other: services go on while a backup is made."""

    def __init__(self, account):
        self.account, self.ended = account, threading.Event()
        self.thread = threading.Thread(target=self.work)

    def work(self):
        while not self.ended.wait(STEADY_SECONDS):
            self.account.submit()

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


class Ledger:
    """The accounts, and those that were deleted."""

    def __init__(self, installation):
        self.installation, self.accounts, self.deleted, self.deleted_sites = installation, [], [], []

    def states(self):
        return {account: copy.deepcopy(account.state) for account in self.accounts}

    def until_shipped(self):
        """Waits until ClickHouse has all events."""
        wait.until(lambda: self.installation.metric("collector", "collector_segment_unsent_bytes") == 0, "all events are in ClickHouse")

    def problems(self, states):
        """What is not as in these states. Sends nothing that changes something."""
        found = []
        for account, state in states.items():
            for problem in (*pages(account, state), *submissions(account, state), *files(account, state)):
                found.append(f"account {account.id}: {problem}")
        found += self.events({site: numbers for state in states.values() for site, numbers in state.sites.items()})
        for account in self.deleted:
            found += self.left_of(account)
        return found

    def events(self, expected):
        """Also those that arrived a second time, and those of deleted sites and accounts."""
        expected = {site: numbers for site, numbers in expected.items() if numbers}

        def stored():
            text = self.installation.clickhouse.query("select site_id, toUInt64(substring(path, 2)) from webruntime.events format TabSeparated")
            found = collections.defaultdict(collections.Counter)
            for line in text.splitlines():
                site, number = line.split("\t")
                found[site][int(number)] += 1
            return dict(found)

        try:
            wait.until(lambda: stored() == expected, "the events of the ledger", 60)
        except wait.TooLate:
            for site in stored().keys() | expected.keys():
                here, there = stored().get(site, collections.Counter()), expected.get(site, collections.Counter())
                if here != there:
                    name = "a deleted site" if site in self.deleted_sites else "a site"
                    yield f"{name}, {site}: {sum(here.values())} events are stored, {sum(there.values())} expected; {len(there - here)} missing, {len(here - there)} too many"

    def left_of(self, account):
        """What is left of a deleted account."""
        postgres, clickhouse = self.installation.postgres, self.installation.clickhouse
        for table in ("accounts where id", "pages where account_id", "submissions where account_id", "analytics_sites where account_id"):
            if (rows := postgres.query(f"select count(*) from {table} = '{account.id}'")) != "0":
                yield f"the deleted account {account.id} has {rows} rows: {table}"
        try:
            account.call("GET", "/api/account")
            yield f"the key of the deleted account {account.id} is valid"
        except urllib.error.HTTPError as refused:
            if refused.code != 401:
                yield f"the key of the deleted account {account.id} gets {refused.code}"
        folder = self.installation.folder / "blobs/kept" / account.id
        try:
            wait.until(lambda: not folder.exists() or not any(folder.iterdir()), "the files of a deleted account are deleted", 30)
            wait.until(lambda: clickhouse.query(f"select count() from webruntime.events where account_id = '{account.id}'") == "0", "its events are deleted", 60)
        except wait.TooLate as error:
            yield f"the deleted account {account.id}: {error}"


def pages(account, state):
    listed, cursor = {}, ""
    while cursor is not None:
        answer = account.call("GET", f"/api/pages?limit=100{cursor and f'&cursor={cursor}'}")
        listed |= {page["id"]: (page["slug"], page["title"]) for page in answer["pages"]}
        cursor = answer.get("nextCursor")
    if listed != state.pages:
        yield f"pages {listed}, expected {state.pages}"
    for slug, title in state.pages.values():
        status, content = get(account.installation, f"http://{account.host}:{account.installation.port}/{slug}")
        if status != 200 or f"<h1>{title}.</h1>".encode() not in content:
            yield f"/{slug}: {status}, not {title}"


def submissions(account, state):
    rows = account.installation.postgres.query(f"select id, (payload->>'number')::int from submissions where account_id = '{account.id}'")
    stored = [(id, int(number)) for id, number in (line.split("|") for line in rows.splitlines())]
    lost, other = state.submissions.items() - set(stored), set(stored) - state.submissions.items()
    if lost or other or len(stored) != len(state.submissions):
        yield f"{len(lost)} submissions are missing ({sorted(number for _, number in lost)[:5]}), and {len(other)} are there that were deleted or repeated"


def files(account, state):
    for url, content in state.files.items():
        status, found = get(account.installation, url if "://" in url else account.installation.base + url)
        if found != content:
            yield f"{url}: {status}, {len(found)} bytes, expected {len(content)}"
