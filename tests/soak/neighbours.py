#!/usr/bin/env python3
"""Does one tenant pay for the attacks of others? All attacks together beside a normal tenant, then harmless requests.

    tests/soak/neighbours.py [PROGRAM]                 eleven minutes; PROGRAM is a local runner that is built already
    tests/soak/neighbours.py --seconds 20 --check      memory and 5xx only, without the comparison
    tests/soak/neighbours.py PROGRAM --seconds 20 --check --load 0.2        the same of an unoptimized build; what CI runs

Services and stores run on core 0, the generators on core 1. The tenant loads a warm page and paths that are in no cache,
calls the API and receives submissions at fixed rates; response times count from the scheduled time. Beside it run, each
from addresses of its own: zips made to expand, slow announced bodies, readers that read nothing, idle connections, readers
of large lists, and a form flood. The comparison replaces every attack by harmless requests at the same rates. Writes
tests/soak/neighbours.md.

Passes if the tenant's page p99 is at most 3 times that of the comparison and at most 50 ms, the p99 of API calls at most 5
times, no service exceeds 512 MB, and the tenant receives no 5xx.
"""

import argparse
import asyncio
import collections
import contextlib
import io
import itertools
import json
import multiprocessing
import os
import pathlib
import sys
import threading
import time
import urllib.error
import urllib.request
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))

import fixture  # noqa: E402

CORES = sorted(os.sched_getaffinity(0))
SERVICE_CORE, GENERATOR_CORE = CORES[0], CORES[-1]
MAX_MB = 512
MAX_PAGE_RATIO, MAX_PAGE_MS, MAX_API_RATIO = 3, 50, 5
TIMEOUT_SECONDS = 30
ATTACKERS = 3
# Per second.
TENANT_RATES = {"page": 50, "uncached": 5, "list": 3, "edit": 1, "submit": 2}
ATTACK_RATES = {"zip": 0.4, "list": 4, "submit": 60}
# The local runner has no limits per address, because everything on one machine has one address. These are the defaults.
LIMITS = ["connections.max_per_address=-1", "api.max_concurrent_per_address=32", "forms.max_submissions_per_minute=30",
          "forms.max_submissions_per_day=1000"]
SLOW_BODIES, SLOW_READERS, IDLE_CONNECTIONS = 6, 40, 400


class Attacker:
    """An account with large content, and the address that its requests come from."""

    def __init__(self, base, number):
        self.address = f"127.0.2.{number + 1}"
        self.base = base
        self.key = fixture.call("POST", f"{base}/api/trial")["key"]
        text = "".join(f"<p>{n} {'lorem ipsum ' * 40}</p>" for n in range(700))
        for n in range(5):
            fixture.call("POST", f"{base}/api/pages", self.key, {"slug": f"large-{n}", "title": "Large", "html": text})
        fields = [{"name": "text", "label": "Text", "type": "textarea"}]
        self.form = fixture.call("POST", f"{base}/api/forms", self.key, {"name": "Flooded", "fields": fields})["formId"]


def zip_of(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def expanding_zips():
    """Zips of a few hundred bytes to a few KB whose references expand: by a long base, and by a deep folder."""
    base = f"<!doctype html><base href=\"/{'a/' * 20_000}\">" + '<img src="x.png">' * 20_000
    deep = "/".join(["a" * 100] * 9)
    return [
        zip_of({"index.html": base, "x.png": b"\x89PNG\r\n\x1a\n"}),
        zip_of({"index.html": "<p>deep</p>", f"{deep}/style.css": "a{background:url(x.png)}" * 15_000, f"{deep}/x.png": b"\x89PNG\r\n\x1a\n"}),
    ]


SMALL_ZIP = zip_of({"index.html": "<!doctype html><title>Small</title><p>hello</p>"})


def deploy(attacker, zipped):
    """Uploads and processes a zip. Refusals are expected."""
    with contextlib.suppress(urllib.error.URLError, OSError, TimeoutError):
        begun = fixture.call("POST", f"{attacker.base}/api/deploy", attacker.key, {"sizeBytes": len(zipped)})
        request = urllib.request.Request(begun["uploadUrl"], zipped, begun["uploadHeaders"], method="PUT")
        urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS).read()
        fixture.call("POST", f"{attacker.base}/api/deploy/{begun['deployId']}/process", attacker.key)


