#!/usr/bin/env python3
"""Do real sites behave here as on a plain static web server? Deploys builds of many tools and compares each with nginx.

    tests/nightly/sites/run.py PROGRAM                       all builds; PROGRAM is a local runner that is built already
    tests/nightly/sites/run.py PROGRAM --only vite-react     one build, or several separated by commas
    tests/nightly/sites/run.py --build                       only makes the builds that are not cached (a quarter of an hour)

The builds are made here from npm, PyPI and Debian packages with pinned versions, and cached per user by recipe. Each is
zipped, deployed through the API and served by nginx from its folder. Then:

crawl    every address that answers on nginx must answer here with the same status class, target, media type and bytes,
         after the documented rewriting: the tracker script, and content addresses of images and fonts
browse   Chromium opens pages of both: no console error or failed request beyond nginx's, the same text, and no more
         differing pixels than between two shots of nginx; a link of the site's router, then a reload; the site's search
bytes    of a first and a second view, at most those of nginx with gzip_static and `expires`; a second view requests no file
         whose name has a content hash

Writes tests/sites.md, unless --only or --print is given, and ends with 1 if anything differs.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import crawl
import recipes
import serve
import workshop
from serve import fixture

ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLE = ROOT / "tests" / "sites.md"
NOT_RUN = 77
MIN_BUILDS = 12
BROWSE_SECONDS = 900
SHOWN_PER_KIND = 4


def progress(text):
    print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)


def browse(builds, deployed, port):
    """Runs browse.mjs over the deployed builds; returns its results by name."""
    browser = ROOT / "tests" / "browser"
    if not (browser / "node_modules" / "playwright-core").exists():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=browser, check=True, stdout=subprocess.DEVNULL)
    plan = [{"name": build.name, "pages": build.pages, "click": build.click, "search": build.search, "shows": build.shows,
             "ours": deployed[build.name].origin, "theirs": f"http://{build.name}.localhost:{port}",
             "bytesOf": build.bytes_of, "ready": build.ready, "compressed": f"http://{build.name}-compressed.localhost:{port}"}
            for build in builds if not deployed[build.name].refusal]
    results = {}
    command = ["node", str(pathlib.Path(__file__).with_name("browse.mjs"))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    limit = threading.Timer(BROWSE_SECONDS, process.terminate)
    limit.start()
    try:
        process.stdin.write(json.dumps(plan))
        process.stdin.close()
        for line in process.stdout:
            result = json.loads(line)
            results[result["name"]] = result
            problems = sum(len(page["problems"]) + len(page["errors"]) + len(page["failed"]) for page in result["pages"])
            progress(f"{result['name']}: {len(result['pages'])} views compared, {problems} problems{' ' + result['error'] if 'error' in result else ''}")
        if process.wait():
            progress(f"the browser ended with {process.returncode}")
    finally:
        limit.cancel()
        process.terminate()
    return results


def failures_of(build, folder, deployed, crawled, browsed, has_bytes):
    """What is wrong with one build, one text each; the first word is the kind."""
    found = []
    if deployed.refusal:
        return [f"refused: {deployed.refusal}"]
    found += [f"lost {address}: {status} ({reason})" for address, (reason, status) in sorted(crawled.lost.items())]
    found += [f"moved {address}: {status} ({reason})" for address, (reason, status) in sorted(crawled.moved.items())]
    found += [f"differs {address}: {text}" for address, text in sorted(crawled.differing.items())]
    found += [f"type of {address}: {text}" for address, text in sorted(crawled.types.items())]
    found += counts_of(build, folder, deployed)
    if not browsed or "error" in browsed:
        return found + [f"browser: {browsed['error'] if browsed else 'it ended before this build'}"]
    for page in browsed["pages"]:
        found += [f"view {page['path']}: {text}" for text in page["problems"]]
        if any(text.startswith("status ") for text in page["problems"]):
            continue
        found += [f"console {page['path']}: {text}" for text in page["errors"]]
        found += [f"request {page['path']}: {text}" for text in page["failed"]]
        if page["pixels"] > page["noise"]:
            found.append(f"pixels {page['path']}: {page['pixels']} differ, {page['noise']} between two shots of nginx")
    if browsed["bytes"] and has_bytes:
        ours, theirs = browsed["bytes"]["ours"], browsed["bytes"]["theirs"]
        found += [f"bytes of the {view} view of {build.bytes_of}: {ours[at]['bytes']:,} in {len(ours[at]['requests'])} requests, nginx {theirs[at]['bytes']:,} in {len(theirs[at]['requests'])}"
                  for at, view in enumerate(["first", "second"]) if ours[at]["bytes"] > theirs[at]["bytes"]]
        found += [f"hashed file requested by the second view: {url}" for url in hashed_beyond(ours[1], theirs[1])]
    return found


def counts_of(build, folder, deployed):
    """Does every file of the zip stand in the answer's counts?"""
    stats = deployed.answer.get("stats", {})
    served, left_out = stats.get("filesServed"), stats.get("filesLeftOut")
    files = serve.files_of(folder)
    total = len(files) + len(build.beside)
    if served is None or left_out is None:
        return ["counts: stats has no filesServed and filesLeftOut"]
    # A file that the deploy reads and never serves may count as either or as neither.
    if not total - len(serve.PARSED & set(files)) <= served + left_out <= total:
        return [f"counts: stats has {served} + {left_out} of the {total} files in the zip"]
    return []


