#!/usr/bin/env python3
"""How fast and how heavy are the console's pages?

    tests/bench/console.py --runner PATH   PATH is a release build of the local runner; about ten minutes
    tests/bench/console.py --small         to see that it runs: cargo's build, fewer rows and rounds, writes no table

Five figures, four with a bar:
- what a page costs beside the API calls that its screen makes: both are requested from the control plane over 127.0.0.1, in
  alternation; the calls at the same time over one connection each, as the screen makes them. The difference of the medians.
- the analytics overview of a site with half of 10 million events, compared with the period before (the events of analytics.py)
- the same overview beside what the dashboards of liwan and Umami ask of their databases (liwan.py, umami.py), in alternation
- the first page of the inbox of a form with a million submissions
- bytes of a first visit with its files, and of each page after it, compressed as sent, without headers

Writes tests/bench/console.md.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import time
import urllib.parse

import analytics
import export
import fixture
import liwan
import umami

HERE = pathlib.Path(__file__).resolve().parent
BARS = {"added": 3, "overview": 150, "inbox": 50, "first": 25 * 1024, "page": 12 * 1024}


class Person:
    """A signed-in person: keep-alive connections that send the session's cookie."""

    def __init__(self, stack):
        self.origin = stack["base_url"]
        self.service = urllib.parse.urlsplit(stack["services"]["control-plane"]["url"]).netloc
        self.cookie = None
        form = urllib.parse.urlencode({"email": "bench@example.com"})
        headers = {"content-type": "application/x-www-form-urlencoded", "origin": self.origin}
        edge = http.client.HTTPConnection(urllib.parse.urlsplit(self.origin).netloc)
        edge.request("POST", "/login/local", form, headers)
        answer = edge.getresponse()
        answer.read()
        if answer.status != 303:
            sys.exit(f"the local sign-in answered {answer.status}")
        self.cookie = answer.getheader("set-cookie").split(";")[0]
        self.connections = {}

    def request(self, method, path, body=None, line=0, accept_encoding=None):
        """The body's bytes as sent. `line` selects the connection."""
        connection = self.connections.setdefault(line, http.client.HTTPConnection(self.service))
        headers = {"cookie": self.cookie, "origin": self.origin, "accept": "*/*"}
        if accept_encoding:
            headers["accept-encoding"] = accept_encoding
        if body is not None:
            body, headers["content-type"] = json.dumps(body), "application/json"
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
        except http.client.RemoteDisconnected:  # The service ended the connection, which was idle.
            connection.close()
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
        read = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path} answered {answer.status}: {read[:500]!r}")
        return read

    def call(self, method, path, body=None):
        return json.loads(self.request(method, path, body))


def took(work):
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def screens(site, form, overview):
    """Each screen with the calls that it makes at the same time."""
    account = "/api/account"
    return {
        "/console/forms": [account, "/api/forms?sort=newest", "/api/folders?limit=100"],
        f"/console/forms/{form}": [account, f"/api/forms/{form}", f"/api/forms/{form}/submissions?limit=50"],
        "/console/webhooks": [account, "/api/webhooks?sort=newest", "/api/forms?sort=newest&limit=100"],
        "/console/keys": [account, "/api/keys?sort=newest"],
        "/console/account": [account, "/api/account/usage", "/api/account/upgrade", "/api/session", "/api/sessions"],
        "/console/account/activity": [account, "/api/activity"],
        f"/console/analytics/{site}?period=7d": [
            account,
            f"/api/analytics/sites/{site}",
            f"/api/analytics/realtime?siteId={site}",
            "/api/deploy?limit=100",
            f"{overview}&period=7d",
        ],
    }