class Http:
    """Requests over keep-alive connections to the edge from one address."""

    def __init__(self, port, address):
        self.port, self.address, self.idle = port, address, []

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self.address, 0))

    async def send(self, method, path, host, key=None, body=None):
        """Returns the status, or 0 if there was no response in time."""
        try:
            return await asyncio.wait_for(self.exchange(method, path, host, key, body), TIMEOUT_SECONDS)
        except (OSError, ValueError, IndexError, asyncio.IncompleteReadError, asyncio.TimeoutError):
            return 0

    async def exchange(self, method, path, host, key, body):
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
        lines += [f"Authorization: Bearer {key}"] if key else []
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"] if data else []
        request = "\r\n".join([*lines, "", ""]).encode() + data
        while True:
            reused = bool(self.idle)
            reader, writer = self.idle.pop() if reused else await self.connect()
            try:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                break
            except (OSError, asyncio.IncompleteReadError):
                writer.close()
                if not reused:
                    raise
        status = int(head.split(b" ", 2)[1])
        headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        if b"content-length" in headers:
            await reader.readexactly(int(headers[b"content-length"]))
        elif headers.get(b"transfer-encoding") == b"chunked":
            while (size := int(await reader.readline(), 16)) > 0:
                await reader.readexactly(size + 2)
            await reader.readline()
        if headers.get(b"connection") == b"close":
            writer.close()
        else:
            self.idle.append((reader, writer))
        return status


