"""The expressions of the dashboards and alerts, and the rules with the short times of a test."""

import json
import pathlib
import re

OBSERVABILITY = pathlib.Path(__file__).resolve().parents[3] / "deploy/observability"
# Expressions with one of these have no value here, and why.
SILENT = {
    "job_runner_certificates_min_left_days": "no certificate is ordered on a local stack",
    "job_runner_job_seconds": "no mail is configured, and nothing is purged",
    "ClickHouseAsyncMetrics_MaxPartCountForPartition": "libchdb lacks the thread that computes it",
    "ClickHouseAsyncMetrics_ReplicasMaxAbsoluteDelay": "libchdb lacks the thread that computes it",
}
# Limits of alerts that wait for minutes, and shorter ones.
SHORTER = {"SegmentsOld": ("> 300", "> 3"), "DeliveriesUnreachable": ("[15m]", "[15s]")}
# Ranges of rates, and how long an alert waits, in a test that lasts a minute or two.
RANGE, FOR = "[15s]", "1s"


def panels():
    """The expressions of the dashboards, with all services and replicas."""
    for path in sorted((OBSERVABILITY / "grafana/dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"] if panel["type"] != "logs" else []:
                filled = target["expr"].replace("$job", ".+").replace("$instance", ".+").replace("$__rate_interval", "1m")
                yield f"{path.stem}, {panel['title']}, {target['legendFormat']}", filled


def alerts():
    """The expressions of the alerts without their limits, in parts that must each have a value."""
    for path in sorted((OBSERVABILITY / "prometheus/rules").glob("*.yml")):
        for name, expression in re.findall(r"- alert: (\w+)\n\s+expr: '(.*)'", path.read_text()):
            for part in re.split(r" unless (?![^()]*\))| or (?=absent)", expression.replace("''", "'")):
                part = re.sub(r"^on \([^)]*\) ", "", part)
                part = re.sub(r" (?:==|>=|>|<) [0-9.]+(?=$|\))", "", part).replace(" < ", " - ")
                yield name, re.sub(r"^absent(_over_time)?\((.*)\)$", lambda match: f"last_over_time({match[2]})" if match[1] else match[2], part)


def short_rules(folder):
    """Writes the rules with short ranges and waits. Everything else is that of the real ones."""
    for path in (OBSERVABILITY / "prometheus/rules").glob("*.yml"):
        text = re.sub(r"(?<=\bfor: )\w+", FOR, path.read_text())
        for alert, (limit, shorter) in SHORTER.items():
            text = re.sub(rf"(- alert: {alert}\n.*?){re.escape(limit)}", lambda match: match[1] + shorter, text, count=1, flags=re.DOTALL)
        (folder / path.name).write_text(re.sub(r"\[(?:5|10|15)m\]", RANGE, text))
    return folder / "*.yml"


def problems(ask, expressions):
    """The expressions without a value, entries of SILENT that have one, and those that no expression has."""
    silent = {metric: [] for metric in SILENT}
    for name, expression in expressions:
        values = [series["value"][1] for series in ask(expression)]
        has_value = any(value != "NaN" for value in values)
        named = [metric for metric in SILENT if metric in expression]
        for metric in named:
            silent[metric].append(has_value)
        if not named and not has_value:
            yield f"{name}: {'only NaN' if values else 'no series'} for {expression}"
    for metric, have_value in silent.items():
        if not have_value:
            yield f"SILENT names {metric}, which no expression has"
        elif all(have_value):
            yield f"SILENT names {metric}, but its expressions have values"
