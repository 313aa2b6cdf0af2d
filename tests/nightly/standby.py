#!/usr/bin/env python3
"""Does an export from a standby contain what its reader has just stored, and does it work without the standby?

    tests/nightly/standby.py [PROGRAM]        half a minute; PROGRAM is a local runner that is built already

A local stack with `store.read_url`, and a standby of its Postgres made by pg_basebackup, which replays the log as it comes. A form's
submissions are exported while the standby follows, while it stands still, after it was killed, and after it was promoted.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "bench")]

import fixture  # noqa: E402

NOT_RUN = 77
WAIT_SECONDS = 30


def programs():
    """The folder of Postgres' programs on this machine."""
    # On Debian those on the path are wrappers.
    debian = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pg_basebackup"))
    found = debian[-1] if debian else shutil.which("pg_basebackup")
    return found and pathlib.Path(found).resolve().parent


def until(what, condition):
    until = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < until, f"waited {WAIT_SECONDS} s for {what}"
        time.sleep(0.1)


class Standby:
    """A copy of the stack's Postgres that follows it."""

    def __init__(self, bin, primary_url, port, folder):
        self.bin, self.port, self.data, self.log = bin, port, folder / "data", folder / "log"
        url = urllib.parse.urlsplit(primary_url)
        self.url = primary_url.replace(f":{url.port}/", f":{port}/")
        # Postgres refuses to run as root.
        users = {one.pw_name: one for one in pwd.getpwall()}
        user = users.get("postgres") or pwd.getpwuid(65534)
        self.who = {"user": user.pw_uid, "group": user.pw_gid} if os.geteuid() == 0 else {}
        folder.chmod(0o755)
        if self.who:
            os.chown(folder, user.pw_uid, user.pw_gid)
        source = primary_url.rpartition("/")[0] + "/postgres"
        command = [bin / "pg_basebackup", "--pgdata", self.data, "--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--dbname", source]
        subprocess.run(command, check=True, cwd="/", **self.who)
        shown = subprocess.run(["psql", "-qAt", primary_url], input="show max_connections", check=True, capture_output=True, text=True)
        self.max_connections, self.process = int(shown.stdout), None

    def start(self):
        settings = [f"port={self.port}", f"unix_socket_directories={self.data}", "log_statement=all", "hot_standby=on", "listen_addresses=127.0.0.1",
                    # A standby refuses connections if it permits fewer than the primary.
                    f"max_connections={self.max_connections}"]
        command = [self.bin / "postgres", "-D", self.data, *[part for one in settings for part in ("-c", one)]]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self.who)
        until("the standby", lambda: self.query("select 1", check=False) == "1")

    def kill(self):
        if self.process:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
            self.process = None

    def query(self, sql, check=True):
        done = subprocess.run(["psql", "-qAt", self.url], input=sql, check=check, capture_output=True, text=True)
        return done.stdout.strip()

    def exports(self):
        """How many exports it has run."""
        return self.log.read_text(errors="replace").count("copy (select")


def check(stack, exporter, standby):
    base = stack["base_url"]
    key = fixture.call("POST", f"{base}/api/trial")["key"]
    fixture.call("POST", f"{base}/api/account/upgrade", key, {"plan": "scale"})
    form = fixture.call("POST", f"{base}/api/forms", key, {"name": "Contact", "fields": [{"name": "n", "label": "N", "type": "number"}]})
    stored = []

    def export_after_submission():
        """Submits and exports at once; returns how many exports the standby ran for it, and how long it took."""
        before, began = standby.exports(), time.monotonic()
        stored.append(fixture.call("POST", form["submitUrl"], body={"n": len(stored)})["submissionId"])
        request = urllib.request.Request(f"{exporter}/api/forms/{form['formId']}/export", headers={"authorization": f"Bearer {key}"})
        lines = urllib.request.urlopen(request).read().decode().splitlines()
        found = [line.split(",")[0].strip('"') for line in lines[1:]]
        assert found == stored, f"exported {found}, stored {stored}"
        return standby.exports() - before, time.monotonic() - began

    standby.start()
    # On a busy machine the standby may be late.
    by_standby = lambda: export_after_submission()[0] == 1
    exports = sum(by_standby() for _ in range(20))
    assert exports, "the standby exports"
    print(f"20 exports, {exports} of them by the standby, contain what was submitted just before", flush=True)
    standby.query("select pg_wal_replay_pause()")
    ran, took = export_after_submission()
    assert ran == 0, "a late standby does not export"
    print(f"a standby that stands still: the primary exports, after {took:.1f} s", flush=True)
    standby.query("select pg_wal_replay_resume()")
    until("an export by the standby", by_standby)
    standby.kill()
    ran, took = export_after_submission()
    print(f"without the standby: the primary exports, after {took:.1f} s", flush=True)
    standby.start()
    until("an export by the standby", by_standby)
    standby.query("select pg_promote()")
    until("the promotion", lambda: standby.query("select pg_is_in_recovery()") == "f")
    assert export_after_submission()[0] == 0, "a database of its own does not export"
    print("a promoted standby: the primary exports", flush=True)


def main():
    bin = programs()
    if not bin or not shutil.which("psql"):
        print("pg_basebackup and psql are not installed")
        return NOT_RUN
    port = fixture.free_port()
    with contextlib.ExitStack() as ended:
        folder = pathlib.Path(ended.enter_context(tempfile.TemporaryDirectory(prefix="web-runtime-standby-")))
        stack = ended.enter_context(fixture.system(program=sys.argv[1] if len(sys.argv) > 1 else None))
        standby = Standby(bin, stack["postgres_url"], port, folder)
        ended.callback(standby.kill)
        with control_plane(stack, standby.url) as exporter:
            check(stack, exporter, standby)


@contextlib.contextmanager
def control_plane(stack, read_url):
    """Another control plane of the stack, with the standby."""
    port = fixture.free_port()
    settings = [f"listen.main=127.0.0.1:{port}", f"listen.ops=127.0.0.1:{fixture.free_port()}", f"store.read_url={read_url}"]
    target = fixture.ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    program = stack["program"] or target / fixture.PROFILE / "local"
    command = [program, "service", "control-plane", "--dir", pathlib.Path(stack["log_dir"]).parent]
    process = subprocess.Popen([*command, *[part for one in settings for part in ("--set", one)]])
    try:
        def ready():
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/api/schema").status == 200
        until("the control plane", ready)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
