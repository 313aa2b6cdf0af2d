"""A real Prometheus that scrapes a stack and its exporters each three seconds: an exporter takes one if its store refuses it."""

import contextlib
import json
import subprocess
import time
import urllib.parse
import urllib.request

import fixture

SERVICES = ("edge-server", "control-plane", "collector", "job-runner")


class Prometheus:
    """Answers expressions."""

    def __init__(self, base):
        self.base = base

    def get(self, path, **query):
        return json.load(urllib.request.urlopen(f"{self.base}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=30))["data"]

    def __call__(self, expression):
        return self.get("query", query=expression)["result"]

    def firing(self, **labels):
        """Whether an alert with these labels fires now."""
        return self.active(alertstate="firing", **labels)

    def active(self, **labels):
        """Whether an alert with these labels fires now, or is about to."""
        return bool(self("ALERTS{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"))

    def ever_firing(self):
        """The names of all alerts that fired."""
        found = self('count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[1h]))')
        return sorted(series["metric"]["alertname"] for series in found)


@contextlib.contextmanager
def running(program, stack, exporters, rules, folder):
    """Runs Prometheus with these files of rules. `exporters` are addresses by job."""
    port = fixture.free_port()
    targets = {name: stack["services"][name]["metrics_url"].split("/")[2] for name in SERVICES} | exporters
    jobs = [{"job_name": name, "static_configs": [{"targets": [target]}]} for name, target in targets.items()]
    config = {"global": {"scrape_interval": "3s", "evaluation_interval": "1s"}, "scrape_configs": jobs, "rule_files": [str(rules)]}
    file = folder / "prometheus.json"  # JSON is YAML
    file.write_text(json.dumps(config))
    options = [f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    with open(folder / "prometheus.log", "w") as log:
        process = subprocess.Popen([program, *options], stdout=log, stderr=log)
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{base}/-/ready")
                break
            time.sleep(0.1)
        yield Prometheus(base)
    finally:
        process.terminate()
        process.wait()
