"""A real Prometheus with the alerts of deploy/observability, in which minutes are seconds."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import threading
import time
import urllib.request

import fixture

from . import packages, wait

RULES = fixture.ROOT / "deploy/observability/prometheus/rules"
RUNBOOKS = fixture.ROOT / "deploy/observability/runbooks"
# How much faster time passes in the rules, and the least interval over which a rate has two samples.
FASTER, MIN_SECONDS = 20, 10
UNITS = {"s": 1, "m": 60, "h": 3600}


def shortened(text):
    """The rules with shorter intervals. Limits stay as they are."""
    seconds = lambda found: int(found[1]) * UNITS[found[2]] // FASTER
    text = re.sub(r"\[(\d+)([smh])\]", lambda found: f"[{max(MIN_SECONDS, seconds(found))}s]", text)
    return re.sub(r"for: (\d+)([smh])", lambda found: f"for: {max(1, seconds(found))}s", text)


class Alerts:
    """Records when each alert fires, within `with`."""

    def __init__(self, targets, folder):
        self.targets, self.folder = targets, pathlib.Path(folder) / "prometheus"
        self.folder.mkdir()
        self.seen, self.ended = {}, threading.Event()
        self.runbooks = {name: runbook for path in RULES.glob("*.yml") for name, runbook in re.findall(r"- alert: (\w+)\n(?:.*\n)*?\s+runbook: (\S+)", path.read_text())}

    def __enter__(self):
        for path in RULES.glob("*.yml"):
            (self.folder / path.name).write_text(shortened(path.read_text()))
        port = fixture.free_port()
        self.base = f"http://127.0.0.1:{port}"
        jobs = [{"job_name": name, "static_configs": [{"targets": [target]}]} for name, target in self.targets.items()]
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": jobs, "rule_files": [f"{self.folder}/*.yml"]}
        (self.folder / "prometheus.json").write_text(json.dumps(config))  # JSON is YAML
        program = shutil.which("prometheus") or packages.debian("prometheus") / "usr/bin/prometheus"
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen([program, f"--config.file={self.folder}/prometheus.json", f"--storage.tsdb.path={self.folder}/data",
                                             f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        wait.until(lambda: wait.accepts(port), "Prometheus accepts connections")
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.process.terminate()
        self.process.wait()

    def firing(self):
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"{self.base}/api/v1/alerts", timeout=5) as answer:
                return {one["labels"]["alertname"] for one in json.load(answer)["data"]["alerts"] if one["state"] == "firing"}
        return set()

    def watch(self):
        while not self.ended.wait(0.5):
            for name in self.firing():
                self.seen.setdefault(name, time.monotonic())

    def forget(self, *names):
        """Waits until none of these fires, and forgets what did."""
        self.until_resolved(*names)
        self.seen.clear()

    def until_fired(self, *names):
        """Waits until one of these alerts has fired; returns its name and its runbook."""
        wait.until(lambda: any(name in self.seen for name in names), f"one of {', '.join(names)} fires; so far: {', '.join(self.seen) or 'none'}")
        name = next(name for name in names if name in self.seen)
        file, anchor = self.runbooks[name].split("#")
        if f"## {name}\n" not in (RUNBOOKS / file).read_text() or anchor != name.lower():
            raise AssertionError(f"{name} has no runbook")
        return name

    def until_resolved(self, *names):
        return wait.until(lambda: not self.firing() & set(names), f"{', '.join(names)} no longer fires")
