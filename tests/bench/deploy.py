#!/usr/bin/env python3
"""How fast is a site published, and how fast are its files served?

    tests/bench/deploy.py                      about five minutes after the build; needs unzip, wrk and nginx
    tests/bench/deploy.py --program PATH       with a local runner that is built already
    tests/bench/deploy.py --only files,warm    some parts; the table is printed and tests/bench/deploy.md left alone

files      a zip of 500 files processed, against `unzip` and `cp -r` of the same zip; then the same zip again
pages      1,500 pages in one zip, new and again
unchanged  1,000 files announced by their hashes, of which none, one or all changed
warm       a compressed script, warm, beside nginx with gzip_static; ratios are taken within a round
large      10,000 files, each requested once: the edge's memory against its budgets

Everything is alternating where two things are compared, each deploy of the first two parts goes into a new site, and
medians count. Writes tests/bench/deploy.md.
"""

import argparse
import concurrent.futures
import hashlib
import http.client
import io
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile

import edge
import fixture

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS, PAGES, SCRIPTS, PICTURES = 7, 90, 110, 300
MANY_PAGES, UNCHANGED, LARGE = 1_500, 1_000, 10_000
SCRIPT_BYTES = 100_000
WORDS = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit"]


def packed(files):
    """A zip of files by path."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return out.getvalue()


def text_of(chance, words):
    return " ".join(chance.choice(WORDS) for _ in range(words))


def site(seed):
    """500 different files: pages that refer to style sheets, scripts and images."""
    chance, files = random.Random(seed), {}
    for n in range(PICTURES):
        # A PNG signature is enough to be recognised as an image.
        files[f"dist/images/{n}.png"] = b"\x89PNG\r\n\x1a\n" + chance.randbytes(12_000)
    for n in range(SCRIPTS):
        kind, text = ("css", f".c{n}{{background:url(../images/{n}.png)}}") if n % 2 else ("js", f"let n{n} = {n};")
        files[f"dist/{kind}/{n}.{kind}"] = text * 60
    for n in range(PAGES):
        pictures = "".join(f'<img src="/images/{(n * 3 + k) % PICTURES}.png" alt="">' for k in range(10))
        sheets = "".join(f'<link rel="stylesheet" href="/css/{(2 * k + 1)}.css">' for k in range(5))
        scripts = "".join(f'<script src="/js/{2 * k}.js"></script>' for k in range(5))
        links = "".join(f'<a href="/p{(n + k) % (PAGES - 1) + 1}/">next</a>' for k in range(10))
        page = f"<!doctype html><title>Page {n}</title>{sheets}<p>{text_of(chance, 600)}</p>{pictures}{links}{scripts}"
        files[f"dist/p{n}/index.html" if n else "dist/index.html"] = page
    return files


def many_pages(seed):
    """Pages of 4 KB, as of a documentation."""
    chance = random.Random(seed)
    return {f"docs/p{n}/index.html" if n else "index.html": f"<!doctype html><title>Page {n}</title><p>{text_of(chance, 600)}</p>" for n in range(MANY_PAGES)}


def account(base, plan):
    key = fixture.call("POST", f"{base}/api/trial")["key"]
    fixture.call("POST", f"{base}/api/account/upgrade", key, {"plan": plan})
    return key


def put(begun, zipped):
    request = urllib.request.Request(begun["uploadUrl"], zipped, begun["uploadHeaders"], method="PUT")
    urllib.request.urlopen(request).read()


def process(base, key, begun):
    """Publishes an uploaded deploy. Returns the answer and the seconds it took."""
    began = time.monotonic()
    done = fixture.call("POST", f"{base}/api/deploy/{begun['deployId']}/process", key)
    took = time.monotonic() - began
    if done["errors"]:
        sys.exit(f"the deploy went wrong: {done['errors']} {done['stats']}")
    return done, took


def publish(base, key, zipped):
    """Returns the answer, the seconds of the upload, and those of the request that processes it."""
    begun = fixture.call("POST", f"{base}/api/deploy", key, {"sizeBytes": len(zipped)})
    began = time.monotonic()
    put(begun, zipped)
    sent = time.monotonic() - began
    done, took = process(base, key, begun)
    return done, sent, took


def unpack(zipped, folder):
    """Seconds to unpack and copy a zip in a new folder."""
    folder.mkdir()
    archive = folder / "site.zip"
    archive.write_bytes(zipped)
    began = time.monotonic()
    subprocess.run(["unzip", "-q", archive, "-d", folder / "unpacked"], check=True)
    subprocess.run(["cp", "-r", folder / "unpacked", folder / "served"], check=True)
    return time.monotonic() - began


def medians(turns):
    return [statistics.median(column) for column in zip(*turns)]


def files_part(stack):
    # Removed at the end: for minutes after a deletion, ext4 searches long for each new inode, in both programs.
    with tempfile.TemporaryDirectory() as folder:
        return publish_files(stack, pathlib.Path(folder))


def publish_files(stack, folder):
    base, turns = stack["base_url"], []
    for turn in range(ROUNDS + 1):
        zipped = packed(site(turn))
        key = account(base, "pro")
        done, upload, first = publish(base, key, zipped)
        if len(done["pages"]) != PAGES:
            sys.exit(f"the deploy went wrong: {done['stats']}")
        _, _, again = publish(base, key, zipped)
        plain = unpack(zipped, folder / str(turn))
        print(f"  round {turn}: upload {upload:.2f} s, process {first:.2f} s, again {again:.2f} s, unzip {plain:.2f} s", flush=True)
        if turn > 0:  # the first round warms up
            turns.append((upload, first, again, plain))
    upload, first, again, plain = medians(turns)
    count = PAGES + SCRIPTS + PICTURES
    return f"""## A zip of {count} files

