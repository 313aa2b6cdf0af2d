"""The three stores of an installation, as an operator has them: with backups set up, to be killed and wiped."""

import contextlib
import http.client
import os
import pathlib
import pwd
import secrets
import shutil
import signal
import subprocess
import time

import fixture
from faults import packages, wait

# The first minor version of pgBackRest 2 that knows a version of Postgres.
SUPPORTED_SINCE = {14: 36, 15: 41, 16: 48, 17: 54, 18: 57}


def postgres_user():
    """The user of Postgres, which refuses to run as root, or None if this one is not root."""
    users = {one.pw_name: one for one in pwd.getpwall()}
    return (users.get("postgres") or pwd.getpwuid(65534)) if os.geteuid() == 0 else None


def as_postgres():
    """The words before a command of that user."""
    user = postgres_user()
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"] if user else []


def own(path):
    """Gives a file or folder to the user of Postgres."""
    if user := postgres_user():
        os.chown(path, user.pw_uid, user.pw_gid)


def is_gone(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def kill(*pids):
    """Ends processes as a loss of power does, and waits for their end."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait.until(lambda: all(is_gone(pid) for pid in pids), "killed processes are gone")


def delete_content(folder):
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


class Postgres:
    """A Postgres that archives its log with pgBackRest."""

    def __init__(self, folder, backups):
        self.bin, self.folder, self.port = packages.postgres(), folder / "postgres", fixture.free_port()
        self.data, self.log, self.repository = self.folder / "data", self.folder / "log", backups / "postgres"
        self.pgbackrest = self.folder / "pgbackrest"
        for path in (self.folder, self.repository):
            path.mkdir(parents=True)
            own(path)
        self.write_pgbackrest()
        self.run("initdb", "--pgdata", self.data, "--auth=trust", "--username=postgres", "--locale=C.UTF-8", "--encoding=UTF8", "--data-checksums")
        # As in deploy/compose/compose.yml: before the first backup, which makes the folder, no part of the log is needed.
        archive = f"test ! -d {self.repository}/archive/webruntime || {self.pgbackrest} --stanza=webruntime archive-push %p"
        with open(self.data / "postgresql.conf", "a") as settings:
            settings.write(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{self.folder}'\nmax_connections = 200\n"
                           f"archive_mode = on\narchive_timeout = 60\narchive_command = '{archive}'\n")

    def write_pgbackrest(self):
        """Its settings, and a program of this name that uses them. It compresses nothing, so that what is in a backup can be found."""
        program, environment = packages.program("pgbackrest", "usr/bin/pgbackrest")
        config = self.folder / "pgbackrest.conf"
        variables = " ".join(f"{name}='{value}'" for name, value in {**environment, "PGBACKREST_CONFIG": config}.items())
        config.write_text(f"[global]\nrepo1-path={self.repository}\nlog-path={self.folder}\nlock-path={self.folder}/lock\nlog-level-file=off\n"
                          f"compress-type=none\narchive-timeout=60\ncmd={self.pgbackrest}\n[webruntime]\npg1-path={self.data}\npg1-port={self.port}\n"
                          f"pg1-user=postgres\npg1-socket-path={self.folder}\n")
        self.pgbackrest.write_text(f'#!/bin/sh\n{variables} exec {program} "$@"\n')
        self.pgbackrest.chmod(0o755)
        minor = int(packages.run(self.pgbackrest, "version").strip().rpartition(" 2.")[2].split(".")[0])
        major = int(packages.run(self.bin / "postgres", "--version").split()[2].split(".")[0])
        if minor < SUPPORTED_SINCE.get(major, 1000):
            raise packages.Missing(f"pgBackRest 2.{minor} does not know Postgres {major}")

    @property
    def url(self):
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def start_command(self):
        """What an operator's `systemctl start postgresql` is."""
        return [*as_postgres(), str(self.bin / "pg_ctl"), "start", "--no-wait", "--silent", f"--pgdata={self.data}", f"--log={self.log}"]

    def run(self, program, *arguments):
        packages.run(*as_postgres(), self.bin / program, *arguments, cwd="/")

    def start(self):
        # Without pipes: the server keeps them open.
        subprocess.run(self.start_command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def until_ready(self):
        wait.until(lambda: self.query("select 1", check=False) == "1", "Postgres answers")

    def stop(self):
        self.run("pg_ctl", "stop", "--mode=fast", f"--pgdata={self.data}")

    def kill(self):
        with contextlib.suppress(OSError):
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
            children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
            kill(pid, *map(int, children))

    def wipe(self):
        delete_content(self.data)

    def query(self, sql, check=True):
        command = ["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", self.url]
        done = subprocess.run(command, input=sql, check=check, capture_output=True, text=True)
        return done.stdout.strip()

    def archive(self):
        """Waits until everything that was committed so far is archived."""
        segment = self.query("select pg_walfile_name(pg_switch_wal())")
        wait.until(lambda: self.query("select coalesce(last_archived_wal, '') from pg_stat_archiver") >= segment, "the log is archived")

    def time(self):
        """Now by its clock, between the commits before this call and those after it."""
        time.sleep(0.1)
        now = self.query("""select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""")
        time.sleep(0.1)
        return now


class ClickHouse:
    """ClickHouse over libchdb, by the local runner, with a folder for its backups."""

    USER = "default"

    def __init__(self, program, folder, backups):
        self.folder, self.backups, self.port = folder / "clickhouse", backups / "clickhouse", fixture.free_port()
        self.program, self.library, self.password = program, packages.libchdb(), secrets.token_hex(16)
        self.backups.mkdir()
        self.folder.mkdir()
        (self.folder / "password").write_text(self.password)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        data = self.folder / "data"
        data.mkdir(exist_ok=True)
        command = [self.program, "clickhouse-http", "--lib", self.library, "--data", data, "--listen", f"127.0.0.1:{self.port}",
                   "--user", self.USER, "--password-file", self.folder / "password", "--backups", self.backups]
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=data)
        wait.until(lambda: wait.accepts(self.port) and self.query("select 1") == "1", "ClickHouse answers")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def wipe(self):
        shutil.rmtree(self.folder / "data")

    def query(self, sql):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", "/", sql, {"X-ClickHouse-User": self.USER, "X-ClickHouse-Key": self.password})
        response = connection.getresponse()
        text = response.read().decode()
        if response.status != 200:
            raise RuntimeError(text[:500])
        return text.strip()


class Redis:
    def __init__(self, folder):
        self.folder, self.port = folder / "redis", fixture.free_port()
        self.folder.mkdir()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def start(self):
        command = [packages.redis(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "", "--appendonly", "yes"]
        with open(self.folder.with_suffix(".log"), "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait.until(lambda: wait.accepts(self.port), "Redis accepts connections")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def wipe(self):
        delete_content(self.folder)
