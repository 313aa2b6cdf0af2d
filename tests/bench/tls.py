#!/usr/bin/env python3
"""How fast is TLS? The edge beside nginx with OpenSSL and the same P-256 certificate, in one alternating run.

    tests/bench/tls.py                        ten minutes; needs wrk, h2load, nginx, cargo and psql
    tests/bench/tls.py --seconds 3 --scenarios keep,new

Exits with 1 if a bar is missed by more than 10 %, and with 77 if a program is missing. Every round runs both servers once, and
ratios are taken within a round. CPU comes from /proc. For requests over kept connections and beside floods, the server has one
processor core, and the clients have the others: a rate is then that of the server. wrk and h2load still take as much processor
time as the servers, so that the bars are for `tls_load`. Writes tests/bench/tls.md.
"""

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

import edge
import fixture

HERE = pathlib.Path(__file__).resolve().parent
NAMES = 10_000
IDLE = 10_000
CLIENTS = 4
NOT_RUN = 77
# A bar may be missed by this share on a machine that does other work too.
TOLERANCE = 0.1
LOAD = HERE / "tls_load" / "target" / "release" / "tls-load"
FLOOD_RATE = 1_000
# Each with the least rate and the most CPU per request, as multiples of nginx's.
SCENARIOS = {
    "keep": ("TLS 1.3 with keep-alive, 10 KB: 64 connections", 1.25, None),
    "wrk": ("the same by wrk", None, None),
    "new": ("a new connection for each request, no session is resumed", 1.0, 0.7),
    "resumed": ("a new connection for each request, its session is resumed", 1.0, None),
    "h2": ("HTTP/2 over TLS: 16 connections of 8 streams", 1.0, None),
    "h2load": ("the same by h2load", None, None),
}
# The others are handshakes, which take the server longer than the client.
ON_A_CORE = {"keep", "wrk", "h2", "h2load"}
missed = []


def at_least(what, value, bar):
    if value < bar * (1 - TOLERANCE):
        missed.append(f"{what}: {value:.2f}, the bar is {bar}")


def at_most(what, value, bar):
    if value > bar * (1 + TOLERANCE):
        missed.append(f"{what}: {value:.2f}, the bar is {bar} at most")


def nginx(folder, host, data):
    """nginx with the certificate of the sites. Its second port has neither tickets nor a session cache."""
    ports = fixture.free_port(), fixture.free_port()
    tls = f"ssl_certificate {data}/certificate-sites.pem; ssl_certificate_key {data}/certificate-sites.key.pem;" \
        " ssl_protocols TLSv1.2 TLSv1.3;"
    site = f"server_name {host}; root www; open_file_cache max=10000 inactive=1h;" \
        ' add_header Cache-Control "public, max-age=0, must-revalidate"; add_header X-Content-Type-Options nosniff;'
    (folder / "nginx.conf").write_text(f"""
worker_processes 2; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.err; {"user root;" if os.geteuid() == 0 else ""}
worker_rlimit_nofile 65536; events {{ worker_connections 32768; }}
http {{ types {{ text/html html; }} charset utf-8; access_log off; sendfile on; tcp_nopush on;
  keepalive_requests 100000000; keepalive_timeout 1h; {tls}
  server {{ listen 127.0.0.1:{ports[0]} ssl http2 reuseport backlog=4096; {site} ssl_session_tickets on; }}
  server {{ listen 127.0.0.1:{ports[1]} ssl http2 reuseport backlog=4096; {site} ssl_session_tickets off; ssl_session_cache off; }}
}}
""")
    server = edge.start(folder, "nginx", ["nginx", "-p", str(folder), "-c", "nginx.conf"], *ports, host)
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", ports[0])):
            return server
        time.sleep(0.05)
    sys.exit("nginx does not start")


