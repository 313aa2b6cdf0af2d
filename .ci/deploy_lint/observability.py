"""Rules for deploy/observability: alerts, their runbooks and tests, and dashboards (after the rules of Grafana's dashboard-linter)."""

import copy
import json
import re
import subprocess
import sys

from . import exporters, runbooks as runbook_commands

METRIC = re.compile(r"\b(?:webruntime|edge|collector|job_runner|control_plane|http_server|pg|redis|node|ClickHouse[A-Za-z]+)_[A-Za-z_]+\b")
NAME = re.compile(r'"((?:webruntime|edge|collector|job_runner|control_plane)_[a-z_]+)"')
# The suffixes of a histogram's series.
SERIES = re.compile(r"_(?:bucket|count|sum)$")
SEVERITIES = {"page", "warn"}


def problems(root, promtool):
    """Every problem of deploy/observability. Without `promtool`, expressions are not parsed and alerts not tested."""
    import yaml  # part of the schemas' packages

    folder, metrics = root / "deploy/observability", declared_metrics(root) | exporters.METRICS
    rules = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((folder / "prometheus/rules").glob("*.yml"))}
    tests = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((folder / "prometheus/tests").glob("*.yml"))}
    runbooks = {path.name: path.read_text() for path in sorted((folder / "runbooks").glob("*.md"))}
    dashboards = {path.name: json.loads(path.read_text()) for path in sorted((folder / "grafana/dashboards").glob("*.json"))}
    for path in folder.glob("**/*.yml"):
        yaml.safe_load(path.read_text())
    jobs = {job["job_name"] for job in yaml.safe_load((folder / "prometheus/prometheus.yml").read_text())["scrape_configs"]}
    yield from alert_problems(rules, tests, runbooks, metrics, jobs)
    yield from unused_metrics(rules, dashboards)
    receivers = {name: yaml.safe_load((folder / name).read_text()) for name in ("alertmanager/alertmanager.yml", "otel-collector/config.yml")}
    yield from inhibition_problems(receivers["alertmanager/alertmanager.yml"], rules)
    yield from pipeline_problems(receivers["otel-collector/config.yml"])
    yield from receiver_rules_that_cannot_fail(*receivers.values(), rules)
    yield from runbook_commands.problems(root, runbooks)
    for name, dashboard in dashboards.items():
        yield from (f"{name}: {problem}" for problem in dashboard_problems(dashboard, metrics))
    written = subprocess.run([sys.executable, folder / "grafana/dashboards.py", "--check"], capture_output=True, text=True)
    if written.returncode != 0:
        yield written.stderr.strip()
    if promtool:
        yield from prometheus_problems(folder / "prometheus", promtool)
    yield from rules_that_cannot_fail(rules, tests, runbooks, dashboards, metrics, jobs)


def declared_metrics(root):
    """The names of all instruments in the sources."""
    files = [path for part in ("*/src", "libs/*/src") for path in root.glob(f"{part}/**/*.rs")]
    names = {name for path in files for name in NAME.findall(path.read_text())}
    return names | {"http_server_request_duration_seconds"}


def unknown_metrics(expression, metrics):
    names = {SERIES.sub("", name) if name not in metrics else name for name in METRIC.findall(expression)}
    return sorted(names - metrics)


def unknown_jobs(expression, jobs):
    """The jobs that a selector names and Prometheus does not scrape."""
    named = {job for value in re.findall(r'\bjob=~?"([^"$]*)"', expression) for job in value.split("|")}
    return sorted(named - jobs)


def unused_metrics(rules, dashboards):
    """Metrics of exporters that no expression has: a list of them would otherwise grow for ever."""
    expressions = [rule["expr"] for _, rule in alerts_of(rules)]
    expressions += [target["expr"] for one in dashboards.values() for panel in one["panels"] for target in panel["targets"]]
    used = {name for expression in expressions for name in METRIC.findall(expression)}
    yield from (f"exporters.py lists {name}, which no expression has" for name in sorted(exporters.METRICS - used))


