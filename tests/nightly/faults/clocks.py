"""Services with clocks of their own, by libfaketime. Only they see other times: the stores and this machine do not."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import urllib.error
import urllib.request

import fixture

from . import packages, wait

SERVICES = ("edge-server", "control-plane", "collector", "job-runner")


@contextlib.contextmanager
def only_stores(program, folder, *settings):
    """A system without its services. Yields what `fixture.system` yields."""
    data = pathlib.Path(folder) / "stack"
    command = [program, "up", "--detached", "--only-stores", "--port", "0", "--dir", data]
    with open(pathlib.Path(folder) / "stack.log", "w") as log:
        process = subprocess.Popen([*command, *[part for one in settings for part in ("--set", one)]], stdout=log, stderr=log)
    try:
        file = data / "stack.json"
        wait.until(file.exists, "the stores run")
        yield json.loads(file.read_text()) | {"runner": [program], "program": program, "settings": settings}
    finally:
        process.terminate()
        process.wait()


class Services:
    """The four services over the stores of a stack that has none, each with a clock that can be changed, within `with`."""

    def __init__(self, stack, folder):
        self.stack, self.folder = stack, pathlib.Path(folder) / "clocks"
        self.folder.mkdir()
        self.processes, self.library = {}, packages.faketime()

    def __enter__(self):
        for name in SERVICES:
            self.set(name, "+0")
            self.start(name)
        for name in SERVICES:
            self.until_ready(name)
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait()

    def set(self, name, offset):
        """Changes the clock of one service: `+1d`, `-1h`, `+5m`."""
        temporary = self.folder / f"{name}.new"
        temporary.write_text(f"{offset}\n")
        os.rename(temporary, self.folder / name)

    def start(self, name):
        environment = {"LD_PRELOAD": str(self.library), "FAKETIME_TIMESTAMP_FILE": str(self.folder / name), "FAKETIME_NO_CACHE": "1",
                       "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        with open(self.folder / f"{name}.log", "a") as log:
            self.processes[name] = subprocess.Popen([self.stack["program"], "service", name, "--dir", pathlib.Path(self.stack["log_dir"]).parent, *self.options()],
                                                    stdout=log, stderr=log, env=os.environ | environment)

    def options(self):
        return [part for setting in self.stack["settings"] for part in ("--set", setting)]

    def ops(self, name):
        return self.stack["services"][name]["metrics_url"].rpartition("/")[0]

    def until_ready(self, name):
        wait.until(lambda: answers(f"{self.ops(name)}/readyz"), f"{name} is ready")

    def panics(self):
        """The lines of the logs that name a panic, and the services that ended."""
        found = [f"{name} ended with {process.poll()}" for name, process in self.processes.items() if process.poll() is not None]
        for name in SERVICES:
            found += [f"{name}: {line[:200]}" for line in (self.folder / f"{name}.log").read_text().splitlines() if re.search(r"panicked|overflow", line)]
        return found


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (OSError, urllib.error.HTTPError):
        return False