def hashed(urls):
    return [url for url in urls if serve.HASHED_NAME.search(urllib.parse.urlsplit(url).path)]


def hashed_beyond(ours, theirs):
    """Hashed files that a view requests and nginx's doesn't. Chromium reports scripts of workers that it has cached."""
    paths = {urllib.parse.urlsplit(url).path for url in theirs["requests"]}
    return [url for url in hashed(ours["requests"]) if urllib.parse.urlsplit(url).path not in paths]


def row(build, folder, deployed, crawled, browsed):
    """One row of the table."""
    files = serve.files_of(folder)
    pages = sum(path.endswith((".html", ".htm")) for path in files)
    cells = [build.name, len(files), pages, crawled.compared, len(crawled.lost), len(crawled.moved), len(crawled.differing) + len(crawled.types)]
    if not browsed or "error" in browsed:
        return cells + ["–"] * 7
    views = browsed["pages"]
    cells += [sum(len(view["problems"]) for view in views), sum(len(view["errors"]) for view in views), sum(len(view["failed"]) for view in views),
              sum(max(0, view["pixels"] - view["noise"]) for view in views)]
    if not browsed["bytes"]:
        return cells + ["", "", ""]
    ours, theirs = browsed["bytes"]["ours"], browsed["bytes"]["theirs"]
    return cells + [f"{ours[0]['bytes'] / 1000:,.1f} / {theirs[0]['bytes'] / 1000:,.1f}", f"{ours[1]['bytes'] / 1000:,.1f} / {theirs[1]['bytes'] / 1000:,.1f}",
                    len(hashed_beyond(ours[1], theirs[1]))]


HEAD = ["build", "files", "pages", "addresses compared", "lost", "moved", "differing", "views that differ", "console errors beyond nginx",
        "failed requests beyond nginx", "differing pixels beyond nginx", "KB of the first view / nginx", "of the second", "hashed files requested again"]


def table(rows, reasons, lost):
    """The text of tests/sites.md."""
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    made = [f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else cell for cell in cells)} |" for cells in rows]
    sums = [sum(cells[at] for cells in rows if isinstance(cells[at], int)) for at in range(1, 11)]
    made.append(f"| all | {' | '.join(f'{total:,}' for total in sums)} | | | |")
    not_run = [f"- {name}: not run ({reason})" for name, reason in reasons.items()]
    losses = [f"| {reason} | {count:,} |" for reason, count in lost.most_common()]
    parts = [f"""# Real sites beside nginx

Made by `tests/nightly/run sites` on {datetime.date.today()} at {revision}. Each build is deployed unchanged and compared with the same folder on a plain
nginx. An address is lost if it answers there and not here; moved, if one redirects and the other does not; it differs if its bytes,
its target or its media type are not the same after the documented rewriting. Bytes: Chromium's, over the network, beside nginx with
`gzip_static` and `expires`, without the tracker's own requests.
""", f"| {' | '.join(HEAD)} |\n| --- {'| ---: ' * (len(HEAD) - 1)}|\n" + "\n".join(made) + "\n"]
    parts += ["| why addresses are lost or moved | |\n| --- | ---: |\n" + "\n".join(losses) + "\n"] if losses else []
    parts += ["Not built here:\n\n" + "\n".join(not_run) + "\n"] if not_run else []
    return "\n".join(parts)