def inhibition_problems(alertmanager, rules):
    """Alerts that a rule of Alertmanager names must exist: one of another name would silence nothing."""
    names = {rule["alert"] for _, rule in alerts_of(rules)}
    for rule in alertmanager["inhibit_rules"]:
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            for value in re.findall(r'^alertname =~? "(.*)"$', matcher):
                yield from (f"alertmanager.yml names {name}, which is no alert" for name in value.split("|") if name not in names)


def pipeline_problems(collector):
    """memory_limiter must refuse before another processor holds the data."""
    for name, pipeline in collector["service"]["pipelines"].items():
        if pipeline["processors"][0] != "memory_limiter":
            yield f"otel-collector: the pipeline {name} does not begin with memory_limiter"


def receiver_rules_that_cannot_fail(alertmanager, collector, rules):
    alertmanager, collector = copy.deepcopy(alertmanager), copy.deepcopy(collector)
    alertmanager["inhibit_rules"][0]["source_matchers"] = ['alertname =~ "ServiceUnavailable|NoSuch"']
    collector["service"]["pipelines"]["logs"]["processors"].reverse()
    for found in (inhibition_problems(alertmanager, rules), pipeline_problems(collector)):
        if not list(found):
            yield "the rules of Alertmanager or of the collector accept a mistake"


def alerts_of(rules):
    for area, file in rules.items():
        for group in file["groups"]:
            for rule in group["rules"]:
                yield area, rule


def alert_problems(rules, tests, runbooks, metrics, jobs):
    headings = {f"{name}#{heading.lower()}" for name, text in runbooks.items() for heading in re.findall(r"^## (\w+)$", text, re.MULTILINE)}
    linked = set()
    for area, rule in alerts_of(rules):
        name, notes = rule["alert"], rule.get("annotations", {})
        if rule.get("labels", {}).get("severity") not in SEVERITIES:
            yield f"{name} has no severity of {sorted(SEVERITIES)}"
        for note in ("summary", "description"):
            if not notes.get(note, "").strip().endswith("."):
                yield f"{name} has no sentence of {note}"
        if notes.get("runbook") not in headings:
            yield f"{name}: no heading {notes.get('runbook')} in runbooks/"
        linked.add(notes.get("runbook"))
        yield from (f"{name}: nothing measures {metric}" for metric in unknown_metrics(rule["expr"], metrics))
        yield from (f"{name}: prometheus.yml has no job {job}" for job in unknown_jobs(rule["expr"], jobs))
        cases = {case["name"] for case in tests.get(area, {}).get("tests", [])}
        yield from (f"{name}: no test «{name} {case}»" for case in ("fires", "is silent") if f"{name} {case}" not in cases)
    yield from (f"runbooks/{heading} belongs to no alert" for heading in sorted(headings - linked))
    for name, text in runbooks.items():
        for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            if "```console safe\n$ " not in section or "\n1. " not in section:
                yield f"runbooks/{name}#{section.split()[0].lower()} has no safe command or no step"


def dashboard_problems(dashboard, metrics):
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    for name, kind in (("datasource", "datasource"), ("job", "query"), ("instance", "query")):
        if variables.get(name, {}).get("type") != kind:
            yield f"has no variable {name}"
    if dashboard["editable"]:
        yield "is editable"
    if not dashboard["uid"]:
        yield "has no uid"
    taken = set()
    for panel in dashboard["panels"]:
        title = panel["title"]
        yield from (f"{title}: has no {part}" for part in ("title", "description") if not panel.get(part, "").strip())
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        if cells & taken or place["x"] + place["w"] > 24:
            yield f"{title}: overlaps another panel"
        taken |= cells
        if panel["type"] == "logs":
            continue
        if not panel["fieldConfig"]["defaults"].get("unit"):
            yield f"{title}: has no unit"
        for target in panel["targets"]:
            yield from (f"{title}: {problem}" for problem in target_problems(target, metrics))
    numbers = [panel["id"] for panel in dashboard["panels"]]
    if len(numbers) != len(set(numbers)):
        yield "has two panels with one id"


