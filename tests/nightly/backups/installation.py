"""The services by the local runner on stores of our own, and the operator's program with their settings."""

import json
import pathlib
import shutil
import subprocess
import time

import fixture
from faults import load

from . import stores

# The load comes from one address. Purges are soon done.
SETTINGS = ("forms.max_submissions_per_minute=1000000", "forms.max_submissions_per_day=1000000", "collector.events_per_minute=1000000",
            "purge.poll_interval=1s", "purge.retry_interval=2s", "purge.second_pass_after=10s")


class Installation:
    def __init__(self, program, folder):
        self.program, self.folder, self.port = program, folder / "installation", fixture.free_port()
        self.operator, self.backups, self.metrics = pathlib.Path(program).with_name("webruntime"), folder / "backups", folder / "metrics"
        self.metrics.mkdir()
        self.stack = None
        self.postgres = stores.Postgres(folder, self.backups)
        self.clickhouse, self.redis = stores.ClickHouse(program, folder, self.backups), stores.Redis(folder)
        self.stores = (self.postgres, self.clickhouse, self.redis)

    @property
    def base(self):
        return f"http://localhost:{self.port}"

    def settings(self):
        yield f"store.url={self.postgres.url}"
        yield f"redis.url={self.redis.url}"
        yield f"warehouse.url={self.clickhouse.url}"
        yield f"warehouse.password={self.clickhouse.password}"
        yield from SETTINGS

    def up(self):
        """Starts the services, which migrate new stores."""
        more = [part for setting in self.settings() for part in ("--set", setting)]
        subprocess.run([self.program, "up", "--detach", "--processes", "--port", str(self.port), "--dir", self.folder, *more],
                       check=True, cwd=fixture.ROOT, stdout=subprocess.DEVNULL)
        self.stack = json.loads((self.folder / "stack.json").read_text())

    def down(self):
        subprocess.run([self.program, "down", "--dir", self.folder], check=True, cwd=fixture.ROOT, stdout=subprocess.DEVNULL)
        self.stack = None

    def kill(self):
        """Ends the runner; the services end with it."""
        stack = json.loads((self.folder / "stack.json").read_text())
        stores.kill(stack["pid"], *(service["pid"] for service in stack["services"].values()))
        self.stack = None

    def wipe(self):
        """What a lost machine loses. The keys are kept elsewhere, and the collector has a disk of its own."""
        (self.folder / "stack.json").unlink()
        shutil.rmtree(self.folder / "blobs")

    def metric(self, service, name):
        return load.metric(self.stack["services"][service]["metrics_url"].split("/")[2], name)

    def administer(self, *arguments):
        """An operator's command of the local runner."""
        command = [self.program, "admin", "--dir", self.folder, *arguments]
        subprocess.run(command, check=True, cwd=fixture.ROOT, stdout=subprocess.DEVNULL)

    def webruntime(self, *arguments):
        """Runs the operator's program. Returns what it prints, and how long it took."""
        backup = {"folder": self.backups, "metrics_folder": self.metrics,
                  "pgbackrest": json.dumps([*stores.as_postgres(), str(self.postgres.pgbackrest)]),
                  "start_postgres": json.dumps(self.postgres.start_command)}
        # The settings of a service; those of an operator are among them.
        command = [self.operator, "--config", self.folder / "settings/control-plane.toml", *arguments]
        command += [part for name, value in backup.items() for part in ("--set", f"backup.{name}={value}")]
        began = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
        if done.returncode:
            raise RuntimeError(f"webruntime {' '.join(arguments)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout, time.monotonic() - began

    def backup_bytes(self):
        return sum(path.stat().st_size for path in self.backups.rglob("*") if path.is_file() and not path.is_symlink())
