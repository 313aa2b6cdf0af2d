"""What each rule must reject. Every example is the real deployment with one mistake, so a rule that looks at nothing is found."""

import copy
import json
import os
import pathlib
import subprocess
import tempfile

from . import compose, kubernetes


class Manifests:
    """A copy of one build in which an example makes its mistake."""

    def __init__(self, resources):
        self.resources = copy.deepcopy(resources)

    def of(self, kind, name):
        return next(
            resource for resource in self.resources
            if resource["kind"] == kind and resource["metadata"]["name"].removesuffix("-pods").startswith(name)
        )

    def pod(self, kind, name):
        return kubernetes.pod_template(self.of(kind, name))["spec"]

    def container(self, kind="Deployment", name="edge-server"):
        return self.pod(kind, name)["containers"][0]

    def config(self, name):
        return self.of("ConfigMap", name)["data"]

    def replace(self, name, old, new):
        """Changes a line of a settings file."""
        data = self.config(name)
        (file,) = data
        assert old in data[file], f"{old} is not in {file}"
        data[file] = data[file].replace(old, new)


def _drop(mapping, key):
    """Removes a key that must be there."""
    del mapping[key]


# A part of the sentence that a rule must give, and the mistake.
MANIFESTS = [
    ("a Secret is part", lambda m: m.resources.append({"kind": "Secret", "metadata": {"name": "keys"}})),
    ("knows no component", lambda m: m.of("NetworkPolicy", "stores")["metadata"].update(labels={})),
    ("may run as root", lambda m: _drop(m.pod("Deployment", "edge-server")["securityContext"], "runAsNonRoot")),
    ("may run as root", lambda m: m.pod("Job", "migrate")["securityContext"].update(runAsUser=0)),
    ("no seccomp profile", lambda m: _drop(m.pod("CronJob", "webruntime")["securityContext"], "seccompProfile")),
    ("token of the API server", lambda m: _drop(m.pod("StatefulSet", "collector"), "automountServiceAccountToken")),
    ("the node's files", lambda m: m.pod("Deployment", "job-runner").update(hostNetwork=True)),
    ("names no version", lambda m: m.container().update(image="registry.example.com:5000/edge-server")),
    ("names no version", lambda m: m.container("Job", "migrate").update(image="web-runtime/webruntime:latest")),
    ("requests no CPU", lambda m: _drop(m.container()["resources"]["requests"], "cpu")),
    ("has no limit of memory", lambda m: _drop(m.container("Job", "migrate")["resources"], "limits")),
    ("less than its request", lambda m: m.container()["resources"]["limits"].update(memory="64Mi")),
    ("write to its root", lambda m: _drop(m.container()["securityContext"], "readOnlyRootFilesystem")),
    ("can gain privileges", lambda m: _drop(m.container()["securityContext"], "allowPrivilegeEscalation")),
    ("has capabilities", lambda m: _drop(m.container()["securityContext"], "capabilities")),
    ("has capabilities", lambda m: m.container()["securityContext"]["capabilities"].update(add=["NET_ADMIN"])),
    ("in the environment", lambda m: m.container().update(env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {}}}])),
    ("in no ConfigMap", lambda m: m.container().update(args=["--config", "/etc/other.toml"])),
    ("unknown setting listen.drained", lambda m: m.replace("edge-server", "drain =", "drained =")),
    ("not of the default's type", lambda m: m.replace("collector", "4294967296", '"4 GiB"')),
    ("unknown setting http.edge", lambda m: m.config("installation").update(WEBRUNTIME_HTTP__EDGE="2")),
    ("no program has a section", lambda m: m.config("installation").update(WEBRUNTIME_HTTPS__EDGES="2")),
    ("is a setting and no mounted secret", lambda m: m.replace("edge-server", "webruntime/edge-token", "webruntime/token")),
    ("in clear text", lambda m: m.config("installation").update(WEBRUNTIME_REDIS__SENTINEL_PASSWORD="hunter2")),
    ("allows its port", lambda m: m.config("installation").update(WEBRUNTIME_REDIS__SENTINELS="redis-1:26379", WEBRUNTIME_REDIS__MASTER_NAME="main")),
    ("redis.master_name is not", lambda m: m.config("installation").update(WEBRUNTIME_REDIS__SENTINELS="redis-1:6379")),
    ("is mounted and no setting reads it", lambda m: m.replace("edge-server", "edge_token_file", "# ")),
    ("its startupProbe", lambda m: _drop(m.container(), "startupProbe")),
    ("its livenessProbe", lambda m: m.container()["livenessProbe"]["httpGet"].update(path="/readyz")),
    ("its readinessProbe", lambda m: m.container("StatefulSet", "collector")["readinessProbe"]["httpGet"].update(port="http")),
    ("no PodDisruptionBudget", lambda m: m.resources.remove(m.of("PodDisruptionBudget", "collector"))),
    ("not spread over nodes", lambda m: _drop(m.pod("Deployment", "job-runner"), "topologySpreadConstraints")),
    ("maxUnavailable must be 0", lambda m: _drop(m.of("Deployment", "control-plane")["spec"], "strategy")),
    ("has no preStop.sleep", lambda m: _drop(m.container("Deployment", "control-plane"), "lifecycle")),
    ("within the pod only", lambda m: m.replace("job-runner", "0.0.0.0:9083", "127.0.0.1:9083")),
    ("is not the container's port", lambda m: m.replace("edge-server", "0.0.0.0:8443", "0.0.0.0:443")),
    ("grace period is too short", lambda m: m.pod("Deployment", "control-plane").update(terminationGracePeriodSeconds=634)),
    ("grace period is too short", lambda m: m.replace("edge-server", 'drain = "5s"', 'drain = "6s"')),
    ("other replicas", lambda m: m.of("Deployment", "edge-server")["spec"].update(replicas=5)),
    ("which is no Service", lambda m: m.replace("edge-server", "//control-plane:8081", "//control-plane:8080")),
    ("start in parallel", lambda m: _drop(m.of("StatefulSet", "collector")["spec"], "podManagementPolicy")),
    ("are deleted with events", lambda m: m.of("StatefulSet", "collector")["spec"]["persistentVolumeClaimRetentionPolicy"].update(whenScaled="Delete")),
    ("no volume that stays", lambda m: _drop(m.of("StatefulSet", "collector")["spec"], "volumeClaimTemplates")),
    ("one and a half times", lambda m: m.replace("collector", "4294967296", "8589934592")),
    ("has no workload", lambda m: m.resources.remove(m.of("Deployment", "job-runner"))),
    ("no pod has its labels", lambda m: m.of("Service", "control-plane")["spec"].update(selector={"app.kubernetes.io/name": "control"})),
    ("no pod has a port", lambda m: m.of("Service", "edge-server")["spec"]["ports"][0].update(targetPort="web")),
    ("only the edge may be reachable", lambda m: m.of("Service", "control-plane")["spec"].update(type="NodePort")),
    ("must be Local", lambda m: _drop(m.of("Service", "edge-server")["spec"], "externalTrafficPolicy")),
    ("denies all other traffic", lambda m: m.of("NetworkPolicy", "default-deny")["spec"].update(egress=[{}])),
    ("no pod has its labels", lambda m: m.of("NetworkPolicy", "edge-server")["spec"].update(podSelector={"matchLabels": {"name": "edge"}})),
    ("labels of a peer", lambda m: m.of("NetworkPolicy", "inner-services")["spec"]["ingress"][0]["from"][0].update(podSelector={"matchLabels": {"name": "edge"}})),
    ("no peer has a port", lambda m: m.of("NetworkPolicy", "edge-server")["spec"]["egress"][0].update(ports=[{"port": 8080}])),
    ("no pod has a port", lambda m: m.of("NetworkPolicy", "monitoring")["spec"]["ingress"][0].update(ports=[{"port": "metrics"}])),
    ("more than the edge", lambda m: _drop(m.of("NetworkPolicy", "inner-services")["spec"]["ingress"][0], "from")),
    ("as a part of the internet", lambda m: _drop(m.of("NetworkPolicy", "internet")["spec"]["egress"][0]["to"][0]["ipBlock"], "except")),
    ("reach private ones", lambda m: _drop(m.of("NetworkPolicy", "stores")["spec"]["egress"][0], "to")),
]