def target_problems(target, metrics):
    expression = target["expr"]
    if target["datasource"]["uid"] != "${datasource}":
        yield "asks a fixed source of data"
    for selector in re.findall(r"[A-Za-z_]+\{([^}]*)\}", expression):
        yield from (f"a selector lacks {label}" for label in ('job=~"$job"', 'instance=~"$instance"') if label not in selector)
    if re.search(r"\b(?:rate|increase)\(", expression) and re.search(r"\[(?!\$__rate_interval)", expression):
        yield "a rate has a fixed interval"
    yield from (f"nothing measures {metric}" for metric in unknown_metrics(expression, metrics))


def prometheus_problems(folder, promtool):
    for arguments in (["check", "config", folder / "prometheus.yml"], ["test", "rules", *sorted((folder / "tests").glob("*.yml"))]):
        done = subprocess.run([promtool, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            yield f"promtool {arguments[0]} {arguments[1]}: {(done.stdout + done.stderr).strip()}"


def rules_that_cannot_fail(rules, tests, runbooks, dashboards, metrics, jobs):
    """Each rule rejects the real files with one mistake."""

    def alert(change):
        changed = copy.deepcopy((rules, tests, runbooks))
        change(*changed)
        return alert_problems(*changed, metrics, jobs)

    def board(change):
        changed = copy.deepcopy(next(iter(dashboards.values())))
        change(changed)
        return dashboard_problems(changed, metrics)

    first = lambda rules: next(alerts_of(rules))[1]
    mistakes = {
        "an unknown severity": alert(lambda rules, *_: first(rules)["labels"].update(severity="urgent")),
        "an alert without a summary": alert(lambda rules, *_: first(rules)["annotations"].pop("summary")),
        "a missing runbook": alert(lambda rules, *_: first(rules)["annotations"].update(runbook="fleet.md#no")),
        "an unknown metric": alert(lambda rules, *_: first(rules).update(expr="edge_no_such_total > 0")),
        "an unknown metric of an exporter": alert(lambda rules, *_: first(rules).update(expr="pg_no_such > 0")),
        "an unknown metric of ClickHouse": alert(lambda rules, *_: first(rules).update(expr="ClickHouseMetrics_NoSuch > 0")),
        "an unknown job": alert(lambda rules, *_: first(rules).update(expr='up{job=~"edge-server|no-such"} == 0')),
        "an alert without a test": alert(lambda _, tests, __: next(iter(tests.values()))["tests"].pop()),
        "a runbook of no alert": alert(lambda _, __, runbooks: runbooks.update({"fleet.md": runbooks["fleet.md"] + "\n## Other\n"})),
        "a panel without a description": board(lambda one: one["panels"][0].update(description="")),
        "a panel without a unit": board(lambda one: one["panels"][0]["fieldConfig"]["defaults"].pop("unit")),
        "overlapping panels": board(lambda one: one["panels"][1].update(gridPos=one["panels"][0]["gridPos"])),
        "two panels with one id": board(lambda one: one["panels"][1].update(id=one["panels"][0]["id"])),
        "an editable dashboard": board(lambda one: one.update(editable=True)),
        "a dashboard without a variable": board(lambda one: one["templating"]["list"].pop()),
        "a fixed interval": board(lambda one: one["panels"][0]["targets"][0].update(expr="rate(up[5m])")),
        "a selector without matchers": board(lambda one: one["panels"][0]["targets"][0].update(expr="up{}")),
        "a selector of ClickHouse without matchers": board(lambda one: one["panels"][0]["targets"][0].update(expr="ClickHouseMetrics_Merge{}")),
        "a fixed source of data": board(lambda one: one["panels"][0]["targets"][0]["datasource"].update(uid="x")),
        "an unknown metric of a panel": board(lambda one: one["panels"][0]["targets"][0].update(expr="edge_no_such_total")),
    }
    yield from (f"the rules accept {mistake}" for mistake, found in mistakes.items() if not list(found))
