#!/usr/bin/env python3
"""A million pages and a cache for a part of them: hit rate, latency, and whether memory stays within its budget.

    tests/bench/many_pages.py                                         a quarter of an hour, ten minutes of it load
    tests/bench/many_pages.py --pages 20000 --sites 200 --seconds 20  to see that it runs; needs wrk and psql

The pages are inserted into Postgres directly. wrk requests them by Zipf's law (the n-th most popular page 1/n as often as
the first), so that a few pages get most requests. Resident memory is sampled every second. Writes tests/bench/many_pages.md.
"""

import argparse
import pathlib
import re
import subprocess
import threading
import time
import urllib.request

import fixture

HERE = pathlib.Path(__file__).resolve().parent
FILL = """
insert into accounts (id, claim_token_hash, claim_deadline, created_at, claimed_at)
select ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, sha256(('bench' || n)::bytea), now(), now(), now()
from generate_series(1, {sites}) n;
insert into subdomains (id, account_id, name, created_at)
select ('00000000-0000-4001-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
       ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'bench-' || n, now()
from generate_series(1, {sites}) n;
insert into pages (id, account_id, subdomain_id, slug, title, html, created_at, updated_at)
select ('00000000-0000-4002-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
       ('00000000-0000-4000-8000-' || lpad(to_hex(n % {sites} + 1), 12, '0'))::uuid,
       ('00000000-0000-4001-8000-' || lpad(to_hex(n % {sites} + 1), 12, '0'))::uuid,
       'page-' || n, 'T', '<p>page ' || n || '</p>' || repeat('<p>' || md5(n::text) || '</p>', {kilobytes} * 1024 / 39), now(), now()
from generate_series(0, {pages} - 1) n;
analyze pages;
"""
# Approximates the inverse of the harmonic sum: n = pages ^ u for a uniform u.
REQUESTS = """
local pages, sites, domain = {pages}, {sites}, "{domain}"
function request()
  local n = math.floor(pages ^ math.random()) - 1
  -- Spreads popularity independently of age.
  n = (n * 7919) % pages
  return wrk.format("GET", "/page-" .. n, {{ ["Host"] = "bench-" .. (n % sites + 1) .. "." .. domain }})
end
function init() math.randomseed({seed}) end
"""


def served(metrics_url):
    text = urllib.request.urlopen(metrics_url).read().decode()
    counts = re.findall(r'^edge_pages_served_total\{from="(\w+)"\} (\d+)', text, re.MULTILINE)
    return {status: int(count) for status, count in counts}


def load(stack, arguments, edge_pid, seed, seconds):
    script = pathlib.Path(arguments.folder) / "requests.lua"
    script.write_text(REQUESTS.format(pages=arguments.pages, sites=arguments.sites, domain=stack["sites_domain"], seed=seed))
    memory, done = [], threading.Event()

    def watch():
        while not done.wait(1):
            memory.append(fixture.rss_mb(edge_pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    command = ["wrk", "-t1", "-c64", f"-d{seconds}s", "--latency", "-s", str(script), f"http://127.0.0.1:{stack['http_port']}/"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    done.set()
    watcher.join()
    return output, memory


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--pages", type=int, default=1_000_000)
    parse.add_argument("--sites", type=int, default=10_000)
    parse.add_argument("--kilobytes", type=int, default=4)
    parse.add_argument("--budget-mb", type=int, default=256)
    parse.add_argument("--seconds", type=int, default=600)
    arguments = parse.parse_args()
    # One hour: measures the cache's capacity, not its revalidation.
    settings = [f"cache.max_page_bytes={arguments.budget_mb << 20}", "cache.max_age=1h"]
    with fixture.system(*settings) as stack:
        arguments.folder = stack["log_dir"]
        print(f"filling {arguments.pages:,} pages", flush=True)
        fill = FILL.format(**vars(arguments))
        subprocess.run(["psql", stack["postgres_url"], "-qv", "ON_ERROR_STOP=1"], input=fill, text=True, check=True)
        edge = stack["services"]["edge-server"]
        load(stack, arguments, edge["pid"], 1, max(5, arguments.seconds // 10))
        before, began = served(edge["metrics_url"]), time.time()
        output, memory = load(stack, arguments, edge["pid"], 2, arguments.seconds)
        after = served(edge["metrics_url"])
    counted = {status: after[status] - before.get(status, 0) for status in after}
    total = sum(counted.values())
    rate = re.search(r"Requests/sec:\s+([\d.]+)", output).group(1)
    p50, p99 = (re.search(rf"{share}%\s+(\S+)", output).group(1) for share in (50, 99))
    half = len(memory) // 2
    failed = re.search(r"Non-2xx.*: (\d+)", output)
    text = f"""# A million pages, and memory for a part of them

Made by `tests/bench/many_pages.py`: {arguments.pages:,} pages of {arguments.kilobytes} KB on {arguments.sites:,} sites, asked for by Zipf's law for
{time.time() - began:.0f} s after a tenth of that to warm up; {arguments.budget_mb} MB for pages.

| hit rate | requests/s | p50 | p99 | RSS at the start | halfway | at the end | peak |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| {counted.get("hit", 0) / total:.1%} | {float(rate):,.0f} | {p50} | {p99} | {memory[0]:.0f} MB | {memory[half]:.0f} MB | {memory[-1]:.0f} MB | {max(memory):.0f} MB |

Not answered with 2xx: {failed.group(1) if failed else "none"}.
"""
    (HERE / "many_pages.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
