#!/usr/bin/env python3
"""How fast is a warm page? The edge beside nginx, Varnish, Caddy and static-web-server, in one alternating run.

    tests/bench/edge.py                       a quarter of an hour; needs wrk, h2load, nginx, varnishd and caddy
    tests/bench/edge.py --seconds 3 --only nginx,edge --scenarios plain

All serve the same 10 KB over 127.0.0.1 to one load thread with 64 keep-alive connections. Every round runs every server
once, and ratios are taken within a round, because the same server varies by 15 % from hour to hour. CPU per request
comes from /proc. Servers that are not installed are left out and named. Writes tests/bench/edge.md.

Measures a running edge with --at URL --site HOST --pid PID.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import fixture

HERE = pathlib.Path(__file__).resolve().parent
CONNECTIONS = 64
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = 10 * 1024
# Chrome's headers of a first visit; wrk adds Host.
BROWSER = {
    "Connection": "keep-alive",
    "Cache-Control": "max-age=0",
    "sec-ch-ua": '"Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"',
    "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Linux"',
    "Upgrade-Insecure-Requests": "1",
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
    "Sec-Fetch-Site": "none",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-User": "?1",
    "Sec-Fetch-Dest": "document",
    "Accept-Encoding": "identity",
    "Accept-Language": "en-US,en;q=0.9",
}
SCENARIOS = {
    "plain": ("Host alone", 1.1),
    "browser": ("a browser's 15 headers, the same bytes", 1.0),
    "compressed": ("the same, with each server's best encoding", None),
    "conditional": ("If-None-Match with a 304 response", 1.15),
    "h2": ("HTTP/2 without TLS: h2load, 16 connections of 8 streams", 1.0),
}


class Server:
    """A running server: its addresses and its resource usage."""

    def __init__(self, name, port, h2_port, pid, host, process=None):
        self.name, self.port, self.h2_port, self.pid, self.host = name, port, h2_port, pid, host
        self.process, self.path = process, "/"

    def pids(self):
        """The process and its descendants."""
        found, queue = [], [self.pid]
        while queue:
            pid = queue.pop()
            found.append(pid)
            for tasks in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                queue.extend(int(child) for child in tasks.read_text().split())
        return found

    def cpu_seconds(self):
        def of(pid):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / TICKS

        return sum(of(pid) for pid in self.pids())

    def rss_mb(self):
        status = [pathlib.Path(f"/proc/{pid}/status").read_text() for pid in self.pids()]
        return sum(int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) for text in status) / 1024

    def get(self, headers=()):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{self.path}", headers={"Host": self.host, **dict(headers)})
        with urllib.request.urlopen(request) as answer:
            return answer.headers, answer.read()

    def until_ready(self):
        for _ in range(200):
            try:
                return self.get()
            except OSError:
                time.sleep(0.05)
        sys.exit(f"{self.name} does not start")


def start(folder, name, command, port, h2_port, host):
    log = open(folder / f"{name}.log", "w")
    process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, start_new_session=True)
    return Server(name, port, h2_port, process.pid, host, process)


def nginx(folder, host):
    port, h2_port = fixture.free_port(), fixture.free_port()
    # gzip_static: serves a file that was compressed before.
    site = "root www; open_file_cache max=10000 inactive=1h; gzip_static on; gzip_vary on;" \
        ' add_header Cache-Control "public, max-age=0, must-revalidate"; add_header X-Content-Type-Options nosniff;'
    others = "".join(f"server {{ listen 127.0.0.1:{port}; server_name s{n}.localhost; root www; }}\n" for n in range(1000))
    (folder / "nginx.conf").write_text(f"""
worker_processes 2; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.err; {"user root;" if os.geteuid() == 0 else ""}
events {{ worker_connections 4096; }}
http {{ types {{ text/html html; text/javascript js; }} charset utf-8; access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;
  server_names_hash_max_size 8192; server_names_hash_bucket_size 128;
  server {{ listen 127.0.0.1:{port} reuseport default_server; server_name _; return 404; }}
  server {{ listen 127.0.0.1:{port}; server_name {host}; {site} }}
  server {{ listen 127.0.0.1:{h2_port} http2 reuseport; server_name {host}; {site} }}
  {others} }}
