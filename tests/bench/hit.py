#!/usr/bin/env python3
"""What does a hit cost? Instructions and allocations for each, counted by callgrind.

    tests/bench/hit.py            two minutes; needs valgrind

Counting has no noise: a run with few requests is taken from one with many, and what is left is divided. The requests
come one after the other over one connection, so that each also pays for one sleep and one wake-up of its thread, which
under load many share. The kernel's part isn't seen. Writes tests/bench/hit.md.
"""

import pathlib
import re
import socket
import tempfile

import edge
import stand

HERE = pathlib.Path(__file__).resolve().parent
FEW, MANY = 500, 2500
KINDS = {
    "plain": {},
    "a browser's 15 headers": edge.BROWSER,
    "the same, compressed": {**edge.BROWSER, "Accept-Encoding": "gzip, deflate, br, zstd"},
    "a browser that has it: 304": None,
}


def ask(port, host, headers, times):
    """Asks so many times over one connection; gives the last answer's headers."""
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


def counted(stack, host, headers, times, folder):
    """Instructions and frees of an edge's whole life with that many requests."""
    out = pathlib.Path(folder) / f"callgrind.{times}"
    under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--quiet"]
    with stand.another_edge(stack, "cache.fresh_for=1h", "views.flush_every=1h", under=under) as (port, _):
        for _ in range(20):  # until the page has all its encodings
            head = ask(port, host, {"Accept-Encoding": "gzip"}, 1)
            if "content-encoding" in head:
                break
        if headers is None:
            etag = ask(port, host, edge.BROWSER, 1)["etag"]
            headers = {**edge.BROWSER, "If-None-Match": etag}
        ask(port, host, headers, times)
    text = out.read_text()
    total = int(re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE).group(1))
    names = dict(re.findall(r"fn=\((\d+)\) (\S+)", text))
    frees = [number for number, name in names.items() if name == "mi_free"]
    calls = re.findall(r"^cfn=\((\d+)\).*\n(?:cob=.*\n|cfi=.*\n|cfl=.*\n)*calls=(\d+)", text, re.MULTILINE)
    return total, sum(int(count) for number, count in calls if number in frees)


def measure(stack, host):
    rows = []
    for kind, headers in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            few, many = (counted(stack, host, headers, times, folder) for times in (FEW, MANY))
        instructions, frees = ((most - least) / (MANY - FEW) for most, least in zip(many, few))
        rows.append(f"| {kind} | {instructions:,.0f} | {frees:.1f} |")
        print(rows[-1], flush=True)
    return "\n".join(rows)


def main():
    with stand.system() as stack:
        key = stand.call("POST", f"{stack['base_url']}/api/trial")["key"]
        page = {"slug": "index", "title": "A page", "html": edge.page_of(edge.PAGE_BYTES)}
        stand.call("POST", f"{stack['base_url']}/api/pages", key, page)
        rows = measure(stack, stand.site_host(stack, key))
    text = f"""# What a hit costs

Made by `tests/bench/hit.py`: {MANY - FEW:,} hits of a page of 10 KB over one connection, counted by callgrind.

| | instructions | allocations |
| --- | ---: | ---: |
{rows}
"""
    (HERE / "hit.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