def kubernetes_rules_that_cannot_fail(base):
    """The examples that the rules for manifests accept."""
    for number, (expected, mistake) in enumerate(MANIFESTS, 1):
        example = Manifests(base)
        mistake(example)
        if not any(expected in problem for problem in kubernetes.problems(example.resources)):
            yield f"no rule for manifests rejects example {number}: {expected}"


def _service(key, value=None):
    """Sets a key of a service, or removes it."""
    def change(config, name):
        service = config["services"][name]
        service.update({key: value}) if value is not None else service.pop(key)
    return change


def _setting(name, value):
    return lambda config, service: config["services"][service]["environment"].update({name: value})


def _network(name, value):
    """Sets what a service says about a network."""
    return lambda config, service: config["services"][service]["networks"].update({name: value})


# A part of the sentence that a rule must give, the services to try, of which a profile has one, and the mistake.
COMPOSE = [
    ("names no version", ["postgres"], _service("image", "postgres")),
    ("no limit of memory", ["redis"], _service("mem_limit")),
    ("no restart policy", ["clickhouse"], _service("restart")),
    ("no health check", ["job-runner"], _service("healthcheck")),
    ("start period", ["edge", "edge-1"], lambda config, name: config["services"][name]["healthcheck"].pop("start_period")),
    ("names localhost", ["postgres"], lambda config, name: config["services"][name]["healthcheck"]["test"].append("localhost")),
    ("can gain privileges", ["seaweedfs"], _service("security_opt")),
    ("in the environment", ["postgres"], _setting("POSTGRES_PASSWORD", "postgres")),
    ("has no name", ["redis"], lambda config, name: config["services"][name]["volumes"][0].pop("source")),
    ("past the firewall", ["postgres"], _service("ports", [{"published": "5432", "target": 5432}])),
    ("network of the host", ["collector"], _service("network_mode", "host")),
    ("has a route out", ["clickhouse"], _service("networks", {"inner": None, "outside": None})),
    ("has capabilities", ["control-plane"], _service("cap_drop")),
    ("write to its root", ["collector"], _service("read_only")),
    ("runs as root", ["migrate"], _service("user", "0:0")),
    ("unknown setting", ["collector"], _setting("WEBRUNTIME_SEGMENTS__FOLDERS", "/tmp")),
    ("no secret of the service", ["edge", "edge-1"], _service("secrets", [])),
    ("that no setting reads", ["job-runner"], lambda config, name: config["services"][name]["secrets"].append({"source": "key_pepper"})),
    ("grace period is too short", ["control-plane"], _service("stop_grace_period", "10m20s")),
    ("within the container only", ["collector"], _setting("WEBRUNTIME_LISTEN__MAIN", "127.0.0.1:8082")),
    ("http.edges", ["edge", "edge-1"], _setting("WEBRUNTIME_HTTP__EDGES", "3")),
    ("which is no service", ["edge", "edge-1"], _setting("WEBRUNTIME_UPSTREAMS__COLLECTOR", "http://collectors:8082")),
    ("no volume that stays", ["collector"], _service("volumes", [])),
    ("needs a volume", ["control-plane"], _service("volumes", [])),
    ("builds the same image", ["collector"], lambda config, name: config["services"].update(other={**config["services"][name]})),
    ("pull_policy", ["job-runner"], _service("build")),
    ("maxmemory", ["redis"], _service("mem_limit", "400000000")),
    ("maxmemory", ["redis"], _service("command", ["redis-server"])),
    ("a shell", ["redis"], _service("user")),
    ("belongs at", ["postgres"], lambda config, name: config["services"][name]["volumes"][0].update(target="/var/lib/postgresql/data")),
]