def added(person, pages, rounds):
    """Milliseconds of each page, of its calls, and the median difference."""
    rows = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
        for page, calls in pages.items():
            ask = lambda: list(pool.map(lambda pair: person.request("GET", pair[1], line=pair[0] + 1), enumerate(calls)))
            show = lambda: person.request("GET", page)
            ask(), show()
            turns = [(took(show), took(ask)) for _ in range(rounds)]
            whole, parts = (statistics.median(turn[at] for turn in turns) for at in (0, 1))
            rows.append((page.split("?")[0], len(calls), whole, parts, max(0.0, whole - parts)))
            print("  {}: {} calls, page {:.1f} ms, calls {:.1f} ms, added {:.1f}".format(*rows[-1]), flush=True)
    return rows


def overviews(person, stack, site, millions, rounds):
    """Milliseconds of overviews over the events of analytics.py, cold and warm."""
    account = person.call("GET", "/api/account")["id"]
    today = datetime.datetime.now(datetime.timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    first = today - datetime.timedelta(days=29)
    clickhouse = analytics.ClickHouse(stack, account, site, first, int(millions * 1_000_000))
    print(f"generating {millions:g} million events", flush=True)
    events, own = clickhouse.fill()
    day = lambda number: (first + datetime.timedelta(days=number)).date().isoformat()
    cases = {
        "30 days, compared": "period=30d",
        "15 days, compared with the 15 before": f"period=custom&from={day(15)}&to={day(29)}",
        "7 days, compared": "period=7d",
        "30 days of one country, compared": "period=30d&filters.country=DE",
    }
    rows = []
    for name, query in cases.items():
        ask = lambda: person.request("GET", f"/api/analytics/overview?siteId={site}&compare=true&limit=8&{query}")
        clickhouse.drop_caches()
        cold = took(ask)
        times = [took(ask) for _ in range(rounds)]
        rows.append((name, cold, statistics.median(times), max(times)))
        print("  {}: cold {:.0f}, warm {:.0f}, slowest {:.0f} ms".format(*rows[-1]), flush=True)
    periods = [(first - datetime.timedelta(days=30), first), (first, first + datetime.timedelta(days=30))]
    ask = lambda: person.request("GET", f"/api/analytics/overview?siteId={site}&compare=true&limit=8&period=30d")
    beside = []
    for name, load in (("liwan", lambda: liwan.Dashboard(clickhouse)), ("Umami", lambda: umami.Dashboard(clickhouse, stack))):
        print(f"loading the page views into the tables of {name}", flush=True)
        with contextlib.closing(load()) as dashboard:
            beside += compare(clickhouse, name, ask, lambda: dashboard.ask(site, periods), min(rounds, 7))
    return events, own, rows, beside


def compare(clickhouse, name, ours, theirs, rounds):
    """Medians of our overview and of another dashboard's, in alternation: of the first ones of a day, and of later ones."""
    medians = []
    for when, before in (("first of a day", clickhouse.drop_caches), ("later", lambda: None)):
        turns = []
        for _ in range(rounds):
            before()
            turns.append((took(ours), took(theirs)))
        medians.append((name, when, *(statistics.median(turn[at] for turn in turns) for at in (0, 1))))
        print("  {}, {}: ours {:.0f} ms, theirs {:.0f} ms".format(*medians[-1]), flush=True)
    return medians


def weights(person, pages):
    """Bytes of the first visit of each page with its files, and of the page alone."""
    rows = []
    for page in ["/console", *pages]:
        body = person.request("GET", page, accept_encoding="gzip")
        html = person.request("GET", page).decode()
        files = set(re.findall(r'"(/console/console-[0-9a-f]+\.(?:css|js|svg))"', html))
        sent = sum(len(person.request("GET", file, accept_encoding="gzip")) for file in files)
        rows.append((page.split("?")[0], len(html), len(body), len(body) + sent, 1 + len(files)))
    return rows


def measure(stack, millions, submissions, rounds):
    person = Person(stack)
    key = person.call("POST", "/api/keys", {"label": "bench"})["key"]
    fixture.call("POST", f"{stack['base_url']}/api/account/upgrade", key, {"plan": "scale"})
    site = person.call("POST", "/api/analytics/sites", {"name": "Large"})["site"]["id"]
    form = person.call("POST", "/api/workflows/contact", {})["formId"]
    overview = f"/api/analytics/overview?siteId={site}&compare=true&metric=unique_visitors&groupBy=day&limit=8"
    pages = screens(site, form, overview)
    small = export.FILL.format(submissions=60, form=form)
    fixture.query(stack, small)
    cost = added(person, pages, rounds * 4)
    bytes_ = weights(person, pages)
    print(f"storing {submissions:,} submissions", flush=True)
    fixture.query(stack, export.FILL.format(submissions=submissions, form=form))
    inbox = [took(lambda: person.request("GET", f"/console/forms/{form}")) for _ in range(rounds * 2)]
    return cost, bytes_, (statistics.median(inbox), max(inbox)), overviews(person, stack, site, millions, rounds)


def table(arguments, cost, bytes_, inbox, overview):
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, cwd=fixture.ROOT).stdout.strip()
    short = lambda page: re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "…", page)
    command = "tests/bench/console.py --runner RUNNER" + (f" --events {arguments.events:g}" if arguments.events != 10 else "")
    events, own, asked, beside = overview
    lines = [
        "# The console's pages",
        "",
        f"{datetime.date.today()}, commit {commit}, `{command}`. Bars: a page adds {BARS['added']} ms to its calls, an overview takes "
        f"{BARS['overview']} ms, the inbox {BARS['inbox']} ms; a first visit is {BARS['first'] >> 10} KB, a page {BARS['page'] >> 10} KB.",
        "",
        "| page | calls | page, ms | its calls, ms | added, ms |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(f"| `{short(page)}` | {count} | {whole:.1f} | {parts:.1f} | {more:.1f} |" for page, count, whole, parts, more in cost),
        "",
        f"Overview over {events:,} events, {own:,} of them of the queried site:",
        "",
        "| query | cold, ms | warm, ms | slowest, ms |",
        "| --- | ---: | ---: | ---: |",
        *(f"| {name} | {cold:.0f} | {warm:.0f} | {slowest:.0f} |" for name, cold, warm, slowest in asked),
        "",
        "Cold: ClickHouse's caches are empty, and an event of the first day came late, so that settled days are computed again.",
        "",
        "Beside the statements of other dashboards (30 days, compared; their databases alone, without their servers), in alternation:",
        "",
        "| dashboard | overview | ours, ms | theirs, ms |",
        "| --- | --- | ---: | ---: |",
        *(f"| {name} | {when} | {ours:.0f} | {theirs:.0f} |" for name, when, ours, theirs in beside),
        "",
        f"Inbox of a form with {arguments.submissions:,} submissions: {inbox[0]:.1f} ms, slowest {inbox[1]:.1f} ms.",
        "",
        "| page | HTML, bytes | sent | first visit | requests |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(f"| `{short(page)}` | {html:,} | {sent:,} | {first:,} | {requests} |" for page, html, sent, first, requests in bytes_),
        "",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", help="a local runner that was built before; without it, cargo builds this checkout's")
    parser.add_argument("--small", action="store_true", help="a hundredth of the rows; writes no table")
    parser.add_argument("--events", type=float, default=10, help="millions of events")
    parser.add_argument("--submissions", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if arguments.small:
        arguments.events, arguments.submissions, arguments.rounds = 0.1, 10_000, 3
    with fixture.system("signin.local=true", "upgrade.mode=instant", program=arguments.runner) as stack:
        text = table(arguments, *measure(stack, arguments.events, arguments.submissions, arguments.rounds))
    print(text)
    if arguments.small:
        print(f"small: {shlex.join(sys.argv)}; {HERE / 'console.md'} is left as it is")
    else:
        (HERE / "console.md").write_text(text)


if __name__ == "__main__":
    main()
