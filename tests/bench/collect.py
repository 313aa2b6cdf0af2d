#!/usr/bin/env python3
"""How many events per second does one collector accept, each on disk before its response?

    tests/bench/collect.py                        ten minutes; needs wrk, rustc and psql
    tests/bench/collect.py --seconds 5 --rounds 1 to see that it runs

wrk posts page views as a tracker does, from about 90,000 of 200,000 addresses per run, over 256 keep-alive connections,
alternating between the collector and the same HTTP server without any processing (`collector/examples/nothing.rs`). Ratios
are taken within a round. Then latency is measured at half the rate: once while ClickHouse works off its backlog, and once
without a backlog. Afterwards every 204 must be a row, and visits must consist of exactly these rows. Writes tests/bench/collect.md.
"""

import argparse
import contextlib
import json
import pathlib
import re
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import fixture

HERE = pathlib.Path(__file__).resolve().parent
# Enough connections to keep both servers busy although a response waits for the disk.
CONNECTIONS = 256
EDGE = "the-benchmarks-own"
POST = """
local agents = {
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
  "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
  "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
}
local referrers = { "", "https://www.google.com/", "https://news.ycombinator.com/item?id=1", "https://blog.example/x" }
local requests, count = {}, 100000
function init(args)
  math.randomseed(os.time() + tonumber(tostring({}):match("0x(%x+)"), 16) % 100000)
  for i = 1, count do
    local visitor = math.random(0, 199999)
    local headers = {
      ["User-Agent"] = agents[visitor % 4 + 1], ["Content-Type"] = "text/plain", ["Accept"] = "*/*",
      ["Accept-Language"] = "en-US,en;q=0.9", ["Origin"] = "https://shop.example", ["X-Edge-Token"] = "EDGE",
      ["X-Client-Ip"] = "10." .. math.floor(visitor / 65536) .. "." .. math.floor(visitor / 256) % 256 .. "." .. visitor % 256,
    }
    local body = '{"siteToken":"TOKEN","name":"page_view","url":"https://shop.example/page/' .. i % 500 ..
      '?utm_source=news","referrer":"' .. referrers[i % 4 + 1] .. '","title":"A page of the shop","screenWidth":1440}'
    requests[i] = wrk.format("POST", "/api/collect", headers, body)
  end
end
local next = 0
function request()
  next = next % count + 1
  return requests[next]
end
"""


