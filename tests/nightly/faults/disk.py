"""Small disks that are filled: tmpfs, which needs root."""

import errno
import pathlib
import subprocess
import threading
import time

import fixture

from . import packages, wait

# A page of the file system, so that nothing is left.
PIECE_BYTES = 4096


class SmallDisk:
    """A tmpfs of its own, within `with`."""

    def __init__(self, folder, megabytes, owner=None):
        self.folder, self.megabytes, self.owner = pathlib.Path(folder), megabytes, owner
        self.ballast, self.full, self.filler = self.folder / "ballast", threading.Event(), None

    def __enter__(self):
        self.folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.megabytes}m,mode=0755", "tmpfs", self.folder], check=True)
        if self.owner:
            subprocess.run(["chown", self.owner, self.folder], check=True)
        return self

    def __exit__(self, *_):
        self.full.clear()
        subprocess.run(["umount", "--lazy", self.folder], check=True)

    def fill(self):
        """Fills the disk and keeps it full: what is deleted meanwhile is taken at once."""
        self.full.set()
        self.filler = threading.Thread(target=self.keep_full)
        self.filler.start()

    def keep_full(self):
        with open(self.ballast, "wb", buffering=0) as file:
            while self.full.is_set():
                try:
                    file.write(b"x" * PIECE_BYTES)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    time.sleep(0.02)

    def free(self):
        """What an operator does: deletes something else."""
        self.full.clear()
        self.filler.join()
        self.ballast.unlink()


class Postgres:
    """A Postgres on a small disk. Like a container, it is started again when it ends."""

    USER = "postgres"

    def __init__(self, disk):
        self.disk, self.bin, self.port = disk, packages.postgres(), fixture.free_port()
        self.data, self.process = disk.folder / "data", None
        self.log = open(disk.folder.parent / "postgres.log", "a")

    @property
    def url(self):
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def run(self, *command):
        return subprocess.Popen(list(map(str, command)), stdout=self.log, stderr=self.log, user=self.USER, group=self.USER, extra_groups=[], cwd="/")

    def __enter__(self):
        if self.run(self.bin / "initdb", "--pgdata", self.data, "--auth=trust", "--username=postgres", "--wal-segsize=4", "--locale=C.UTF-8", "--encoding=UTF8").wait():
            raise RuntimeError(f"initdb failed: see {self.log.name}")
        with open(self.data / "postgresql.conf", "a") as settings:
            settings.write("max_wal_size = 32MB\nmin_wal_size = 16MB\nunix_socket_directories = ''\nmax_connections = 200\n")
        self.start()
        wait.until(lambda: self.query("select 1") == "1", "Postgres answers")
        return self

    def start(self):
        self.process = self.run(self.bin / "postgres", "-D", self.data, "-p", self.port, "-h", "127.0.0.1")

    def restart_if_ended(self):
        if self.process.poll() is not None:
            self.start()

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        self.log.close()

    def query(self, sql):
        """Runs a statement; an empty text if Postgres does not answer."""
        command = ["psql", "-qAtX", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-c", sql, "postgres"]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
