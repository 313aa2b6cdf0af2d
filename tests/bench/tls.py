#!/usr/bin/env python3
"""How fast is TLS? The edge beside nginx with OpenSSL and the same P-256 certificate, in one alternating run.

    tests/bench/tls.py                        ten minutes; needs wrk, h2load and nginx
    tests/bench/tls.py --seconds 3 --scenarios keep,new

Every round runs both servers once, and ratios are taken within a round. CPU comes from /proc. The client shares the machine,
so the CPU of a handshake says more than its rate. Writes tests/bench/tls.md.
"""

import argparse
import asyncio
import contextlib
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
CLIENTS = 16
SCENARIOS = {
    "keep": ("TLS 1.3 with keep-alive, 10 KB: wrk, 64 connections", "rate ≥ 1.25 × nginx"),
    "new": ("a new connection for each request, no session is resumed", "rate ≥ 1.0 × nginx at ≤ 0.7 of its CPU"),
    "resumed": ("a new connection for each request, its session is resumed", "rate ≥ 1.0 × nginx"),
    "h2": ("HTTP/2 over TLS: h2load, 16 connections of 8 streams", "rate ≥ 1.0 × nginx"),
}


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


def handshakes(port, host, names, seconds, resumes):
    """Opens connections one after the other, with one request each, from several processes. Returns their number."""
    children = []
    for child in range(CLIENTS // 4):
        reading, writing = os.pipe()
        if os.fork() == 0:
            count = 0
            with contextlib.suppress(BaseException):
                count = _handshakes(port, host, names[child::CLIENTS // 4] or names, seconds, resumes)
            os.write(writing, str(count).encode())
            os._exit(0)
        os.close(writing)
        children.append(reading)
    total = 0
    for reading in children:
        with os.fdopen(reading) as pipe:
            total += int(pipe.read() or 0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return total


def _handshakes(port, host, names, seconds, resumes):
    client, session, count, end = context(), None, 0, time.monotonic() + seconds
    request = f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    while time.monotonic() < end:
        name = names[count % len(names)]
        with socket.create_connection(("127.0.0.1", port)) as plain:
            with client.wrap_socket(plain, server_hostname=name, session=session) as stream:
                stream.sendall(request)
                answer = stream.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
                while answer:
                    answer = stream.recv(65536)
                if resumes:
                    assert session is None or stream.session_reused
                    session = stream.session
        count += 1
    return count


def run_wrk(port, host, seconds):
    # wrk takes the server name from the address, which must resolve.
    command = ["wrk", "-t1", "-c64", f"-d{seconds}s", "-H", f"Host: {host}", f"https://localhost:{port}/"]
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
        total = run_wrk(port, server.host, seconds)
    elif scenario == "h2":
        total = run_h2load(port, server.host, seconds)
    else:
        total = handshakes(port, server.host, [server.host], seconds, scenario == "resumed")
    elapsed = time.monotonic() - began
    return {"rate": total / elapsed, "cpu_us": (server.cpu_seconds() - before) / total * 1e6}


def compare(servers, arguments):
    lines = ["| | the bar | edge /s | × nginx | CPU µs | × nginx |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for scenario in arguments.scenarios.split(","):
        description, bar = SCENARIOS[scenario]
        runs = []
        for turn in range(arguments.rounds):
            both = []
            for server in servers:
                measure(server, scenario, 1)
                both.append(measure(server, scenario, arguments.seconds))
                print(f"  {scenario} {turn}: {server.name} {both[-1]['rate']:,.0f}/s {both[-1]['cpu_us']:.1f} us", flush=True)
            runs.append(both)
        of = lambda key: statistics.median(own[key] for _, own in runs)
        ratio = lambda key: statistics.median(own[key] / other[key] for other, own in runs)
        lines.append(f"| {description} | {bar} | {of('rate'):,.0f} | {ratio('rate'):.2f} | {of('cpu_us'):.1f} | {ratio('cpu_us'):.2f} |")
    return "\n".join(lines)


def names_in_rotation(stack, server, seconds):
    """Handshakes for many names beside those for one. All have the certificate of the sites, each its own entry."""
    fixture.query(stack, f"""insert into certificates (name, chain, sealed_key, not_after, created_at)
        select 'n' || n || '.bench.example', chain, sealed_key, not_after, created_at
        from certificates, generate_series(1, {NAMES}) n where name = '*.{stack['sites_domain']}'""")
    time.sleep(20)  # the edge reads the list of names every 15 seconds
    names = [f"n{n}.bench.example" for n in range(1, NAMES + 1)]
    handshakes(server.port, server.host, names, 2 * NAMES / 500, False)
    rates = []
    for _ in range(3):
        both = []
        for which in (names[:1], names):
            before = server.cpu_seconds()
            total = handshakes(server.port, server.host, which, seconds, False)
            both.append((total / seconds, (server.cpu_seconds() - before) / total * 1e6))
        rates.append(both)
    ratio = statistics.median(many[0] / one[0] for one, many in rates)
    cost = statistics.median(many[1] / one[1] for one, many in rates)
    return f"{NAMES:,} names in rotation: {ratio:.2f} × the rate of one name (the bar: 0.9), {cost:.2f} × its CPU."


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
    return f"{IDLE:,} idle connections: {kilobytes['edge']:.1f} KB each, nginx {kilobytes['nginx']:.1f} KB: {ratio:.2f} × (the bar: 1.2)."


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--seconds", type=int, default=8)
    parse.add_argument("--rounds", type=int, default=3)
    parse.add_argument("--scenarios", default=",".join(SCENARIOS))
    parse.add_argument("--program", help="a local runner that was built before")
    parse.add_argument("--print", action="store_true", help="show the table, leave tls.md alone")
    arguments = parse.parse_args()
    for needed in ["wrk", "h2load", "nginx"]:
        if not shutil.which(needed):
            sys.exit(f"{needed} is missing")
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
            parts = [compare(servers, arguments), names_in_rotation(stack, servers[1], arguments.seconds), idle_connections(servers)]
        finally:
            os.killpg(servers[0].process.pid, signal.SIGTERM)
            servers[0].process.wait()
    text = f"""# TLS beside nginx

Made by `tests/bench/tls.py`: {len(page):,} bytes, the same P-256 certificate, TLS 1.3, {arguments.rounds} rounds of {arguments.seconds} s each;
medians; ratios are taken within a round. CPU is that of the server for each request.

""" + "\n\n".join(parts) + "\n"
    if not arguments.print:
        (HERE / "tls.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
