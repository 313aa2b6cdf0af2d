#!/usr/bin/env python3
"""How fast is a site published? A zip of 500 files processed, against `unzip` and `cp -r` of the same zip.

    tests/bench/deploy.py            about two minutes after the build; needs unzip

Alternating, each run into a new site, medians. A third figure deploys the same zip again into the same site, because
most deploys change little. Writes tests/bench/deploy.md.
"""

import io
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile

import fixture

ROUNDS, PAGES, SCRIPTS, PICTURES = 7, 90, 110, 300
HERE = pathlib.Path(__file__).resolve().parent


def site(seed):
    """A zip of 500 different files: pages that refer to style sheets, scripts and images."""
    chance = random.Random(seed)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(PICTURES):
            # A PNG signature is enough to be recognised as an image.
            archive.writestr(f"dist/images/{n}.png", b"\x89PNG\r\n\x1a\n" + chance.randbytes(12_000))
        for n in range(SCRIPTS):
            kind, text = ("css", f".c{n}{{background:url(../images/{n}.png)}}") if n % 2 else ("js", f"let n{n} = {n};")
            archive.writestr(f"dist/{kind}/{n}.{kind}", text * 60)
        for n in range(PAGES):
            words = " ".join(chance.choice(["lorem", "ipsum", "dolor", "sit", "amet"]) for _ in range(600))
            pictures = "".join(f'<img src="/images/{(n * 3 + k) % PICTURES}.png" alt="">' for k in range(10))
            sheets = "".join(f'<link rel="stylesheet" href="/css/{(2 * k + 1)}.css">' for k in range(5))
            scripts = "".join(f'<script src="/js/{2 * k}.js"></script>' for k in range(5))
            links = "".join(f'<a href="/p{(n + k) % (PAGES - 1) + 1}/">next</a>' for k in range(10))
            page = f"<!doctype html><title>Page {n}</title>{sheets}<p>{words}</p>{pictures}{links}{scripts}"
            archive.writestr(f"dist/p{n}/index.html" if n else "dist/index.html", page)
    return packed.getvalue()


def publish(base, key, zipped):
    """Seconds for the upload and for the request that processes it."""
    begun = fixture.call("POST", f"{base}/api/deploy", key, {"sizeBytes": len(zipped)})
    began = time.monotonic()
    request = urllib.request.Request(begun["uploadUrl"], zipped, begun["uploadHeaders"], method="PUT")
    urllib.request.urlopen(request).read()
    sent = time.monotonic()
    done = fixture.call("POST", f"{base}/api/deploy/{begun['deployId']}/process", key)
    ended = time.monotonic()
    if done["errors"] or len(done["pages"]) != PAGES:
        sys.exit(f"the deploy went wrong: {done['errors']} {done['stats']}")
    return sent - began, ended - sent


def unpack(zipped):
    """Seconds to unpack and copy the same zip."""
    with tempfile.TemporaryDirectory() as folder:
        archive = pathlib.Path(folder) / "site.zip"
        archive.write_bytes(zipped)
        began = time.monotonic()
        subprocess.run(["unzip", "-q", archive, "-d", f"{folder}/unpacked"], check=True)
        subprocess.run(["cp", "-r", f"{folder}/unpacked", f"{folder}/served"], check=True)
        return time.monotonic() - began


def measure(base):
    turns = []
    for turn in range(ROUNDS + 1):
        zipped = site(turn)
        key = fixture.call("POST", f"{base}/api/trial")["key"]
        fixture.call("POST", f"{base}/api/account/upgrade", key, {"plan": "pro"})
        upload, first = publish(base, key, zipped)
        _, again = publish(base, key, zipped)
        plain = unpack(zipped)
        print(f"  round {turn}: upload {upload:.2f} s, process {first:.2f} s, again {again:.2f} s, unzip {plain:.2f} s", flush=True)
        if turn > 0:  # the first round warms up
            turns.append((upload, first, again, plain))
    return [statistics.median(column) for column in zip(*turns)], len(zipped)


def main():
    if not shutil.which("unzip"):
        sys.exit("unzip is missing: apt-get install unzip")
    with fixture.system() as stack:
        (upload, first, again, plain), size = measure(stack["base_url"])
    table = f"""# A zip of {PAGES + SCRIPTS + PICTURES} files, published

Made by `tests/bench/deploy.py`: {ROUNDS} turns, medians. {PAGES} pages, {SCRIPTS} style sheets and scripts and {PICTURES}
pictures, {size / 1e6:.1f} MB zipped. Processing reads every page and style sheet, rewrites what they refer to, stores every
file under its hash, and publishes all of it in one transaction; `unzip` and `cp -r` only write it down twice.

| | seconds | files/s |
| --- | ---: | ---: |
| upload through the edge | {upload:.2f} | |
| process, a new site | {first:.2f} | {(PAGES + SCRIPTS + PICTURES) / first:,.0f} |
| process, the same again | {again:.2f} | {(PAGES + SCRIPTS + PICTURES) / again:,.0f} |
| `unzip` and `cp -r` | {plain:.2f} | {(PAGES + SCRIPTS + PICTURES) / plain:,.0f} |
"""
    (HERE / "deploy.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