""")
    return start(folder, "nginx", ["nginx", "-p", str(folder), "-c", "nginx.conf"], port, h2_port, host)


def varnish(folder, host, backend):
    port = fixture.free_port()
    # Overrides the page's max-age=0, which would revalidate each request.
    (folder / "warm.vcl").write_text(f"""vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{backend}"; }}
sub vcl_backend_response {{ set beresp.ttl = 1h; }}
""")
    command = ["varnishd", "-F", "-n", str(folder / "varnish"), "-a", f"127.0.0.1:{port}", "-f", str(folder / "warm.vcl"),
               "-s", "malloc,256m", "-p", "feature=+http2"]
    return start(folder, "varnish", command, port, port, host)


def caddy(folder, host):
    port = fixture.free_port()
    (folder / "Caddyfile").write_text(f"""{{
  admin off
  auto_https off
  servers {{
    protocols h1 h2c
  }}
}}
http://{host}:{port} {{
  bind 127.0.0.1
  root * www
  file_server {{
    precompressed gzip
  }}
}}
""")
    return start(folder, "caddy", ["caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"], port, port, host)


def static_web_server(folder, host):
    port = fixture.free_port()
    command = ["static-web-server", "-a", "127.0.0.1", "-p", str(port), "-d", "www", "--compression-static", "true",
               "--compression", "false", "-n", "2"]
    return start(folder, "static-web-server", command, port, None, host)


def edge_with_a_page(stack):
    """The edge of a complete system with one page."""
    key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
    page = {"slug": "index", "title": "A page", "html": page_of(PAGE_BYTES)}
    fixture.call("POST", f"{stack['base_url']}/api/pages", key, page)
    port, pid = stack["http_port"], stack["services"]["edge-server"]["pid"]
    return Server("edge", port, port, pid, fixture.site_host(stack, key))


def page_of(size):
    """HTML that compresses like real pages: repeated words in different order."""
    words = "the edge serves a page from memory to every visitor and counts that it did".split()
    text, number = "<!doctype html><title>A page</title><body>", 0
    while len(text) < size:
        number += 1
        text += f"<p class=\"p{number}\">{' '.join(words[(number * step) % len(words)] for step in range(3, 17))}</p>\n"
    return text[:size]


def run_wrk(server, headers, seconds):
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-H", f"Host: {server.host}"]
    command += [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
    output = subprocess.run([*command, f"http://127.0.0.1:{server.port}{server.path}"], check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        print(f"    {server.name}: {output}", flush=True)
    unit = {"us": 0.001, "ms": 1, "s": 1000}
    at = {share: float(value) * unit[word] for share, value, word in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)\b", output)}
    total = int(re.search(r"(\d+) requests in", output).group(1))
    return total, float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1)), at["50"], at["99"]


def run_h2load(server, headers, seconds):
    command = ["h2load", "-t1", "-c16", "-m8", f"-D{seconds}", f"--connect-to=127.0.0.1:{server.h2_port}",
               f"http://{server.host}:{server.h2_port}/"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    total = int(re.search(r"(\d+) succeeded", output).group(1))
    times = re.search(r"time for request:\s+(\S+)\s+(\S+)\s+(\S+)", output).groups()
    unit = {"us": 0.001, "ms": 1, "s": 1000}
    most, mean = (float(re.match(r"[\d.]+", t).group()) * unit[re.sub(r"[\d.]", "", t)] for t in times[1:])
    return total, float(re.search(r"([\d.]+) req/s", output).group(1)), mean, most


def measure(server, scenario, seconds):
    load = run_h2load if scenario == "h2" else run_wrk
    headers = {"plain": {}, "h2": {}, "browser": BROWSER}.get(scenario)
    if scenario == "compressed":
        headers = {**BROWSER, "Accept-Encoding": "gzip, deflate, br, zstd"}
        for _ in range(3):  # the first request starts the compression
            server.get(headers)
            time.sleep(0.2)
    elif scenario == "conditional":
        headers = {"If-None-Match": server.get()[0].get("ETag", "")}
    before = server.cpu_seconds()
    total, rate, p50, p99 = load(server, headers, seconds)
    return {"rate": rate, "p50": p50, "p99": p99, "cpu_us": (server.cpu_seconds() - before) / total * 1e6, "rss": server.rss_mb()}


def rounds(servers, scenario, arguments):
    able = [s for s in servers if (scenario != "h2" or s.h2_port) and (scenario != "conditional" or s.get()[0].get("ETag"))]
    results = {server.name: [] for server in able}
    for turn in range(arguments.rounds):
        for server in able:
            measure(server, scenario, 1)
            results[server.name].append(measure(server, scenario, arguments.seconds))
            last = results[server.name][-1]
            print(f"  {scenario} {turn}: {server.name} {last['rate']:,.0f}/s {last['cpu_us']:.2f} us", flush=True)
    return results


def table(scenario, results):
    description, bar = SCENARIOS[scenario]
    latency = "mean and longest" if scenario == "h2" else "p50 and p99"
    lines = [f"## {scenario}: {description}", "", f"Latency: {latency}, in ms."]
    if bar:
        lines[-1] += f" The bar: {bar} × nginx" + (" at 0.95 × its CPU." if scenario == "plain" else ".")
    lines += ["", "| | requests/s | × nginx | latency | | CPU µs/request | × nginx | RSS MB |", "| --- | " + "---: | " * 7]
    lines[-1] = lines[-1].rstrip()
    for name, runs in results.items():
        median = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        pairs = list(zip(runs, results.get("nginx", runs)))
        ratio = statistics.median(own["rate"] / nginx["rate"] for own, nginx in pairs)
        cost = statistics.median(own["cpu_us"] / nginx["cpu_us"] for own, nginx in pairs)
        lines.append(f"| {name} | {median['rate']:,.0f} | {ratio:.2f} | {median['p50']:.2f} | {median['p99']:.2f} "
                     f"| {median['cpu_us']:.2f} | {cost:.2f} | {median['rss']:.0f} |")
    return "\n".join(lines)


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--seconds", type=int, default=8)
    parse.add_argument("--rounds", type=int, default=3)
    parse.add_argument("--only", default="nginx,varnish,caddy,static-web-server,edge")
    parse.add_argument("--scenarios", default=",".join(SCENARIOS))
    parse.add_argument("--at")
    parse.add_argument("--site")
    parse.add_argument("--pid", type=int)
    parse.add_argument("--print", action="store_true", help="show the tables, leave edge.md alone")
    arguments = parse.parse_args()
    only = arguments.only.split(",")
    for needed in ["wrk", "h2load", "nginx"]:
        if not shutil.which(needed):
            sys.exit(f"{needed} is missing")
    servers = []
    running = contextlib.nullcontext() if arguments.at else fixture.system()
    with running as stack, tempfile.TemporaryDirectory(prefix="web-runtime-bench-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        try:
            if arguments.at:
                port = int(arguments.at.rstrip("/").rpartition(":")[2])
                edge = Server("edge", port, port, arguments.pid, arguments.site)
            else:
                edge = edge_with_a_page(stack)
            _, page = edge.until_ready()
            (folder / "www").mkdir()
            (folder / "www" / "index.html").write_bytes(page)
            subprocess.run(["gzip", "-k9", str(folder / "www" / "index.html")], check=True)
            servers.append(nginx(folder, edge.host))
            others = {"varnish": ("varnishd", lambda: varnish(folder, edge.host, servers[0].port)),
                      "caddy": ("caddy", lambda: caddy(folder, edge.host)),
                      "static-web-server": ("static-web-server", lambda: static_web_server(folder, edge.host))}
            missing = [name for name, (program, _) in others.items() if name in only and not shutil.which(program)]
            servers += [run() for name, (program, run) in others.items() if name in only and name not in missing]
            for server in servers:
                _, same = server.until_ready()
                assert same == page, f"{server.name} serves a different page"
            servers.append(edge)
            tables = [table(scenario, rounds(servers, scenario, arguments)) for scenario in arguments.scenarios.split(",")]
        finally:
            for server in servers:
                if server.process:
                    os.killpg(server.process.pid, signal.SIGTERM)
                    server.process.wait()
    text = f"""# A warm page beside other servers

Made by `tests/bench/edge.py`: the same {len(page):,} bytes, one load thread, {CONNECTIONS} connections, {arguments.rounds} rounds of
{arguments.seconds} s each that run every server once; medians; ratios are taken within a round.
{"Not installed here: " + ", ".join(missing) + "." if missing else ""}

""" + "\n\n".join(tables) + "\n"
    if not arguments.print:
        (HERE / "edge.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