# The same for profile `replicas` alone.
REPLICAS = [
    ("lacks the alias control-plane", ["control-plane-2"], _network("outside", None)),
    ("lacks the alias collector", ["collector-2"], _network("inner", None)),
    ("lacks the alias control-plane", ["control-plane-2"], lambda config, name: config["services"][name]["networks"].pop("outside")),
    ("on several networks", ["haproxy"], _network("outside", None)),
    ("publishes no port", ["haproxy"], lambda config, _: config["networks"]["proxy"].update(internal=True)),
    ("does not trust", ["edge-2"], _setting("WEBRUNTIME_HTTP__TRUSTED_PROXIES", "10.0.0.0/8")),
    ("names no server of edge-2", ["edge-2"], _network("proxy", None)),
    ("has too", ["edge-1"], _network("inner", {"aliases": ["edge-1.proxy"]})),
    ("limit of memory", ["haproxy"], _service("mem_limit", "200000000")),
    ("more open files", ["haproxy"], _service("ulimits", {"nofile": {"hard": 16000}})),
]


def _volumes(target, source):
    """Mounts another source at a target of a service."""
    def change(config, name):
        (volume,) = [volume for volume in config["services"][name]["volumes"] if volume["target"] == target]
        volume["source"] = source
    return change


# The same for profiles `observability` and `backup`.
BACKUPS = [
    ("another folder than that of `backup`", ["postgres"], _volumes("/backups/postgres", "/elsewhere")),
    ("another folder than that of `backup`", ["clickhouse"], _volumes("/backups/clickhouse", "/elsewhere")),
    ("is not that of postgres", ["backup"], _volumes("/var/lib/postgresql", "other")),
    ("no alert on backups", ["node-exporter"], _volumes("/var/lib/node-exporter", "/elsewhere")),
    ("no alert on backups", ["backup"], _setting("WEBRUNTIME_BACKUP__METRICS_FOLDER", "/metrics")),
    ("archive_mode", ["postgres"], _service("command", ["postgres"])),
]


