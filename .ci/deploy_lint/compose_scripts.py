"""Runs the scripts of deploy/compose in a copy of the folder, with a program in docker's place."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

# Notes each call, and answers as an installation with one of each service would.
DOCKER = """#!/bin/sh
printf '%s ' "$@" >>"$CALLS"
echo >>"$CALLS"
case "$*" in
    "compose config --services") printf '%s\\n' migrate edge control-plane collector job-runner ;;
    "compose config") echo 'name: web-runtime' ;;
    "image inspect "*) [ "${IMAGES:-}" != missing ] ;;
    "volume inspect "*) [ "${VOLUMES:-}" != missing ] ;;
    *" up "*) [ "${UP:-}" != fails ] ;;
esac
"""
# What `setup` must refuse, and a part of the sentence.
REFUSED = [
    ("app.example.com", "the domain of sites is missing"),
    ("https://app.example.com sites.example.net", "not a host name"),
    ("app.example.com sites.example.com", "share a domain"),
    ("app.example.com sites.example.net --no-tls --behind-proxy 10.0.0.0/8", "exclude each other"),
    ("app.example.com sites.example.net --behind-proxy 10.0.0.1", "not a network"),
    ("app.example.com sites.example.net --email a&b@example.com", "not an e-mail address"),
    ("app.example.com sites.example.net --email a|b@example.com", "not an e-mail address"),
    ("app.example.com sites.example.net --email a/b@example.com", "not an e-mail address"),
    ("app.example.com sites.example.net --email", "needs a value"),
    ("app.example.com sites.example.net --http-port 80a", "not a port"),
    ("app.example.com sites.example.net other.example", "deploy/compose/setup HOST"),
    ("app.example.com sites.example.net --replica", "unknown option"),
]


def problems(folder):
    """What the scripts do wrong, one sentence each."""
    for check in (setup, setup_refuses, upgrade, webruntime):
        with tempfile.TemporaryDirectory() as scratch:
            yield from check(_Copy(pathlib.Path(scratch), folder))


class _Copy:
    """deploy/compose without the installation that may be in it."""

    def __init__(self, scratch, folder):
        self.folder = scratch / "compose"
        shutil.copytree(folder, self.folder, ignore=shutil.ignore_patterns("backups", "secrets", "certificates", ".env", "compose.override.yml"))
        (scratch / "bin").mkdir()
        (scratch / "bin/docker").write_text(DOCKER)
        (scratch / "bin/docker").chmod(0o755)
        self.calls = scratch / "calls"
        self.environment = {"PATH": f"{scratch / 'bin'}:{os.environ['PATH']}", "CALLS": str(self.calls)}

    def run(self, script, *arguments, **answers):
        """Runs a script. Returns its exit code, what it printed, and the calls of docker."""
        self.calls.write_text("")
        command = [self.folder / script, *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, env=self.environment | answers)
        return done.returncode, done.stdout, self.calls.read_text().splitlines()

    def env(self):
        return dict(re.findall(r"^([A-Z_0-9]+)=(.*)$", (self.folder / ".env").read_text(), re.MULTILINE))

    def files(self):
        paths = (self.folder / "secrets").iterdir()
        return {path.name: (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) for path in paths}


def setup(copy):
    code, text, _ = copy.run("setup", "app.example.com", "sites.example.net", "--email", "me+acme@example.com", "--http-port", "8081")
    env, files = copy.env(), copy.files()
    expected = {"BASE_URL": "https://app.example.com", "SITES_DOMAIN": "sites.example.net", "ACME_EMAIL": "me+acme@example.com",
                "HTTP_PORT": "8081", "COMPOSE_PROFILES": "single", "TRUSTED_PROXIES": ""}
    if code != 0 or not expected.items() <= env.items() or not env["ACME_DIRECTORY_URL"]:
        yield f"setup: exit code {code}, made {env}"
    if "ACME_WILDCARD" not in text:
        yield "setup: does not say that sites have no certificate yet"
    modes = {name: stat.S_IMODE((copy.folder / name).stat().st_mode) for name in ("secrets", "certificates", "certificates/sites")}
    if {mode for _, mode in files.values()} != {0o444} or modes != {"secrets": 0o700, "certificates": 0o700, "certificates/sites": 0o755}:
        yield "setup: the secrets or their folder have other modes"
    keys = [content for name, (content, _) in files.items() if "." not in name]
    if len(files) != 10 or len(set(keys)) != 8 or {len(key) for key in keys} != {64}:
        yield f"setup: made {sorted(files)}, not eight secrets of 32 random bytes and two files with them"
    yield from _backup_folders(copy.folder / "backups")
    code, text, _ = copy.run("setup", "localhost", "--replicas")
    if code != 0 or copy.files() != files or copy.env() != env:
        yield "setup: a second run changes something"
    if 'COMPOSE_PROFILES="single"' not in text or "BASE_URL" not in text:
        yield f"setup: a second run does not say which options it ignored: {text}"
    elsewhere = copy.folder.parent / "disk"
    text = (copy.folder / ".env").read_text()
    (copy.folder / ".env").write_text(text.replace("BACKUP_FOLDER=./backups", f"BACKUP_FOLDER={elsewhere}"))
    copy.run("setup", "localhost", "--replicas")
    yield from _backup_folders(elsewhere)
    (copy.folder / ".env").unlink()
    (copy.folder / "secrets/master_key").unlink()
    (copy.folder / "secrets/master_key").symlink_to("nowhere")
    code, text, _ = copy.run("setup", "localhost", "--replicas")
    if code == 0 or "master_key could not be made" not in text or "made .env" in text:
        yield f"setup: exit code {code} where a secret can't be made: {text}"
    (copy.folder / "secrets/master_key").unlink()
    copy.run("setup", "localhost", "--replicas")
    expected = {"BASE_URL": "http://localhost:8080", "PUBLISH_ADDRESS": "127.0.0.1", "ACME_DIRECTORY_URL": "", "EDGES": "2"}
    if not expected.items() <= copy.env().items():
        yield f"setup localhost --replicas: made {copy.env()}"
    (copy.folder / ".env").unlink()
    copy.run("setup", "app.example.com", "sites.example.net", "--behind-proxy", "10.0.0.0/24,fd00::/64")
    expected = {"BASE_URL": "https://app.example.com", "ACME_DIRECTORY_URL": "", "TRUSTED_PROXIES": "10.0.0.0/24,fd00::/64"}
    if not expected.items() <= copy.env().items():
        yield f"setup --behind-proxy: made {copy.env()}"
    (copy.folder / ".env").unlink()
    copy.run("setup", "app.example.com", "sites.example.net", "--no-tls")
    expected = {"BASE_URL": "http://app.example.com", "ACME_DIRECTORY_URL": "", "TRUSTED_PROXIES": "", "ALLOW_PLAIN_HTTP": "true"}
    if not expected.items() <= copy.env().items():
        yield f"setup --no-tls: made {copy.env()}"


def _backup_folders(folder):
    """Users of three containers write into these."""
    modes = {name: stat.S_IMODE((folder / name).stat().st_mode) if (folder / name).is_dir() else 0 for name in ("postgres", "clickhouse", "metrics")}
    if set(modes.values()) != {0o777}:
        yield f"setup: the folders of backups have other modes, or are missing: {modes}"


def setup_refuses(copy):
    for arguments, expected in REFUSED:
        code, text, _ = copy.run("setup", *arguments.split())
        if code != 2 or expected not in text or (copy.folder / "secrets").exists():
            yield f"setup {arguments}: exit code {code}: {text}"


def _replaced(calls):
    return [call.split()[-1] for call in calls if " up " in call]


def upgrade(copy):
    copy.run("setup", "localhost")
    former = copy.env()["VERSION"]
    forward = ["job-runner", "collector", "control-plane", "edge"]
    code, text, calls = copy.run("upgrade", "9.0", UP="fails")
    if code == 0 or copy.env()["VERSION"] != former or len(_replaced(calls)) != 1:
        yield f"upgrade: exit code {code}, goes on although a service does not get healthy: {text}"
    code, text, calls = copy.run("upgrade", "9.0")
    migrated = next((i for i, call in enumerate(calls) if " run " in call and " migrate --actor " in call), 99)
    if code != 0 or _replaced(calls) != forward or copy.env()["VERSION"] != "9.0" or migrated > calls.index(next(call for call in calls if " up " in call)):
        yield f"upgrade: exit code {code}, calls {calls}"
    code, text, calls = copy.run("upgrade", former)
    if code != 2 or calls:
        yield "upgrade: goes back without --back"
    code, text, calls = copy.run("upgrade", "--back", former, IMAGES="exist")
    if code != 0 or _replaced(calls) != forward[::-1] or copy.env()["VERSION"] != former:
        yield f"upgrade --back: exit code {code}, calls {calls}"
    code, text, calls = copy.run("upgrade", "9.0", IMAGES="missing")
    if code == 0 or any(" build" in call for call in calls):
        yield "upgrade: builds this checkout under the name of another version"


def webruntime(copy):
    copy.run("setup", "localhost")
    _, _, calls = copy.run("webruntime", "check")
    if len(calls) != 1 or not re.search(r" migrate --actor \S+@\S+ check $", calls[0]) or "--volume" in calls[0]:
        yield f"webruntime check: calls {calls}"
    _, _, calls = copy.run("webruntime", "check", "--actor", "me")
    if calls[-1].count("--actor") != 1:
        yield f"webruntime: two names of operators: {calls}"
    for arguments, volume in ((["segments", "list"], "segments"), (["--volume", "segments-2", "segments", "ship"], "segments-2")):
        _, _, calls = copy.run("webruntime", *arguments)
        if f"--volume web-runtime_{volume}:/var/lib/webruntime/segments " not in calls[-1]:
            yield f"webruntime {' '.join(arguments)}: without the collector's volume: {calls[-1]}"
    _, _, calls = copy.run("webruntime", "backup", "--full")
    if len(calls) != 1 or not re.search(r" run --rm --no-deps backup --actor \S+@\S+ backup --full $", calls[0]):
        yield f"webruntime backup: calls {calls}"
    _, _, calls = copy.run("webruntime", "restore", "--replace")
    order = [call.split()[-1] for call in calls if re.search(" (stop|up|run) ", call)]
    # The container of the bucket ends: `up --wait` would take that for a failure.
    data = re.search(r"^pg1-path=(.*)$", (copy.folder / "pgbackrest/pgbackrest.conf").read_text(), re.MULTILINE)[1]
    expected = ["edge", "control-plane", "collector", "job-runner", "deletions", "postgres", "seaweedfs", "bucket", data, "files", "postgres", "stores"]
    if order != expected or any(" --wait " in call and " bucket " in call for call in calls):
        yield f"webruntime restore: calls {calls}"
    code, _, calls = copy.run("webruntime", "segments", "list", VOLUMES="missing")
    if code == 0 or any(" run " in call for call in calls):
        yield "webruntime: makes a volume that does not exist"
