#!/usr/bin/env python3
"""Is a hosted form as fast as a page? Both from the edge's cache, in alternation.

    tests/bench/form_page.py                        three minutes; needs wrk
    tests/bench/form_page.py --seconds 2 --rounds 1  to see that it runs

The page has as many bytes as the form, so that only the request handling differs. Writes tests/bench/form_page.md.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import urllib.request

import fixture

HERE = pathlib.Path(__file__).resolve().parent
CONNECTIONS = 64


def load(url, host, seconds):
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-H", f"Host: {host}", url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in output, output
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1)), re.search(r"^\s+99%\s+(\S+)", output, re.MULTILINE).group(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows, ratios = [], []
    with fixture.system("cache.max_age=1h") as stack:
        base = f"http://127.0.0.1:{stack['http_port']}"
        key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
        form = fixture.call("POST", f"{stack['base_url']}/api/workflows/contact", key, {})["formId"]
        request = urllib.request.Request(f"{base}/f/{form}", headers={"Host": "localhost"})
        size = len(urllib.request.urlopen(request).read())
        page = {"slug": "index", "title": "A page", "html": "<p>" + "x" * (size - 3)}
        fixture.call("POST", f"{stack['base_url']}/api/pages", key, page)
        targets = {"page": (f"{base}/", fixture.site_host(stack, key)), "form": (f"{base}/f/{form}", "localhost")}
        for target in targets.values():
            load(*target, 2)
        for round in range(arguments.rounds):
            (page_rate, page_p99), (rate, p99) = (load(*targets[name], arguments.seconds) for name in ("page", "form"))
            ratios.append(rate / page_rate)
            rows.append(f"| {round + 1} | {rate:,.0f} | {p99} | {page_rate:,.0f} | {page_p99} | {rate / page_rate:.0%} |")
            print(rows[-1], flush=True)
    table = "\n".join(rows)
    text = f"""# A hosted form beside a page

Made by `tests/bench/form_page.py`: {size:,} bytes each, {CONNECTIONS} connections, {arguments.seconds} s per run.

| round | form | p99 | page | p99 | form / page |
| ---: | ---: | ---: | ---: | ---: | ---: |
{table}

Median of the ratios: {statistics.median(ratios):.0%}. The bar: at least 80 %.
"""
    (HERE / "form_page.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