def compose_rules_that_cannot_fail(config):
    """The examples that the rules for the resolved Compose file accept."""
    examples = COMPOSE + (REPLICAS if "haproxy" in config["services"] else []) + (BACKUPS if "backup" in config["services"] else [])
    for number, (expected, names, mistake) in enumerate(examples, 1):
        example = copy.deepcopy(config)
        name = next(name for name in names if name in config["services"])
        mistake(example, name)
        if not any(expected in problem for problem in compose.problems(example)):
            yield f"no rule for Compose rejects example {number}: {expected}"


def compose_text_rules_that_cannot_fail():
    """The examples that the rules for the text of compose.yml accept."""
    for line in ("    image: postgres:18", "      X: ${POSTGRES_PASSWORD:-postgres}", "      X: ${EDGE_TOKEN-example}"):
        if not list(compose.text_problems(line)):
            yield f"no rule for the text of compose.yml rejects {line.strip()}"
    if not list(compose.clickhouse_problems("<background_pool_size>4</background_pool_size>")):
        yield "no rule for server.xml rejects a small background_pool_size"


# Stands in for kubectl: notes each call, answers as a cluster would, and leaves to the real one what needs no cluster.
KUBECTL = """#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$CALLS"
case "$*" in
    *"--local"* | "kustomize "*) exec "$REAL" "$@" ;;
    *"create job"*"--from=cronjob/webruntime"*) cat "$JOB" ;;
    *"create --filename -"*) cat >"$CREATED" ;;
    *"get job"*) printf %s "$CONDITIONS" ;;
    *"get pods"*) printf %s "${PODS:-}" ;;
    *"get secret webruntime-"*) [ "$SECRETS" = exist ] ;;
esac
"""