def compare(program, builds, folders, has_bytes):
    """Deploys, crawls and browses; returns the rows, the failures by build and the reasons of lost addresses."""
    rows, failures, lost = [], {}, collections.Counter()
    with fixture.system(program=program) as stack, tempfile.TemporaryDirectory(prefix="web-runtime-sites-") as scratch, \
            serve.nginx(builds, folders, pathlib.Path(scratch)) as port:
        deployed, crawled = {}, {}
        for build in builds:
            folder = folders[build.name]
            began = time.monotonic()
            deployed[build.name] = one = serve.deploy(stack, build, folder)
            took = time.monotonic() - began
            progress(f"{build.name}: {f'refused: {one.refusal}' if one.refusal else f'deployed in {took:.1f} s'} (plan {build.plan})")
            crawled[build.name] = result = crawl.crawl(build, folder, port, one, progress)
            lost.update(result.reasons())
            progress(f"{build.name}: {result.compared} addresses, {len(result.lost)} lost, {len(result.moved)} moved, {len(result.differing)} differ")
        browsed = browse(builds, deployed, port)
        for build in builds:
            of_build = (build, folders[build.name], deployed[build.name], crawled[build.name], browsed.get(build.name))
            rows.append(row(*of_build))
            failures[build.name] = failures_of(*of_build, has_bytes)
    return rows, failures, lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="a local runner that is built already; without it, cargo builds one")
    parser.add_argument("--only", help="names of builds, separated by commas")
    parser.add_argument("--build", action="store_true", help="make the builds and stop")
    parser.add_argument("--print", action="store_true", help="show the table, leave tests/sites.md alone")
    parser.add_argument("--skip-bytes", action="store_true", help="an unoptimized program compresses too slowly for the first view")
    parser.add_argument("--all", action="store_true", help="print every failure, not the first of each kind")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else [build.name for build in recipes.BUILDS]
    unknown = set(names) - {build.name for build in recipes.BUILDS}
    if unknown:
        sys.exit(f"no build is called {', '.join(unknown)}; there are {', '.join(build.name for build in recipes.BUILDS)}")
    builds = [build for build in recipes.BUILDS if build.name in names]
    workshop.CACHE.mkdir(parents=True, exist_ok=True)
    folders, reasons = workshop.make_all(builds, progress)
    builds = [build for build in builds if build.name in folders]
    if arguments.build:
        return
    for needed in ["node", "npm", os.environ.get("CHROMIUM", "chromium")]:
        if not shutil.which(needed):
            print(f"{needed} is missing")
            sys.exit(NOT_RUN)
    if not builds:
        print("no build could be made")
        sys.exit(NOT_RUN)
    # Ends the system and nginx too when the part takes too long.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    print(serve.API_FIELDS, flush=True)
    rows, failures, lost = compare(arguments.program, builds, folders, not arguments.skip_bytes)
    text = table(rows, reasons, lost)
    print(text)
    if not arguments.only and not arguments.print:
        TABLE.write_text(text)
    for name, found in failures.items():
        kinds = collections.Counter()
        for one in found:
            kind = one.split(" ")[0]
            kinds[kind] += 1
            if arguments.all or kinds[kind] <= SHOWN_PER_KIND:
                print(f"FAILED {name}: {one}")
        more = ", ".join(f"{count - SHOWN_PER_KIND} of {kind}" for kind, count in kinds.items() if count > SHOWN_PER_KIND)
        if more and not arguments.all:
            print(f"FAILED {name}: and more: {more}; see --only {name} --all")
    if not arguments.only and len(builds) < MIN_BUILDS:
        print(f"FAILED only {len(builds)} builds could be made, of at least {MIN_BUILDS}")
        sys.exit(1)
    total = sum(map(len, failures.values()))
    print(f"{len(builds)} builds compared, {total} failures")
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