{ROUNDS} turns. {PAGES} pages, {SCRIPTS} style sheets and scripts and {PICTURES} pictures, {len(zipped) / 1e6:.1f} MB zipped. Processing reads every page
and style sheet, rewrites what they refer to, stores every file under its hash, and publishes all of it in one transaction;
`unzip` and `cp -r` only write it down twice. The bar: 0.15 s for a new site.

| | seconds | files/s |
| --- | ---: | ---: |
| upload through the edge | {upload:.2f} | |
| process, a new site | {first:.2f} | {count / first:,.0f} |
| process, the same again | {again:.2f} | {count / again:,.0f} |
| `unzip` and `cp -r` | {plain:.2f} | {count / plain:,.0f} |
"""


def pages_part(stack):
    base, turns = stack["base_url"], []
    for turn in range(4):
        zipped = packed(many_pages(turn))
        key = account(base, "scale")
        done, _, first = publish(base, key, zipped)
        if len(done["pages"]) != MANY_PAGES:
            sys.exit(f"the deploy went wrong: {done['stats']}")
        _, _, again = publish(base, key, zipped)
        print(f"  round {turn}: process {first:.2f} s, again {again:.2f} s", flush=True)
        if turn > 0:
            turns.append((first, again))
    first, again = medians(turns)
    return f"""## {MANY_PAGES:,} pages

3 turns. {len(zipped) / 1e6:.1f} MB zipped. Every file becomes a page with a version, which the API lists and edits. The bar: 1.5 s for a new site.

