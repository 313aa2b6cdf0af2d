#!/usr/bin/env python3
"""500 custom domains from `POST` to a certificate, and orders beyond the authority's limits.

    tests/nightly/certificates.py [PROGRAM] [--domains 500]        minutes; PROGRAM is a local runner that is built already

The whole system beside Let's Encrypt's pebble and pebble-challtestsrv, from Debian's package (unpacked, not installed). The
domains' records are in pebble-challtestsrv, which `domains.resolvers` names; the edge answers HTTP-01. A first run has raised
limits: it measures from the first `POST` on until all domains are verified, and until all are issued. In a second run
three orders of an account are permitted. Writes tests/nightly/certificates.md.

Passes if every domain is verified and issued, the authority refused no order and issued none twice, no service exceeds 512 MB, and in the second
run three domains are issued and the others show `acme_rate_limited` and a `nextAttemptAt` in three hours.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench"))

import fixture  # noqa: E402

NOT_RUN = 77
MAX_MB = 512
FEW = 8
PERMITTED = 3
TIMEOUT_SECONDS = 600


def programs():
    """The folder with pebble and pebble-challtestsrv, unpacked once."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "web-runtime-nightly" / "pebble"
    if not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache.parent) as folder:
            try:
                subprocess.run(["apt-get", "download", "pebble"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
                package = next(pathlib.Path(folder).glob("*.deb"))
                subprocess.run(["dpkg", "-x", package, f"{folder}/unpacked"], check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"pebble can't be had: {error}")
                sys.exit(NOT_RUN)
            os.rename(f"{folder}/unpacked", cache)
    return cache / "usr" / "bin"


def write_certificate(folder):
    """A root, and the certificate of pebble's API that leads to it."""
    (folder / "extensions").write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    commands = [
        ["req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=tests", "-days", "2"],
        ["req", *new_key, "-keyout", "api.key", "-out", "api.csr", "-subj", "/CN=api"],
        ["x509", "-req", "-in", "api.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "api.pem",
         "-days", "2", "-extfile", "extensions"],
    ]
    for command in commands:
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)


def accepts(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@contextlib.contextmanager
def running(*command, port, log, **environment):
    """Runs a server until the end, and waits until it accepts connections at the port."""
    with open(log, "w") as output:
        process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output, env=os.environ | environment)
        try:
            until(lambda: accepts(port), f"{command[0]} accepts connections")
            yield
        finally:
            process.terminate()
            process.wait()


def until(condition, what):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"not reached within {TIMEOUT_SECONDS} s: {what}")
        time.sleep(0.2)


@contextlib.contextmanager
def system(program, *settings):
    """The whole system with an authority and its DNS server. Yields the stack, a function that sets a TXT record, and one
    that returns how many certificates the authority issued."""
    bin_folder = programs()
    with tempfile.TemporaryDirectory(prefix="web-runtime-certificates-") as folder:
        folder = pathlib.Path(folder)
        write_certificate(folder)
        acme, management, dns, dns_management = (fixture.free_port() for _ in range(4))
        challtestsrv = [bin_folder / "pebble-challtestsrv", "-management", f"127.0.0.1:{dns_management}", "-dns01", f"127.0.0.1:{dns}",
                        "-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""]
        own = [f"domains.resolvers=[\"127.0.0.1:{dns}\"]", "domains.addresses=[\"127.0.0.1\"]", "domains.poll_interval=100ms",
               "domains.check_schedule=[\"1s\",\"2s\",\"5s\"]", f"acme.directory_url=https://127.0.0.1:{acme}/dir",
               f"acme.ca_file={folder / 'ca.pem'}", "acme.poll_interval=100ms", "acme.challenges=[\"http-01\"]"]
        with running(*challtestsrv, port=dns_management, log=folder / "dns.log"), fixture.system(*own, *settings, program=program) as stack:
            config = {"listenAddress": f"127.0.0.1:{acme}", "managementListenAddress": f"127.0.0.1:{management}",
                      "certificate": str(folder / "api.pem"), "privateKey": str(folder / "api.key"), "httpPort": stack["http_port"],
                      "tlsPort": fixture.free_port(), "ocspResponderURL": "", "externalAccountBindingRequired": False}
            (folder / "pebble.json").write_text(json.dumps({"pebble": config}))
            pebble = [bin_folder / "pebble", "-config", folder / "pebble.json", "-dnsserver", f"127.0.0.1:{dns}"]
            environment = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0", "PEBBLE_AUTHZREUSE": "0"}
            with running(*pebble, port=acme, log=folder / "pebble.log", **environment):

                def set_text(name, value):
                    body = json.dumps({"host": f"{name}.", "value": value}).encode()
                    urllib.request.urlopen(f"http://127.0.0.1:{dns_management}/set-txt", body).read()

                yield stack, set_text, lambda: (folder / "pebble.log").read_text().count("Issued certificate serial")


def account_key(stack):
    """A new account on the largest plan, which has any number of domains."""
    key = fixture.call("POST", f"{stack['base_url']}/api/trial")["key"]
    account = fixture.call("GET", f"{stack['base_url']}/api/account", key)["id"]
    folder = pathlib.Path(stack["log_dir"]).parent
    subprocess.run([*stack["runner"], "admin", "--dir", folder, "plan", account, "scale"], check=True, cwd=fixture.ROOT, stdout=subprocess.DEVNULL)
    until(lambda: fixture.call("GET", f"{stack['base_url']}/api/account", key)["_meta"]["plan"] == "scale", "the plan")
    return key


def add(stack, key, set_text, number):
    """Adds a domain and publishes the TXT record that the answer asks for. Returns its id."""
    url = f"{stack['base_url']}/api/account/domains"
    while True:
        try:
            domain = fixture.call("POST", url, key, {"domain": f"www.shop-{number}.example"})
            break
        except urllib.error.HTTPError as error:
            if error.code != 429:
                raise RuntimeError(error.read().decode()) from error
            time.sleep(int(error.headers.get("retry-after", 1)))
    record = next(record for record in domain["records"] if record["type"] == "TXT")
    set_text(record["name"], record["value"])
    return domain["id"]


def add_all(stack, key, set_text, count):
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda number: add(stack, key, set_text, number), range(count)))


