#!/usr/bin/env python3
"""What does a cache hit cost? Instructions and allocations per request, counted by callgrind.

    tests/bench/page_cost.py            two minutes; needs valgrind and h2load

Counts have no noise and start when the page is warm. Over HTTP/1.1 requests are sequential on one connection, so each
also pays for one park and one wake-up of its thread, which many requests share under load; over HTTP/2 eight are
concurrent. The kernel is not included. Writes tests/bench/page_cost.md.
"""

import pathlib
import re
import socket
import subprocess
import tempfile

import edge
import fixture

HERE = pathlib.Path(__file__).resolve().parent
TIMES = 4000
KINDS = {
    "plain": {},
    "a browser's 15 headers": edge.BROWSER,
    "the same, compressed": {**edge.BROWSER, "Accept-Encoding": "gzip, deflate, br, zstd"},
    "a browser that has it: 304": None,
    "plain, over HTTP/2": "h2",
}


def send(port, host, headers, times):
    """Sends `times` requests over one connection and returns the last response's headers."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = f"GET / HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n".encode()
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        for _ in range(times):
            connection.sendall(request)
            head = {}
            for line in iter(answers.readline, b"\r\n"):
                name, _, value = line.decode().partition(": ")
                head[name] = value.strip()
            answers.read(int(head.get("content-length", 0)))
    return head


def send_over_http2(port, host, times):
    to = [f"--connect-to=127.0.0.1:{port}", f"http://{host}:{port}/"]
    subprocess.run(["h2load", "-t1", "-c1", "-m8", f"-n{times}", *to], check=True, stdout=subprocess.DEVNULL)


def counted(stack, host, headers, folder):
    """Instructions and allocations per request of an edge that serves a warm page."""
    out = pathlib.Path(folder) / "callgrind.out"
    under = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}", "--quiet"]
    with fixture.another_edge(stack, "cache.max_age=1h", "views.flush_interval=1h", under=under) as (port, pid):
        for _ in range(200):  # until all encodings of the page exist
            head = send(port, host, {"Accept-Encoding": "gzip"}, 1)
            if "content-encoding" in head:
                break
        if headers is None:
            etag = send(port, host, edge.BROWSER, 1)["etag"]
            headers = {**edge.BROWSER, "If-None-Match": etag}
        serve = (lambda times: send_over_http2(port, host, times)) if headers == "h2" else (
            lambda times: send(port, host, headers, times))
        serve(200)
        count = lambda on: subprocess.run(["callgrind_control", "-i", on, str(pid)], check=True, stdout=subprocess.DEVNULL)
        count("on")
        serve(TIMES)
        count("off")
    text = out.read_text()
    total = int(re.search(r"^totals: (\d+)", text, re.MULTILINE).group(1))
    # callgrind writes a function's name at its first use, as caller or as callee.
    names = dict(re.findall(r"fn=\((\d+)\) (\S+)", text))
    frees = {number for number, name in names.items() if name == "mi_free"}
    calls = re.findall(r"^cfn=\((\d+)\).*\ncalls=(\d+)", text, re.MULTILINE)
    return total / TIMES, sum(int(count) for number, count in calls if number in frees) / TIMES


def measure(stack, host):
    rows = []
    for kind, headers in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            instructions, frees = counted(stack, host, headers, folder)
        rows.append(f"| {kind} | {instructions:,.0f} | {frees:.1f} |")
        print(rows[-1], flush=True)
    return "\n".join(rows)


def main():
    with fixture.system() as stack:
        key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
        page = {"slug": "index", "title": "A page", "html": edge.page_of(edge.PAGE_BYTES)}
        fixture.call("POST", f"{stack['base_url']}/api/pages", key, page)
        rows = measure(stack, fixture.site_host(stack, key))
    text = f"""# The cost of a cache hit

Made by `tests/bench/page_cost.py`: {TIMES:,} requests for a warm page of 10 KB over one connection, counted by callgrind
in user space. Allocations are counted as calls of `free`.

| | instructions | allocations |
| --- | ---: | ---: |
{rows}
"""
    (HERE / "page_cost.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
