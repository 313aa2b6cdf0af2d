"""Postgres as Patroni runs it: etcd, two nodes with synchronous replication, and HAProxy that leads to the primary.

The settings are those of deploy/docs/failover.md."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

import fixture

from . import packages, wait

DOCUMENT = fixture.ROOT / "deploy/docs/failover.md"
DATABASE, ROLE, PASSWORD = "webruntime", "webruntime", "password-of-a-test"
# Postgres refuses to run as root.
USER = "postgres"


def documented(heading, language):
    """The first block of code of that language below a heading of the document."""
    section = DOCUMENT.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.search(rf"```{language}\n(.*?)```", section, re.DOTALL).group(1)


class Node:
    """One Patroni with its Postgres."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.port, self.api = fixture.free_port(), fixture.free_port()
        self.data = cluster.folder / f"data-{name}"
        self.file = cluster.folder / f"{name}.json"  # JSON is YAML
        self.process = None
        sockets = cluster.folder / "sockets"
        sockets.mkdir(exist_ok=True)
        login = lambda name: {"username": name, "password": PASSWORD}
        settings = json.loads(documented("Patroni", "json"))
        settings |= {
            "name": name,
            "etcd3": {"hosts": f"127.0.0.1:{cluster.etcd_port}"},
            "restapi": {"listen": f"127.0.0.1:{self.api}", "connect_address": f"127.0.0.1:{self.api}"},
        }
        settings["bootstrap"]["pg_hba"] = ["local all all trust", "host all all 127.0.0.1/32 scram-sha-256", "host replication all 127.0.0.1/32 scram-sha-256"]
        settings["postgresql"] |= {
            "listen": f"127.0.0.1:{self.port}",
            "connect_address": f"127.0.0.1:{self.port}",
            "data_dir": str(self.data),
            "bin_dir": str(cluster.bin),
            "pgpass": str(cluster.folder / f"pgpass-{name}"),
            "authentication": {"superuser": login("postgres"), "replication": login("replicator"), "rewind": login("rewinder")},
        }
        settings["postgresql"]["parameters"]["unix_socket_directories"] = str(sockets)
        self.file.write_text(json.dumps(settings))

    def start(self):
        command, environment = packages.patroni()
        with open(self.cluster.folder / f"{self.name}.log", "a") as log:
            options = {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
            self.process = subprocess.Popen([*command, self.file], stdout=log, stderr=log, env=os.environ | environment, cwd=self.cluster.folder,
                                            start_new_session=True, **options)

    def postgres(self):
        return int((self.data / "postmaster.pid").read_text().splitlines()[0])

    def kill_postgres(self):
        """As the kernel does when memory is short."""
        kill_with_children(self.postgres())

    def kill(self):
        """As a machine that loses its power."""
        postgres = self.postgres()
        self.process.kill()
        kill_with_children(postgres)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def state(self):
        """What Patroni says: its role and whether it replicates."""
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.api}/patroni", timeout=2) as answer:
                return json.load(answer)
        return {}


def kill_with_children(pid):
    """Kills Postgres and its backends at once, so that none writes on."""
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    for one in [pid, *map(int, children)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


class Cluster:
    """Both nodes, etcd and HAProxy, within `with`."""

    def __init__(self, folder):
        self.folder, self.bin = pathlib.Path(folder) / "patroni", packages.postgres()
        self.folder.mkdir()
        self.etcd_port, self.port = fixture.free_port(), fixture.free_port()
        self.processes = []
        if os.getuid() == 0:
            subprocess.run(["chown", USER, self.folder], check=True)
            pathlib.Path(folder).chmod(0o755)
        self.nodes = [Node(self, name) for name in ("one", "two")]
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", USER, self.folder], check=True)

    @property
    def url(self):
        return f"postgres://{ROLE}:{PASSWORD}@127.0.0.1:{self.port}/{DATABASE}"

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.stop()
        for process in reversed(self.processes):
            process.terminate()
            process.wait()

    def run(self, package, path, *arguments):
        program, environment = packages.program(package, path)
        with open(self.folder / f"{package}.log", "w") as log:
            self.processes.append(subprocess.Popen([program, *map(str, arguments)], stdout=log, stderr=log, env=os.environ | environment))

    def start(self):
        peer = fixture.free_port()
        client = f"http://127.0.0.1:{self.etcd_port}"
        self.run("etcd-server", "usr/bin/etcd", "--data-dir", self.folder / "etcd", "--listen-client-urls", client, "--advertise-client-urls", client,
                 "--listen-peer-urls", f"http://127.0.0.1:{peer}")
        wait.until(lambda: wait.accepts(self.etcd_port), "etcd accepts connections")
        self.nodes[0].start()
        wait.until(lambda: self.nodes[0].state().get("role") in ("master", "primary") and self.nodes[0].state().get("state") == "running", "the first node is the primary")
        self.query(self.nodes[0], f"create role {ROLE} login password '{PASSWORD}'", database="postgres")
        self.query(self.nodes[0], f"create database {DATABASE} owner {ROLE}", database="postgres")
        self.nodes[1].start()
        self.write_haproxy()
        self.run("haproxy", "usr/sbin/haproxy", "-db", "-f", self.folder / "haproxy.cfg")
        self.until_synchronous()
        wait.until(lambda: wait.accepts(self.port), "HAProxy accepts connections")

    def write_haproxy(self):
        servers = "\n".join(f"    server {node.name} 127.0.0.1:{node.port} check port {node.api}" for node in self.nodes)
        text = re.sub(r"^ +server .*\n", "", documented("HAProxy", "haproxy"), flags=re.MULTILINE)
        text = re.sub(r"bind \S+", f"bind 127.0.0.1:{self.port}", text)
        (self.folder / "haproxy.cfg").write_text(f"{text.rstrip()}\n{servers}\n")

    def primary(self):
        """The node that is the primary, once exactly one says so."""
        found = []

        def is_one():
            found[:] = [node for node in self.nodes if node.state().get("role") in ("master", "primary")]
            return len(found) == 1

        wait.until(is_one, "there is one primary")
        return found[0]

    def until_synchronous(self):
        """Waits until a commit waits for the standby: only then is a failover without loss."""
        wait.until(lambda: self.query(self.primary(), "select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')").strip() == "1",
                   "the standby is synchronous")

    def query(self, node, sql, database=DATABASE):
        """Runs a statement as the superuser; an empty text if the node does not answer."""
        command = [self.bin / "psql", "-qAtX", "-h", self.folder / "sockets", "-p", str(node.port), "-U", "postgres", "-c", sql, database]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
