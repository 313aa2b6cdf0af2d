#!/usr/bin/env python3
"""How fast is an export, and how much memory does it need? A million submissions as CSV, beside psql's \\copy of the same rows.

    tests/bench/export.py                                two minutes; needs psql
    tests/bench/export.py --submissions 50000 --rounds 1  to see that it runs

Both read the same rows of the same Postgres in the same order and write as many columns. The control plane's memory is
sampled four times per second. Writes tests/bench/export.md.
"""

import argparse
import pathlib
import statistics
import subprocess
import threading
import time
import urllib.request

import fixture

HERE = pathlib.Path(__file__).resolve().parent
FILL = """
insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
select gen_random_uuid(), account_id, f.id,
       jsonb_build_object('name', 'Visitor ' || n, 'email', 'visitor' || n || '@example.com',
                          'message', '=' || repeat(md5(n::text) || ' ', 4)),
       now() - n * interval '1 second', now()
from forms f, generate_series(1, {submissions}) n where f.id = '{form}';
update forms set submission_count = {submissions} where id = '{form}';
analyze submissions;
"""
COPY = """\\copy (select id, created_at, status, external_id, payload ->> 'name', payload ->> 'email', payload ->> 'message' \
from submissions where form_id = '{form}' order by created_at, id) to '/dev/null' (format csv)"""


def export(url, key, pid):
    """Seconds, lines, bytes, and the peak memory above the memory before."""
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"})
    before, most, done = fixture.rss_mb(pid), [0], threading.Event()

    def watch():
        while not done.wait(0.25):
            most[0] = max(most[0], fixture.rss_mb(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    began, lines, size = time.perf_counter(), 0, 0
    with urllib.request.urlopen(request) as answer:
        while piece := answer.read(1 << 20):
            lines += piece.count(b"\n")
            size += len(piece)
    took = time.perf_counter() - began
    done.set()
    watcher.join()
    return took, lines, size, max(0, most[0] - before)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--submissions", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    count, rows, ratios = arguments.submissions, [], []
    with fixture.system() as stack:
        key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
        fixture.call("POST", f"{stack['base_url']}/api/account/upgrade", key, {"plan": "pro"})
        form = fixture.call("POST", f"{stack['base_url']}/api/workflows/contact", key, {})["formId"]
        fixture.query(stack, FILL.format(submissions=count, form=form))
        pid = stack["services"]["control-plane"]["pid"]
        url = f"{stack['base_url']}/api/forms/{form}/export"
        copy = COPY.format(form=form)
        fixture.query(stack, copy)
        for round in range(arguments.rounds):
            took, lines, size, grown = export(url, key, pid)
            assert lines == count + 1, (lines, count)
            began = time.perf_counter()
            fixture.query(stack, copy)
            copied = time.perf_counter() - began
            ratios.append(copied / took)
            rows.append(f"| {round + 1} | {count / took:,.0f} | {size / took / 1e6:.0f} MB/s | {count / copied:,.0f} "
                        f"| {copied / took:.0%} | {grown:.1f} MB |")
            print(rows[-1], flush=True)
    table = "\n".join(rows)
    text = f"""# An export of {count:,} submissions

Made by `tests/bench/export.py`: CSV through edge and control plane, beside `psql \\copy` of the same rows.

| round | rows/s | | \\copy, rows/s | export / \\copy | additional memory |
| ---: | ---: | ---: | ---: | ---: | ---: |
{table}

Median of the ratios: {statistics.median(ratios):.0%}. The bar: at least 50 %, and constant memory.
"""
    (HERE / "export.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