def count(stack, what):
    return int(fixture.query(stack, f"select count(*) from {what}"))


class Memory:
    """The most memory that each service took, sampled four times a second."""

    def __init__(self, stack):
        self.stack, self.peaks, self.stopped = stack, {}, threading.Event()
        self.thread = threading.Thread(target=self.sample)

    def __enter__(self):
        self.thread.start()
        return self.peaks

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def sample(self):
        while not self.stopped.wait(0.25):
            for name, service in self.stack["services"].items():
                with contextlib.suppress(OSError, AttributeError):
                    self.peaks[name] = max(self.peaks.get(name, 0), fixture.rss_mb(service["pid"]))


def raised(program, domains):
    """Returns the seconds until all were verified and issued, the memory of each service, and what was wrong."""
    limits = "acme.limits={orders_per_3h=100000, certificates_per_domain_per_week=100000, failures_per_hour=100000}"
    with system(program, limits) as (stack, set_text, issued):
        key = account_key(stack)
        with Memory(stack) as peaks:
            began = time.monotonic()
            ids = add_all(stack, key, set_text, domains)
            until(lambda: count(stack, "domains where dns_status = 'verified'") == domains, "all domains verified")
            verified = time.monotonic() - began
            until(lambda: count(stack, "certificates where chain is not null") == domains, "all certificates issued")
            took = time.monotonic() - began
        problems = [f"{name} took {peak:.0f} MB" for name, peak in peaks.items() if peak > MAX_MB]
        refused = count(stack, "acme_orders where failed_at is not null")
        if refused:
            problems.append(f"the authority refused {refused} orders")
        if issued() != domains:
            problems.append(f"the authority issued {issued()} certificates for {domains} domains")
        last = fixture.call("GET", f"{stack['base_url']}/api/account/domains/{ids[-1]}", key)
        if (last["status"], last["sslStatus"], last["errorCode"]) != ("active", "active", None):
            problems.append(f"a domain is not active: {last}")
        return verified, took, peaks, problems


def lowered(program):
    """Returns what was wrong when one account is permitted three orders."""
    # One account may use half of them.
    limits = f"acme.limits={{orders_per_3h={2 * PERMITTED}, certificates_per_domain_per_week=50, failures_per_hour=5}}"
    with system(program, limits) as (stack, set_text, issued):
        key = account_key(stack)
        ids = add_all(stack, key, set_text, FEW)
        waiting = FEW - PERMITTED
        until(lambda: count(stack, "certificates where error_code = 'acme_rate_limited'") == waiting, "orders that wait")
        until(lambda: count(stack, "certificates where chain is not null") == PERMITTED, "permitted orders")
        shown = [fixture.call("GET", f"{stack['base_url']}/api/account/domains/{id}", key) for id in ids]
        waits = [domain for domain in shown if domain["errorCode"] == "acme_rate_limited"]
        now = datetime.datetime.now(datetime.timezone.utc)
        hours = [(datetime.datetime.fromisoformat(one["nextAttemptAt"].replace("Z", "+00:00")) - now).total_seconds() / 3600 for one in waits]
        problems = []
        if len(waits) != waiting or not all(2.9 < one <= 3 for one in hours):
            problems.append(f"{len(waits)} of {waiting} domains wait, for hours: {hours}")
        if issued() != PERMITTED:
            problems.append(f"the authority issued {issued()} certificates instead of {PERMITTED}")
        return problems


def write(arguments, verified, took, peaks):
    domains, cores = arguments.domains, len(os.sched_getaffinity(0))
    text = f"""# Certificates of many domains

Made by `tests/nightly/certificates.py`: the whole system and pebble on {cores} cores, {arguments.build}, limits raised, from the
first `POST` on.

| {domains} domains | seconds | per second |
| --- | ---: | ---: |
| verified | {verified:.1f} | {domains / verified:.1f} |
| issued | {took:.1f} | {domains / took:.1f} |

| memory at most | MB |
| --- | ---: |
""" + "".join(f"| {name} | {peak:.0f} |\n" for name, peak in sorted(peaks.items()))
    text += f"\nWith {PERMITTED} orders permitted, {PERMITTED} of {FEW} domains are issued; the others show `acme_rate_limited` and a `nextAttemptAt` in three hours.\n"
    (HERE / "certificates.md").write_text(text)
    print(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="a local runner that is built already; without it, cargo builds one")
    parser.add_argument("--domains", type=int, default=500)
    parser.add_argument("--build", default="an optimized build", help="how PROGRAM was built, for the table")
    arguments = parser.parse_args()
    verified, took, peaks, problems = raised(arguments.program, arguments.domains)
    problems += lowered(arguments.program)
    if not problems:
        write(arguments, verified, took, peaks)
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