def context():
    """A client of TLS 1.3 that trusts any certificate: this measures the server."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.minimum_version = ssl.TLSVersion.TLSv1_3
    return client


def load(mode, port, host, seconds, **options):
    """Requests by `tls_load`, which takes less processor time than the servers. Returns their number."""
    options = {"to": f"127.0.0.1:{port}", "host": host, "seconds": seconds} | options
    output = subprocess.run([LOAD, mode, *(f"{key}={value}" for key, value in options.items())], check=True, capture_output=True).stdout
    return json.loads(output)["requests"]


def handshakes(port, host, seconds, resume=False, name=None, names=1):
    """Opens connections one after the other, with one request each. `name` has `{}` in place of a number up to `names`."""
    return load("connect", port, host, seconds, connections=CLIENTS, resume=str(resume).lower(), name=name or host, names=names)


def run_wrk(port, host, seconds, scheme="https"):
    # wrk takes the server name from the address, which must resolve.
    command = ["wrk", "-t1", "-c64", f"-d{seconds}s", "-H", f"Host: {host}", f"{scheme}://localhost:{port}/"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        print(f"    {output}", flush=True)
    return int(edge.re.search(r"(\d+) requests in", output).group(1))


def run_h2load(port, host, seconds):
    command = ["h2load", "-t1", "-c16", "-m8", f"-D{seconds}", f"--connect-to=127.0.0.1:{port}", f"https://{host}:{port}/"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(edge.re.search(r"(\d+) succeeded", output).group(1))


def measure(server, scenario, seconds):
    # nginx's second port, `h2_port`, has no tickets.
    port = server.h2_port if scenario == "new" else server.port
    before, began = server.cpu_seconds(), time.monotonic()
    if scenario == "keep":
        total = load("keep", port, server.host, seconds, connections=64)
    elif scenario == "wrk":
        total = run_wrk(port, server.host, seconds)
    elif scenario == "h2":
        total = load("h2", port, server.host, seconds, connections=16, streams=8)
    elif scenario == "h2load":
        total = run_h2load(port, server.host, seconds)
    else:
        total = handshakes(port, server.host, seconds, resume=scenario == "resumed")
    elapsed = time.monotonic() - began
    return {"rate": total / elapsed, "cpu_us": (server.cpu_seconds() - before) / total * 1e6}


@contextlib.contextmanager
def a_core_for(servers):
    """Pins the servers to one core and this process, whose children are the clients, to the others."""
    cores = sorted(os.sched_getaffinity(0))

    def pin(server, to):
        for pid in server.pids():
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), to)

    for server in servers:
        pin(server, cores[:1])
    os.sched_setaffinity(0, cores[1:] or cores)
    yield
    os.sched_setaffinity(0, cores)
    for server in servers:
        pin(server, cores)


def measure_both(servers, scenario, turn, seconds):
    both = []
    for server in servers:
        measure(server, scenario, 1)
        both.append(measure(server, scenario, seconds))
        print(f"  {scenario} {turn}: {server.name} {both[-1]['rate']:,.0f}/s {both[-1]['cpu_us']:.1f} us", flush=True)
    return both


def compare(servers, arguments):
    lines = ["| | the bar | edge /s | × nginx | CPU µs | × nginx |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for scenario in arguments.scenarios.split(","):
        description, least_rate, most_cpu = SCENARIOS[scenario]
        bar = f"rate ≥ {least_rate} × nginx" if least_rate else ""
        bar += f" at ≤ {most_cpu} of its CPU" if most_cpu else ""
        with a_core_for(servers) if scenario in ON_A_CORE else contextlib.nullcontext():
            runs = [measure_both(servers, scenario, turn, arguments.seconds) for turn in range(arguments.rounds)]
        of = lambda key: statistics.median(own[key] for _, own in runs)
        ratio = lambda key: statistics.median(own[key] / other[key] for other, own in runs)
        if least_rate:
            at_least(f"{scenario}, rate", ratio("rate"), least_rate)
        if most_cpu:
            at_most(f"{scenario}, CPU", ratio("cpu_us"), most_cpu)
        lines.append(f"| {description} | {bar} | {of('rate'):,.0f} | {ratio('rate'):.2f} | {of('cpu_us'):.1f} | {ratio('cpu_us'):.2f} |")
    return "\n".join(lines)


def wait_for_certificate(port, name):
    for _ in range(1200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as plain:
            with context().wrap_socket(plain, server_hostname=name):
                return
        time.sleep(0.05)
    sys.exit(f"the edge has no certificate of {name}")


def names_in_rotation(stack, server, seconds):
    """Handshakes for many names beside those for one. All have the certificate of the sites, each its own entry."""
    fixture.query(stack, f"""insert into certificates (name, chain, sealed_key, not_after, created_at)
        select 'n' || n || '.bench.example', chain, sealed_key, not_after, created_at
        from certificates, generate_series(1, {NAMES}) n where name = '*.{stack['sites_domain']}'""")
    # As after an order: the relay sends the signals in this order, and the edge then knows the names.
    fixture.query(stack, f"""insert into outbox (kind, body, due_at, created_at)
        select 'signal', jsonb_build_object('signal', 'changed', 'change', 'certificate', 'name', 'n' || n || '.bench.example'), now(), now()
        from generate_series(1, {NAMES}) n order by n""")
    wait_for_certificate(server.port, f"n{NAMES}.bench.example")
    rotation = {"name": "n{}.bench.example", "names": NAMES}
    handshakes(server.port, server.host, NAMES // 500, **rotation)
    rates = []
    for _ in range(3):
        both = []
        for names in (1, NAMES):
            before = server.cpu_seconds()
            total = handshakes(server.port, server.host, seconds, **rotation | {"names": names})
            both.append((total / seconds, (server.cpu_seconds() - before) / total * 1e6))
        rates.append(both)
    ratio = statistics.median(many[0] / one[0] for one, many in rates)
    cost = statistics.median(many[1] / one[1] for one, many in rates)
    at_least(f"{NAMES:,} names, rate", ratio, 0.9)
    return f"{NAMES:,} names in rotation: {ratio:.2f} × the rate of one name (the bar: 0.9), {cost:.2f} × its CPU."


def hello_for_unknown_names():
    """A hello for the name that `flood/main.rs` counts up."""
    received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context().wrap_bio(received, sent, server_hostname="000000.unknown.example")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read().hex()


def beside_floods(folder, server, http_port, arguments):
    """The rate of a warm page beside handshakes for unknown names, and beside as many connections without a handshake."""
    program = folder / "flood"
    subprocess.run(["rustc", "--edition", "2024", "-O", HERE / "flood" / "main.rs", "-o", program], check=True)
    base = [program, f"to=127.0.0.1:{server.port}", f"rate={FLOOD_RATE}", f"seconds={arguments.seconds + 2}"]
    floods = {"connects": base, "handshakes": [*base, f"hello={hello_for_unknown_names()}"]}
    lines = []
    for scheme, port in [("http", http_port), ("https", server.port)]:
        rates = {kind: [] for kind in floods}
        for turn in range(arguments.rounds + 2):
            for kind, command in floods.items():
                generator = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                time.sleep(0.5)
                rates[kind].append(run_wrk(port, server.host, arguments.seconds, scheme) / arguments.seconds)
                answered = json.loads(generator.communicate()[0])
                print(f"  {scheme} beside {kind} {turn}: {rates[kind][-1]:,.0f}/s {answered}", flush=True)
                at_most(f"{kind} without the right answer", answered["failed"] / answered["connections"], 0.01)
                at_least(f"{kind} per second", answered["connections"] / answered["seconds"], FLOOD_RATE)
        ratio = statistics.median(with_tls / without for with_tls, without in zip(rates["handshakes"], rates["connects"]))
        at_least(f"{scheme} beside handshakes for unknown names", ratio, 0.9)
        lines.append(f"A warm page over {scheme} beside {FLOOD_RATE:,} handshakes a second for unknown names: {ratio:.2f} × the rate beside as "
                     f"many connections without a handshake ({statistics.median(rates['connects']):,.0f}/s; the bar: 0.9).")
    return "\n\n".join(lines)


def idle_connections(servers):
    """Memory of an idle connection, after one request over it."""
    async def of(server):
        gate, client = asyncio.Semaphore(200), context()
        request = f"GET / HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode()

        async def one():
            async with gate:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client, server_hostname=server.host)
                writer.write(request)
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
                return writer

        before = server.rss_mb()
        writers = await asyncio.gather(*(one() for _ in range(IDLE)))
        kilobytes = (server.rss_mb() - before) * 1024 / IDLE
        for writer in writers:
            writer.transport.abort()
        return kilobytes

    kilobytes = {server.name: asyncio.run(of(server)) for server in servers}
    ratio = kilobytes["edge"] / kilobytes["nginx"]
    at_most(f"{IDLE:,} idle connections, memory", ratio, 1.2)
    return f"{IDLE:,} idle connections: {kilobytes['edge']:.1f} KB each, nginx {kilobytes['nginx']:.1f} KB: {ratio:.2f} × (the bar: 1.2)."


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--seconds", type=int, default=6)
    parse.add_argument("--rounds", type=int, default=3)
    parse.add_argument("--scenarios", default=",".join(SCENARIOS))
    parse.add_argument("program", nargs="?", help="a local runner that was built before; without it, cargo builds one")
    parse.add_argument("--print", action="store_true", help="show the table, leave tls.md alone")
    arguments = parse.parse_args()
    for needed in ["wrk", "h2load", "nginx", "cargo", "psql"]:
        if not shutil.which(needed):
            print(f"{needed} is missing")
            sys.exit(NOT_RUN)
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", HERE / "tls_load" / "Cargo.toml"], check=True)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    https = ("--https", "--https-port", "0")
    running = fixture.system("connections.idle_timeout=10m", program=arguments.program, options=https)
    with running as stack, tempfile.TemporaryDirectory(prefix="web-runtime-bench-") as name:
        folder, data = pathlib.Path(name), pathlib.Path(stack["log_dir"]).parent
        plain = edge.edge_with_a_page(stack)
        _, page = plain.until_ready()
        (folder / "www").mkdir()
        (folder / "www" / "index.html").write_bytes(page)
        # wrk connects by the name localhost, which gets the certificate of the sites, so that it may ask for one.
        fixture.query(stack, f"""update certificates base set chain = sites.chain, sealed_key = sites.sealed_key
            from certificates sites where base.name = 'localhost' and sites.name = '*.{stack['sites_domain']}'""")
        port = stack["https_port"]
        servers = [nginx(folder, plain.host, data), edge.Server("edge", port, port, plain.pid, plain.host)]
        try:
            parts = [compare(servers, arguments), names_in_rotation(stack, servers[1], arguments.seconds)]
            with a_core_for(servers):
                parts.append(beside_floods(folder, servers[1], plain.port, arguments))
            parts.append(idle_connections(servers))
        finally:
            os.killpg(servers[0].process.pid, signal.SIGTERM)
            servers[0].process.wait()
    text = f"""# TLS beside nginx

Made by `tests/bench/tls.py`: {len(page):,} bytes, the same P-256 certificate, TLS 1.3, {arguments.rounds} rounds of {arguments.seconds} s each;
medians; ratios are taken within a round. CPU is that of the server for each request. Over kept connections and
beside floods, the server has one core, and the clients another.

""" + "\n\n".join(parts) + "\n"
    if not arguments.print:
        (HERE / "tls.md").write_text(text)
    print(text)
    for one in missed:
        print(f"missed: {one}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