def script_problems(folder, kubectl):
    """Runs the scripts of deploy/kubernetes with a program in kubectl's place."""
    with tempfile.TemporaryDirectory() as scratch:
        cluster = _Cluster(pathlib.Path(scratch), folder, kubectl)
        calls, code, _ = cluster.run("apply", "production", CONDITIONS="Complete", SECRETS="exist")
        order = [next((i for i, call in enumerate(calls) if call.startswith("apply ") and name in call), -1)
                 for name in ("migrate", "job-runner", "collector", "control-plane", "edge-server")]
        if code != 0 or order != sorted(order) or -1 in order:
            yield f"apply: exit code {code}, calls in this order: {calls}"
        calls, code, _ = cluster.run("apply", "production", CONDITIONS="Failed", SECRETS="exist")
        if code == 0 or any("edge-server" in call for call in calls):
            yield "apply: updates services although the schemas are not migrated"
        calls, code, _ = cluster.run("apply", "production", CONDITIONS="Complete", SECRETS="missing")
        if code == 0 or any(call.startswith("apply ") for call in calls):
            yield "apply: installs without secrets"
        _, code, _ = cluster.run("apply", "missing", CONDITIONS="Complete", SECRETS="exist")
        if code != 2:
            yield "apply: accepts an overlay that does not exist"
        calls, code, created = cluster.run("create-keys", SECRETS="missing")
        keys = [line.partition('"')[2].rstrip('"') for line in created.splitlines() if line.startswith("  ")]
        if code != 0 or len(set(keys)) != 3 or {len(key) for key in keys} != {64} or "immutable: true" not in created:
            yield f"create-keys: exit code {code}, not three immutable keys of 32 random bytes"
        calls, code, created = cluster.run("create-keys", SECRETS="exist")
        if code != 0 or created:
            yield "create-keys: replaces existing keys"
        arguments = ["--volume", "segments-collector-2", "segments", "ship", 'a "b" \\c']
        _, code, created = cluster.run("webruntime", *arguments, CONDITIONS="Complete")
        if code != 0 or "claimName: segments-collector-2" not in created or "emptyDir" in created or r"""a "b" \c""" not in created:
            yield f"webruntime: exit code {code}, made {created or 'no Job'}"
        if "/etc/webruntime/collector.toml" not in created:
            yield "webruntime: ships segments with other settings than their collector's"
        calls, code, _ = cluster.run("apply", "--back", "production", CONDITIONS="Complete", SECRETS="exist")
        services = [call.rpartition("/")[2].split()[0] for call in calls if "rollout status" in call]
        if code != 0 or services != ["edge-server", "control-plane", "collector", "job-runner"]:
            yield f"apply --back: exit code {code}, services in this order: {services}"
        calls, code, _ = cluster.run("apply", "production", CONDITIONS="", SECRETS="exist", PODS='{"waiting":{}}', START_SECONDS="1")
        if code == 0 or any("edge-server" in call for call in calls):
            yield "apply: waits for ever for an image that can't be pulled, or goes on without it"
        _, code, created = cluster.run("webruntime", "check", CONDITIONS="", PODS="", START_SECONDS="1")
        if code != 2:
            yield f"webruntime: exit code {code} where no pod starts"
        _, code, created = cluster.run("webruntime", "segments", "list", CONDITIONS="Complete")
        if code != 2 or created:
            yield "webruntime: lists the segments of no collector"
        calls, code, created = cluster.run("webruntime", "admin", "create-account", "--email", "a@example.com", CONDITIONS="Complete")
        if code != 0 or "create-account" in created or not any("exec job/" in call and "create-account" in call and "--print-key" in call for call in calls):
            yield f"webruntime: prints an account's key into the log of a pod: {created}"
        if not any("--actor " in call for call in calls) or any(" logs " in call for call in calls):
            yield f"webruntime: create-account without the operator's name, or by a log: {calls}"
        _, code, created = cluster.run("webruntime", "check", CONDITIONS="Complete")
        if code != 0 or "--actor" not in created:
            yield f"webruntime: exit code {code}, and no operator's name in {created}"
        _, code, created = cluster.run("webruntime", "check", CONDITIONS="Failed")
        if code == 0 or "emptyDir" not in created or "/etc/webruntime/webruntime.toml" not in created:
            yield f"webruntime: exit code {code} of a command that failed, made {created}"


class _Cluster:
    """A folder with a kubectl that answers from variables."""

    def __init__(self, scratch, folder, kubectl):
        self.scratch, self.folder = scratch, folder
        (scratch / "bin").mkdir()
        (scratch / "bin/kubectl").write_text(KUBECTL)
        (scratch / "bin/kubectl").chmod(0o755)
        import yaml  # part of the schemas' packages

        built = subprocess.run([kubectl, "kustomize", folder / "base"], capture_output=True, text=True, check=True).stdout
        cron_job = next(resource for resource in yaml.safe_load_all(built) if resource["kind"] == "CronJob")
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "webruntime"}, "spec": cron_job["spec"]["jobTemplate"]["spec"]}
        (scratch / "job.json").write_text(json.dumps(job))
        self.environment = {
            "PATH": f"{scratch / 'bin'}:{os.environ['PATH']}", "HOME": str(scratch), "REAL": str(kubectl),
            "CALLS": str(scratch / "calls"), "CREATED": str(scratch / "created"), "JOB": str(scratch / "job.json"),
        }

    def run(self, script, *arguments, **answers):
        """Runs a script. Returns the calls of kubectl, the exit code, and what was created."""
        for name in ("calls", "created"):
            (self.scratch / name).write_text("")
        command = [self.folder / script, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=self.environment | answers)
        return (self.scratch / "calls").read_text().splitlines(), done.returncode, (self.scratch / "created").read_text()
