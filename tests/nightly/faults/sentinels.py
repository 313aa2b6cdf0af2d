"""Redis with a replica and three Sentinels, with the settings of deploy/docs/failover.md."""

import os
import pathlib
import re
import socket
import subprocess

import fixture

from . import packages, patroni, wait

NAME, PASSWORD, SENTINEL_PASSWORD = "webruntime", "password-of-redis", "password-of-sentinels"


class Group:
    """Two servers and three Sentinels, within `with`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / "redis"
        self.folder.mkdir()
        self.servers = {fixture.free_port(): None for _ in range(2)}
        self.sentinels = {fixture.free_port(): None for _ in range(3)}

    @property
    def settings(self):
        """The settings of the services. The host of the URL does not exist: only the Sentinels know the servers."""
        sentinels = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        return ("redis.url=redis://nowhere.invalid:1", f"redis.password={PASSWORD}", f"redis.sentinels={sentinels}", f"redis.master_name={NAME}",
                f"redis.sentinel_password={SENTINEL_PASSWORD}")

    def __enter__(self):
        first, second = self.servers
        for port in self.servers:
            settings = patroni.documented("Redis Sentinel", "redis")
            self.write(port, settings + (f"replicaof 127.0.0.1 {first}\n" if port == second else ""))
            self.start(port)
        for port in self.sentinels:
            settings = patroni.documented("Redis Sentinel", "sentinel")
            self.write(port, re.sub(r"(monitor \S+) \S+ \d+", rf"\1 127.0.0.1 {first}", settings))
            self.sentinels[port] = self.run(port, "--sentinel")
        complete = f"status=ok,address=127.0.0.1:{first},slaves=1,sentinels=3"
        wait.until(lambda: all(complete in self.ask(port, SENTINEL_PASSWORD, "INFO sentinel") for port in self.sentinels), "the Sentinels know each other")
        return self

    def __exit__(self, *_):
        for process in [*self.sentinels.values(), *self.servers.values()]:
            if process and process.poll() is None:
                process.terminate()
                process.wait()

    def write(self, port, settings):
        folder = self.folder / str(port)
        folder.mkdir()
        settings = settings.replace("PASSWORD-OF-SENTINELS", SENTINEL_PASSWORD).replace("PASSWORD-OF-REDIS", PASSWORD)
        (folder / "redis.conf").write_text(f"{settings}\nport {port}\nbind 127.0.0.1\ndir {folder}\n")

    def run(self, port, *options):
        with open(self.folder / f"{port}.log", "a") as log:
            return subprocess.Popen([packages.redis(), self.folder / str(port) / "redis.conf", *options], stdout=log, stderr=log, env=os.environ)

    def start(self, port):
        self.servers[port] = self.run(port)
        wait.until(lambda: wait.accepts(port), "Redis accepts connections")

    def primary(self):
        """The port of the server that is a primary with a replica or alone, as the servers themselves say."""
        found = [port for port, process in self.servers.items() if process.poll() is None and "role:master" in self.ask(port, PASSWORD, "INFO replication")]
        return found[0] if len(found) == 1 else None

    def kill_primary(self):
        port = self.primary()
        self.servers[port].kill()
        self.servers[port].wait()
        return port

    def ask(self, port, password, command):
        """The answer to a command, as text; empty if there is none."""
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2) as server:
                server.sendall(f"AUTH {password}\r\n{command}\r\nQUIT\r\n".encode())
                return b"".join(iter(lambda: server.recv(65536), b"")).decode()
        except OSError:
            return ""