async def at_rate(rate, until, send):
    """Calls `send` with its scheduled time, evenly spaced, without waiting for earlier calls."""
    began, tasks, number = time.monotonic(), set(), 0
    while (due := began + number / rate) < until:
        await asyncio.sleep(max(0, due - time.monotonic()))
        task = asyncio.create_task(send(due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
    await asyncio.gather(*tasks)


async def tenant(port, site, host, key, page_id, form, until):
    """The normal tenant: returns the response times and statuses by kind of request."""
    visitor, owner = Http(port, "127.0.1.1"), Http(port, "127.0.1.2")
    results = collections.defaultdict(list)

    def measured(kind, client, method, path, *request):
        numbers = itertools.count()

        async def send(due):
            status = await client.send(method, path.format(number=next(numbers)), *request)
            results[kind].append(((time.monotonic() - due) * 1000, status))

        return at_rate(TENANT_RATES[kind], until, send)

    edit = {"title": "Edited"}
    await asyncio.gather(
        measured("page", visitor, "GET", "/", site),
        measured("uncached", visitor, "GET", "/missing-{number}", site),
        measured("list", owner, "GET", "/api/pages?limit=10", host, key),
        measured("edit", owner, "PUT", f"/api/pages/{page_id}", host, key, edit),
        measured("submit", visitor, "POST", f"/api/forms/{form}/submit", host, None, {"text": "a message"}),
    )
    return results


async def slow_body(port, attacker, host, until):
    """Announces 160 MB and sends a byte a second."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(attacker.address, 0))
            head = f"POST /api/pages/batch HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {attacker.key}\r\n"
            writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 160000000\r\n\r\n[".encode())
            while time.monotonic() < until and not writer.is_closing():
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(1)
            writer.close()
        await asyncio.sleep(0.2)


async def slow_reader(port, attacker, host, until):
    """Asks for a large list and reads nothing of it."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(attacker.address, 0), limit=1024)
            reader._transport.pause_reading()
            head = f"GET /api/pages?limit=100 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {attacker.key}\r\n\r\n"
            writer.write((head * 4).encode())
            await asyncio.sleep(min(10, max(0, until - time.monotonic())))
            writer.close()
        await asyncio.sleep(0.2)


async def idle_connection(port, attacker, until):
    """Holds a connection without a request, and opens it again when it is closed."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(attacker.address, 0))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(reader.read(1), max(0.01, until - time.monotonic()))
            writer.close()
        await asyncio.sleep(0.5)


async def attack(port, host, attackers, until):
    clients = [Http(port, attacker.address) for attacker in attackers]
    zips, number = expanding_zips(), 0

    async def send_zip(_due):
        nonlocal number
        number += 1
        await asyncio.to_thread(deploy, attackers[number % ATTACKERS], zips[number // ATTACKERS % len(zips)])

    async def read_list(_due):
        await clients[0].send("GET", "/api/pages?limit=100", host, attackers[0].key)

    async def flood(_due):
        await clients[1].send("POST", f"/api/forms/{attackers[1].form}/submit", host, None, {"text": "flood " * 2_000})

    of = lambda number: attackers[number % ATTACKERS]
    await asyncio.gather(
        at_rate(ATTACK_RATES["zip"], until, send_zip),
        at_rate(ATTACK_RATES["list"], until, read_list),
        at_rate(ATTACK_RATES["submit"], until, flood),
        *(slow_body(port, of(n), host, until) for n in range(SLOW_BODIES)),
        *(slow_reader(port, of(n), host, until) for n in range(SLOW_READERS)),
        *(idle_connection(port, of(n), until) for n in range(IDLE_CONNECTIONS)),
    )


async def harmless(port, host, attackers, until):
    """As many requests as `attack` sends, each of a normal size."""
    clients = [Http(port, attacker.address) for attacker in attackers]

    async def send_zip(_due):
        await asyncio.to_thread(deploy, attackers[0], SMALL_ZIP)

    async def read_list(_due):
        await clients[0].send("GET", "/api/pages?limit=1", host, attackers[0].key)

    async def submit(_due):
        await clients[1].send("GET", f"/f/{attackers[1].form}", host)

    held = SLOW_BODIES / 20 + SLOW_READERS * 4 / 10
    await asyncio.gather(
        at_rate(ATTACK_RATES["zip"], until, send_zip),
        at_rate(ATTACK_RATES["list"] + held, until, read_list),
        at_rate(ATTACK_RATES["submit"], until, submit),
    )


def run_neighbours(kind, *arguments):
    asyncio.run({"attack": attack, "harmless": harmless}[kind](*arguments))


class Memory(threading.Thread):
    """The largest resident memory of each service, sampled until `stop`."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.peaks, self.stopped = folder, {}, threading.Event()

    def run(self):
        while not self.stopped.wait(0.25):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                services = json.loads((self.folder / "stack.json").read_text())["services"]
                for name, service in services.items():
                    self.peaks[name] = max(self.peaks.get(name, 0), fixture.rss_mb(service["pid"]))

    def stop(self):
        self.stopped.set()
        self.join()
        return self.peaks


def measure(kind, seconds, program):
    """Runs the tenant beside neighbours of one kind on a system of its own; returns its results and the services' memory."""
    print(f"{kind} neighbours, {seconds} s", flush=True)
    os.sched_setaffinity(0, {SERVICE_CORE})
    with fixture.system(*LIMITS, program=program) as stack:
        os.sched_setaffinity(0, {GENERATOR_CORE})
        base, port = stack["base_url"], stack["http_port"]
        host = base.split("//")[1]
        key = fixture.call("POST", f"{base}/api/trial")["key"]
        fixture.call("POST", f"{base}/api/account/upgrade", key, {"plan": "pro"})
        page = {"slug": "index", "title": "Home", "html": "<p>hello</p>" * 800}
        page_id = fixture.call("POST", f"{base}/api/pages", key, page)["id"]
        fields = [{"name": "text", "label": "Text", "type": "textarea"}]
        form = fixture.call("POST", f"{base}/api/forms", key, {"name": "Contact", "fields": fields})["formId"]
        site = fixture.site_host(stack, key)
        attackers = [Attacker(base, number) for number in range(ATTACKERS)]
        memory = Memory(pathlib.Path(stack["log_dir"]).parent)
        memory.start()
        until = time.monotonic() + seconds
        # A process of its own, so that its work delays no measurement but through the processor.
        neighbours = multiprocessing.Process(target=run_neighbours, args=(kind, port, host, attackers, until))
        neighbours.start()
        results = asyncio.run(tenant(port, site, host, key, page_id, form, until))
        neighbours.join(TIMEOUT_SECONDS + 10)
        neighbours.kill()
        os.sched_setaffinity(0, CORES)
        return results, memory.stop()


def percentile(times, share):
    times = sorted(times)
    return times[min(len(times) - 1, int(len(times) * share))]


def failures(results):
    """Responses of the tenant that are a 5xx or missing, by kind."""
    bad = {kind: collections.Counter(status for _, status in one if status == 0 or status >= 500) for kind, one in results.items()}
    return {kind: dict(counts) for kind, counts in bad.items() if counts}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="a local runner that is built already; without it, cargo builds one")
    parser.add_argument("--seconds", type=int, default=300, help="of each of the two runs")
    parser.add_argument("--load", type=float, default=1, help="share of the attacks per second; an unoptimized build serves a tenth of an optimized one")
    parser.add_argument("--check", action="store_true", help="check memory and 5xx only, and write nothing")
    arguments = parser.parse_args()
    for kind in ATTACK_RATES:
        ATTACK_RATES[kind] *= arguments.load
    attacked, peaks = measure("attack", arguments.seconds, arguments.program)
    problems = [f"{name} took {peak:.0f} MB" for name, peak in peaks.items() if peak > MAX_MB]
    problems += [f"the tenant's {kind} requests failed: {counts}" for kind, counts in failures(attacked).items()]
    print(" ".join(f"{name} {peak:.0f} MB" for name, peak in peaks.items()), flush=True)
    if not arguments.check:
        calm, calm_peaks = measure("harmless", arguments.seconds, arguments.program)
        rows = []
        for kind in TENANT_RATES:
            times = [[took for took, _ in results[kind]] for results in (calm, attacked)]
            (calm50, calm99), (p50, p99) = ([percentile(one, share) for share in (0.5, 0.99)] for one in times)
            rows.append(f"| {kind} | {TENANT_RATES[kind]} | {calm50:.1f} | {calm99:.1f} | {p50:.1f} | {p99:.1f} | {p99 / calm99:.1f} |")
            limit = MAX_PAGE_RATIO if kind == "page" else MAX_API_RATIO
            if p99 > calm99 * limit or kind == "page" and p99 > MAX_PAGE_MS:
                problems.append(f"p99 of {kind} requests: {p99:.1f} ms beside attacks, {calm99:.1f} ms beside harmless requests")
        write(rows, calm_peaks, peaks, arguments.seconds)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


def write(rows, calm_peaks, peaks, seconds):
    memory = "\n".join(f"| {name} | {calm_peaks[name]:.0f} | {peaks[name]:.0f} |" for name in peaks)
    table = "\n".join(rows)
    text = f"""# A tenant beside attackers

Made by `tests/soak/neighbours.py`: {seconds} s beside attacks and {seconds} s beside as many harmless requests, each on a new
system; services and stores on one core, generators on the other. Times in ms, from the scheduled time.

| the tenant's requests | per second | p50 beside harmless | p99 | p50 beside attacks | p99 | p99 ratio |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{table}

| memory of a service at most, MB | beside harmless | beside attacks |
| --- | ---: | ---: |
{memory}

The attacks: {ATTACK_RATES['zip']} zips per second that are made to expand, {SLOW_BODIES} bodies of 160 MB at a byte per second, {SLOW_READERS} readers of large lists that read
nothing, {IDLE_CONNECTIONS} idle connections, {ATTACK_RATES['list']} large lists and {ATTACK_RATES['submit']} submissions of one form per second.
"""
    (HERE / "neighbours.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