def milliseconds(text):
    number, unit = re.match(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def wrk(script, address, seconds):
    command = ["wrk", "-t2", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", str(script), f"http://{address}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in output, output
    taken = int(re.search(r"(\d+) requests in", output).group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))
    return taken, rate, milliseconds(re.search(r"^\s+99%\s+(\S+)", output, re.MULTILINE).group(1))


def clickhouse(stack, sql):
    who = {"user": stack["clickhouse_user"], "password": stack["clickhouse_password"], "database": "webruntime"}
    address = f"{stack['clickhouse_url']}/?{urllib.parse.urlencode(who)}"
    request = urllib.request.Request(address, f"{sql} FORMAT TSV".encode())
    return urllib.request.urlopen(request).read().decode().split()


def counters(metrics_url):
    text = urllib.request.urlopen(metrics_url).read().decode()
    accepted = re.search(r"^collector_events_accepted_total (\d+)", text, re.M)
    dropped = re.findall(r'^collector_events_dropped_total\{reason="(\w+)"\} (\d+)', text, re.M)
    return int(accepted.group(1)) if accepted else 0, {reason: int(count) for reason, count in dropped}


@contextlib.contextmanager
def nothing():
    address = f"127.0.0.1:{fixture.free_port()}"
    subprocess.run(["cargo", "build", "--quiet", "--profile", fixture.PROFILE, "--locked", "-p", "collector",
                    "--example", "nothing"], check=True, cwd=fixture.ROOT)
    built = fixture.ROOT / "target" / ("debug" if fixture.PROFILE == "dev" else fixture.PROFILE) / "examples" / "nothing"
    process = subprocess.Popen([built, address])
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(tuple(address.split(":"))):
                break
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows, ratios, rates = [], [], []
    settings = [f"secrets.edge_token={EDGE}"]
    with tempfile.TemporaryDirectory() as folder, nothing() as bare, fixture.system(*settings) as stack:
        folder = pathlib.Path(folder)
        key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
        fixture.call("POST", f"{stack['base_url']}/api/account/upgrade", key, {"plan": "scale"})
        site = fixture.call("POST", f"{stack['base_url']}/api/analytics/sites", key, {"name": "Shop"})["site"]
        service = stack["services"]["collector"]
        address = urllib.parse.urlsplit(service["url"]).netloc
        script = folder / "post.lua"
        script.write_text(POST.replace("TOKEN", site["siteToken"]).replace("EDGE", EDGE))
        wrk(script, address, 3)
        peak = 0
        for round in range(arguments.rounds):
            _, empty, _ = wrk(script, bare, arguments.seconds)
            before = counters(service["metrics_url"])[0]
            began = time.time()
            _, _, p99 = wrk(script, address, arguments.seconds)
            rate = (counters(service["metrics_url"])[0] - before) / (time.time() - began)
            peak = max(peak, fixture.rss_mb(service["pid"]))
            stored = int(clickhouse(stack, "SELECT count() FROM events")[0])
            rates.append(rate)
            ratios.append(rate / empty)
            rows.append(f"| {round + 1} | {stored:,} | {rate:,.0f} | {p99:.1f} ms | {empty:,.0f} | {rate / empty:.0%} |")
            print(rows[-1], flush=True)
        half = int(statistics.median(rates) / 2)
        visits = folder / "visits"
        subprocess.run(["rustc", "--edition", "2024", "-O", "-o", visits, HERE / "visits" / "main.rs"], check=True)
        send = [visits, f"to={address}", f"token={site['siteToken']}", f"edge={EDGE}", f"rate={half}",
                f"seconds={arguments.seconds}", f"connections={CONNECTIONS}"]
        times = []
        for _ in ("with backlog", "without backlog"):
            output = subprocess.run(send, check=True, capture_output=True, text=True)
            times.append("p50 {p50:.2f} ms, p99 {p99:.2f} ms, p99.9 {p999:.2f} ms".format(**json.loads(output.stdout)))
            peak = max(peak, fixture.rss_mb(service["pid"]))
            until = time.time() + 600
            while int(clickhouse(stack, "SELECT count() FROM events")[0]) < counters(service["metrics_url"])[0]:
                assert time.time() < until, "ClickHouse is too slow"
                time.sleep(0.5)
        accepted, dropped = counters(service["metrics_url"])
        # wrk closes connections with requests in flight when a run ends: these events are stored but not counted as accepted.
        stored, ids = map(int, clickhouse(stack, "SELECT count(), uniqExact(id) FROM events"))
        hung_up = CONNECTIONS * (arguments.rounds + 1)
        assert stored == ids and accepted <= stored <= accepted + hung_up, (stored, ids, accepted)
        while True:
            made = clickhouse(stack, "SELECT sum(events) FROM sessions FINAL")
            if made == [str(stored)]:
                break
            assert time.time() < until, (made, stored)
            time.sleep(0.5)
        disk = clickhouse(stack, "SELECT table, sum(bytes_on_disk) / sum(rows) FROM system.parts WHERE active AND table IN"
                                 " ('events', 'sessions') GROUP BY table ORDER BY table")
    table = "\n".join(rows)
    text = f"""# Events per second, each on disk before its response

Made by `tests/bench/collect.py`: {CONNECTIONS} connections, {arguments.seconds} s per run, two cores shared with wrk,
Postgres, Redis and ClickHouse. {accepted:,} events got a 204 and {stored:,} are stored, each once, and in visits; the
difference was in flight when wrk closed its connections.
Dropped: {dropped or "none"}.

| round | events stored before | accepted/s | p99 | the same server without processing | ratio |
| ---: | ---: | ---: | ---: | ---: | ---: |
{table}

Median of the ratios: {statistics.median(ratios):.0%} (the bar: at least 50 %), of the rates {statistics.median(rates):,.0f}/s (20,000).
At half of that, {half:,}/s: {times[1]} (the bar of p99: 20 ms);
while ClickHouse works off its backlog: {times[0]}.
Memory of the collector at its peak: {peak:.0f} MB (150).
Bytes on disk: {float(disk[1]):.1f} an event, {float(disk[3]):.1f} a visit.
"""
    (HERE / "collect.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