| | seconds | pages/s |
| --- | ---: | ---: |
| process, a new site | {first:.2f} | {MANY_PAGES / first:,.0f} |
| process, the same again | {again:.2f} | {MANY_PAGES / again:,.0f} |
"""


def manifest(files):
    encoded = {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
    return {path: {"sha256": hashlib.sha256(content).hexdigest(), "sizeBytes": len(content)} for path, content in encoded.items()}


def publish_changed(base, key, files):
    """Announces files, uploads those that the platform lacks, and publishes. Returns the uploaded bytes and the seconds."""
    began = time.monotonic()
    announced = manifest(files)
    begun = fixture.call("POST", f"{base}/api/deploy", key, {"sizeBytes": 0, "files": announced})
    uploaded = 0
    if begun["missing"]:
        zipped = packed({path: files[path] for path in begun["missing"]})
        begun = fixture.call("POST", f"{base}/api/deploy", key, {"sizeBytes": len(zipped), "files": announced})
        put(begun, zipped)
        uploaded = len(zipped)
    process(base, key, begun)
    return uploaded, time.monotonic() - began


def unchanged_part(stack):
    base = stack["base_url"]
    key = account(base, "scale")
    chance = random.Random(1)
    files = {f"p{n}/index.html" if n else "index.html": f"<!doctype html><title>{n}</title><p>{text_of(chance, 500)}" for n in range(200)}
    files |= {f"js/{n}.js": f"// {n}\n{text_of(chance, 300)}" for n in range(300)}
    files |= {f"images/{n}.png": b"\x89PNG\r\n\x1a\n" + chance.randbytes(8_000) for n in range(UNCHANGED - 500)}
    rows = []
    for what in ["all new", "none changed", "one page changed"]:
        if what == "one page changed":
            files["p7/index.html"] += "<p>more"
        uploaded, took = publish_changed(base, key, files)
        print(f"  {what}: {uploaded:,} bytes, {took:.2f} s", flush=True)
        rows.append(f"| {what} | {uploaded:,} | {took:.2f} |")
        if what == "none changed" and uploaded:
            sys.exit("unchanged files were uploaded")
    return f"""## {UNCHANGED:,} files announced by their hashes

200 pages, 300 scripts and {UNCHANGED - 500} pictures, announced with `files`; only those that the account has not are uploaded. The bar: 0 bytes for
unchanged files. Seconds from the first request to the last response, with making the zip.

| | bytes uploaded | seconds |
| --- | ---: | ---: |
""" + "\n".join(rows) + "\n"


def warm_part(stack):
    base = stack["base_url"]
    key = account(base, "pro")
    chance = random.Random(3)
    script = ""
    while len(script) < SCRIPT_BYTES:
        script += f"function f{chance.getrandbits(24):x}({chance.choice(WORDS)}) {{ return {text_of(chance, 3).replace(' ', ' + ')} * {chance.getrandbits(16)}; }}\n"
    publish(base, key, packed({"index.html": "<!doctype html><title>A page</title>", "app.js": script}))
    host, results = fixture.site_host(stack, key), {"nginx": [], "edge": []}
    with tempfile.TemporaryDirectory(prefix="web-runtime-bench-") as name, fixture.another_edge(stack) as (port, pid):
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "www").mkdir()
        (folder / "www" / "app.js").write_text(script)
        subprocess.run(["gzip", "-k9", str(folder / "www" / "app.js")], check=True)
        servers = [edge.nginx(folder, host), edge.Server("edge", port, port, pid, host)]
        try:
            sizes = {}
            for server in servers:
                server.path = "/app.js"
                server.until_ready()
                headers, _ = server.get({"Accept-Encoding": "gzip"})
                for _ in range(100):
                    if headers["Content-Encoding"] == "gzip":
                        break
                    time.sleep(0.05)
                    headers, _ = server.get({"Accept-Encoding": "gzip"})
                sizes[server.name] = int(headers["Content-Length"])
            wanted = {**edge.BROWSER, "Accept-Encoding": "gzip"}
            for turn in range(7):
                for server in servers if turn % 2 else reversed(servers):
                    before = server.cpu_seconds()
                    total, rate, p50, p99 = edge.run_wrk(server, wanted, 3)
                    results[server.name].append({"rate": rate, "p50": p50, "p99": p99, "cpu_us": (server.cpu_seconds() - before) / total * 1e6})
                print(f"  round {turn}: nginx {results['nginx'][-1]['rate']:,.0f}/s, edge {results['edge'][-1]['rate']:,.0f}/s", flush=True)
        finally:
            os.killpg(servers[0].process.pid, signal.SIGTERM)
            servers[0].process.wait()
    rows = []
    for name, runs in results.items():
        middle = {kind: statistics.median(run[kind] for run in runs[1:]) for kind in runs[0]}
        ratio = statistics.median(own["rate"] / other["rate"] for own, other in zip(runs[1:], results["nginx"][1:]))
        cost = statistics.median(own["cpu_us"] / other["cpu_us"] for own, other in zip(runs[1:], results["nginx"][1:]))
        rows.append(f"| {name} | {sizes[name]:,} | {middle['rate']:,.0f} | {ratio:.2f} | {middle['p50']:.2f} | {middle['p99']:.2f} | {middle['cpu_us']:.1f} | {cost:.2f} |")
    return f"""## A warm compressed file

A script of {SCRIPT_BYTES:,} bytes with a browser's headers and `Accept-Encoding: gzip`, {edge.CONNECTIONS} connections, 6 rounds of 3 s each. nginx serves the
.gz beside it (`gzip_static`, `open_file_cache`). The bar: 1.0 × nginx.

| | bytes | requests/s | × nginx | p50 ms | p99 ms | CPU µs/request | × nginx |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
""" + "\n".join(rows) + "\n"


def large_part(stack):
    base = stack["base_url"]
    key = account(base, "scale")
    chance = random.Random(2)
    files = {"index.html": "<!doctype html><title>A page</title>"}
    files |= {f"data/{n // 100}/{n}.json": f'{{"n": {n}, "text": "{text_of(chance, 800)}"}}' for n in range(LARGE - 1)}
    zipped = packed(files)
    done, _, took = publish(base, key, zipped)
    if done["stats"]["filesServed"] != LARGE:
        sys.exit(f"the deploy went wrong: {done['stats']}")
    host = fixture.site_host(stack, key)
    with fixture.another_edge(stack) as (port, pid):
        def fetch(paths):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            for path in paths:
                connection.request("GET", f"/{path}", headers={"Host": host, "Accept-Encoding": "gzip, deflate, br, zstd"})
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    sys.exit(f"/{path} answered {response.status}")
        fetch(["index.html"])
        before = fixture.rss_mb(pid)
        paths = list(files)
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(fetch, [paths[at::8] for at in range(8)]))
        cold = time.monotonic() - began
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(fetch, [paths[at::8] for at in range(8)]))
        warm = time.monotonic() - began
        after = fixture.rss_mb(pid)
    budget = 256 + 128 + 128
    print(f"  {took:.1f} s, {before:.0f} MB before, {after:.0f} MB after", flush=True)
    if after - before > budget:
        sys.exit(f"the edge grew by {after - before:.0f} MB, more than its budgets of {budget} MB")
    return f"""## A site of {LARGE:,} files

{len(zipped) / 1e6:.1f} MB zipped, {sum(map(len, files.values())) / 1e6:.0f} MB unpacked. Every file is requested twice by 8 Python clients, compressed. The budgets of the
edge's caches, of answers, sites and files, are {budget} MB together.

| | |
| --- | ---: |
| process, a new site, in s | {took:.1f} |
| first time, requests/s | {LARGE / cold:,.0f} |
| second time, requests/s | {LARGE / warm:,.0f} |
| edge before, RSS in MB | {before:.0f} |
| edge after, RSS in MB | {after:.0f} |
"""


PARTS = {"files": files_part, "pages": pages_part, "unchanged": unchanged_part, "warm": warm_part, "large": large_part}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="a local runner that is built already")
    parser.add_argument("--only", default=",".join(PARTS), help="names of parts, separated by commas")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := set(names) - set(PARTS):
        sys.exit(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    for needed in ["unzip", "wrk", "nginx"]:
        if not shutil.which(needed):
            sys.exit(f"{needed} is missing")
    sections = []
    # Trials are limited by address; every turn publishes to a new account.
    with fixture.system(program=arguments.program) as stack:
        for name in names:
            print(name, flush=True)
            sections.append(PARTS[name](stack))
            print(sections[-1], flush=True)
    if names == list(PARTS):
        text = "# Publishing a site and serving its files\n\nMade by `tests/bench/deploy.py`; medians.\n\n"
        (HERE / "deploy.md").write_text(text + "\n".join(sections))


if __name__ == "__main__":
    main()
