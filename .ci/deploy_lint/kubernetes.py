"""Rules for the manifests that kustomize builds: what the schema permits, and what loses requests, events or secrets."""

import re
import tomllib

from . import settings

SERVICES = settings.SERVICES
APPLY = settings.ROOT / "deploy/kubernetes/apply"
PRIVATE = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8"}
# Beside preStop, listen.drain and listen.drain_timeout: the programs give what ends after the last request 20 s at most.
RESERVE_SECONDS = 25


def problems(resources):
    """What is wrong with the resources of one build, one sentence each."""
    return [*_Build(resources).problems()]


def pod_template(resource):
    """The pod template of a workload, or None."""
    spec = resource.get("spec", {})
    if resource["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return spec.get("template") if resource["kind"] in ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob") else None


def image_is_exact(image):
    """Whether an image names one version: a digest, or a tag with a number that is not `latest`."""
    if "@sha256:" in image:
        return True
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag != "latest" and bool(re.search(r"\d", tag))


def mebibytes(quantity):
    """A quantity of bytes, such as 512Mi, in MiB."""
    number, unit = re.fullmatch(r"(\d+)(Ki|Mi|Gi|)", str(quantity)).groups()
    return int(number) * {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024, "": 1 / 1048576}[unit]


def selects(selector, labels):
    """Whether a label selector matches labels. An empty one matches all."""
    expressions = selector.get("matchExpressions", [])
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(expression["key"]) in expression["values"] for expression in expressions if expression["operator"] == "In"
    )


def _ports(rule):
    """The ports of a rule of a network policy."""
    return {port["port"] for port in rule.get("ports", [])}


class _Build:
    def __init__(self, resources):
        self.resources = resources
        self.workloads = [resource for resource in resources if pod_template(resource)]
        self.configs = {resource["metadata"]["name"]: resource["data"] for resource in self.of("ConfigMap")}

    def of(self, kind):
        return [resource for resource in self.resources if resource["kind"] == kind]

    def pods(self, selector):
        """The workloads with pods that a selector matches."""
        return [workload for workload in self.workloads if selects(selector, pod_template(workload)["metadata"]["labels"])]

    def container_ports(self, workloads):
        """The names and numbers of the ports of pods."""
        containers = [container for workload in workloads for container in pod_template(workload)["spec"]["containers"]]
        ports = [port for container in containers for port in container.get("ports", [])]
        return {port["name"] for port in ports} | {port["containerPort"] for port in ports}

    def problems(self):
        if self.of("Secret"):
            yield "a Secret is part of the build: keys are made once and never in a file of this repository"
        components = set(re.findall(r"[a-z-]+", APPLY.read_text()))
        for resource in self.resources:
            name = f"{resource['kind']} {resource['metadata']['name']}"
            component = resource["metadata"].get("labels", {}).get("app.kubernetes.io/component")
            if component not in components:
                yield f"{name}: the script `apply` knows no component {component}, so it would leave this out"
        for workload in self.workloads:
            name = f"{workload['kind']} {workload['metadata']['name']}"
            checks = [*self.pod(workload)]
            if workload["kind"] not in ("Job", "CronJob"):
                checks += self.service(workload)
            yield from (f"{name}: {problem}" for problem in checks)
        missing = set(SERVICES) - {workload["metadata"]["name"] for workload in self.workloads}
        yield from (f"{name} has no workload" for name in sorted(missing))
        for check in (self.entries, self.policies):
            yield from check()

    def pod(self, workload):
        """What holds for services and jobs alike."""
        pod = pod_template(workload)["spec"]
        security = pod.get("securityContext", {})
        if not security.get("runAsNonRoot") or not security.get("runAsUser"):
            yield "may run as root"
        if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield "has no seccomp profile"
        if pod.get("automountServiceAccountToken") is not False:
            yield "mounts a token of the API server"
        if any("hostPath" in volume for volume in pod.get("volumes", [])) or pod.get("hostNetwork"):
            yield "uses the node's files or network"
        for container in pod.get("initContainers", []) + pod["containers"]:
            yield from self.container(container)
            yield from self.setting_files(pod, container)
            yield from self.sentinels(workload, container)

    def container(self, container):
        if not image_is_exact(container["image"]):
            yield f"the image {container['image']} names no version"
        resources = container.get("resources", {})
        requests, limits = resources.get("requests", {}), resources.get("limits", {})
        if not {"cpu", "memory"} <= requests.keys():
            yield "requests no CPU or no memory"
        if "memory" not in limits:
            yield "has no limit of memory"
        elif mebibytes(limits["memory"]) < mebibytes(requests.get("memory", "0")):
            yield "its limit of memory is less than its request"
        security = container.get("securityContext", {})
        if security.get("readOnlyRootFilesystem") is not True:
            yield "can write to its root file system"
        if security.get("allowPrivilegeEscalation") is not False or security.get("privileged"):
            yield "can gain privileges"
        if security.get("capabilities", {}).get("drop") != ["ALL"] or security["capabilities"].get("add"):
            yield "has capabilities"
        for variable in container.get("env", []):
            if "secretKeyRef" in variable.get("valueFrom", {}):
                yield f"{variable['name']} holds a secret in the environment: mount a file"
        for name, value in self.environment(container).items():
            if settings.SECRET_NAME.search(name) and not name.endswith("_FILE") and value:
                yield f"{name} holds a secret in clear text: mount a file"

    def environment(self, container):
        """The environment variables of a container with those of its ConfigMaps."""
        environment = {variable["name"]: variable.get("value", "") for variable in container.get("env", [])}
        for source in container.get("envFrom", []):
            environment = self.configs.get(source.get("configMapRef", {}).get("name"), {}) | environment
        return environment

    def settings(self, pod, container):
        """The settings of a container by its file and its environment, and what is wrong with them."""
        environment = self.environment(container)
        arguments = container.get("args", [])
        path = arguments[arguments.index("--config") + 1] if "--config" in arguments else ""
        folder, _, file = path.rpartition("/")
        mount = next((mount["name"] for mount in container.get("volumeMounts", []) if mount["mountPath"] == folder), None)
        volume = next((volume for volume in pod.get("volumes", []) if volume["name"] == mount), {})
        sources = [volume, *volume.get("projected", {}).get("sources", [])]
        files = [self.configs.get(source.get("configMap", {}).get("name"), {}) for source in sources]
        text = next((data[file] for data in files if file in data), None)
        program = file.removesuffix(".toml")
        if text is None or program not in settings.PROGRAMS:
            return None, [f"its settings file {path or '(none)'} is in no ConfigMap of the build"]
        return settings.merged(program, tomllib.loads(text), environment)

    def setting_files(self, pod, container):
        """Every setting exists, and each `<setting>_file` below the mount of secrets is a file there."""
        values, wrong = self.settings(pod, container)
        yield from wrong
        if values is None:
            return
        folders = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        files = {
            f"{folders.get(volume['name'])}/{item['path']}"
            for volume in pod["volumes"]
            for source in volume.get("projected", {}).get("sources", [])
            for item in source.get("secret", {}).get("items", [])
        }
        named = {path for path in settings.secret_files(values).values() if path.startswith("/run/secrets/")}
        yield from (f"{path} is a setting and no mounted secret" for path in sorted(named - files))
        yield from (f"{path} is mounted and no setting reads it" for path in sorted(files - named))

    def sentinels(self, workload, container):
        """Redis Sentinel: a name to ask for, and a policy that lets the pod reach each Sentinel."""
        template = pod_template(workload)
        values, _ = self.settings(template["spec"], container)
        redis = (values or {}).get("redis", {})
        policies = [policy["spec"] for policy in self.of("NetworkPolicy") if selects(policy["spec"]["podSelector"], template["metadata"]["labels"])]
        reachable = set().union(*(_ports(rule) for spec in policies for rule in spec.get("egress", [])))
        for sentinel in redis.get("sentinels", []):
            if int(sentinel.rpartition(":")[2]) not in reachable:
                yield f"redis.sentinels has {sentinel}, and no NetworkPolicy allows its port"
        if redis.get("sentinels") and not redis["master_name"]:
            yield "redis.sentinels is set, and redis.master_name is not"

    def service(self, workload):
        """What holds for what runs all the time."""
        template, name = pod_template(workload), workload["metadata"]["name"]
        pod, labels = template["spec"], template["metadata"]["labels"]
        container = pod["containers"][0]
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            if container.get(probe, {}).get("httpGet") != {"path": path, "port": "ops"}:
                yield f"its {probe} does not ask for {path} at the port `ops`"
        if not [budget for budget in self.of("PodDisruptionBudget") if selects(budget["spec"]["selector"], labels)]:
            yield "has no PodDisruptionBudget"
        spread = pod.get("topologySpreadConstraints", [])
        if not spread or not all(selects(constraint["labelSelector"], labels) for constraint in spread):
            yield "its pods are not spread over nodes"
        if workload["kind"] == "Deployment" and workload["spec"].get("strategy", {}).get("rollingUpdate", {}).get("maxUnavailable") != 0:
            yield "an update takes pods away before there are new ones: maxUnavailable must be 0"

        pre_stop = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        has_callers = any(selects({"matchLabels": entry["spec"]["selector"]}, labels) for entry in self.of("Service"))
        if has_callers and not pre_stop:
            yield "has no preStop.sleep, so it would stop while connections still arrive"
        values, _ = self.settings(pod, container)
        if values is None:
            return
        listen = values["listen"]
        for setting, port in (("main", "http"), ("https", "https"), ("ops", "ops")):
            address, _, number = listen.get(setting, "").rpartition(":")
            if address in ("127.0.0.1", "[::1]"):
                yield f"listen.{setting} is reachable from within the pod only"
            elif port in ports and str(ports[port]) != number:
                yield f"listen.{setting} is not the container's port `{port}`"
        least = pre_stop + settings.drain_seconds(values) + RESERVE_SECONDS
        if pod.get("terminationGracePeriodSeconds", 30) < least:
            yield f"its grace period is too short: preStop, listen.drain, listen.drain_timeout and {RESERVE_SECONDS} are {least:.0f} s"
        if name == "collector":
            yield from self.collector(workload, values)
        for setting, host, number in settings.upstreams(values):
            entries = [entry for entry in self.of("Service") if entry["metadata"]["name"] == host]
            if not any(port["port"] == number for entry in entries for port in entry["spec"]["ports"]):
                yield f"upstreams.{setting} names {host}:{number}, which is no Service"
        edges = values.get("http", {}).get("edges")
        if edges not in (None, *self.replicas("edge-server")):
            yield f"http.edges is {edges}, and edge-server has other replicas"

    def replicas(self, name):
        return {workload["spec"].get("replicas", 1) for workload in self.workloads if workload["metadata"]["name"] == name}

    def collector(self, workload, values):
        """Events exist nowhere but on a collector's volume until ClickHouse has them."""
        spec = workload["spec"]
        if workload["kind"] != "StatefulSet" or spec.get("podManagementPolicy") != "Parallel":
            yield "must be a StatefulSet whose pods start in parallel"
        retention = spec.get("persistentVolumeClaimRetentionPolicy", {})
        if set(retention.values()) - {"Retain"}:
            yield "its volumes are deleted with events on them"
        folder = values["segments"]["folder"]
        container = pod_template(workload)["spec"]["containers"][0]
        mount = next((mount["name"] for mount in container["volumeMounts"] if mount["mountPath"] == folder), None)
        claims = [claim for claim in spec.get("volumeClaimTemplates", []) if claim["metadata"]["name"] == mount]
        if not claims:
            yield f"segments.folder, {folder}, is on no volume that stays"
        elif mebibytes(claims[0]["spec"]["resources"]["requests"]["storage"]) * 1048576 < 1.5 * values["segments"]["max_unsent_bytes"]:
            yield "its volume is less than one and a half times segments.max_unsent_bytes"

    def entries(self):
        """Services: each leads somewhere, and only the edge's is reachable from outside."""
        for entry in self.of("Service"):
            name, spec = f"Service {entry['metadata']['name']}", entry["spec"]
            behind = self.pods({"matchLabels": spec["selector"]})
            if not behind:
                yield f"{name}: no pod has its labels"
            if missing := {port["targetPort"] for port in spec["ports"]} - self.container_ports(behind):
                yield f"{name}: no pod has a port {missing.pop()}"
            if spec.get("type", "ClusterIP") != "ClusterIP":
                if entry["metadata"]["name"] != "edge-server":
                    yield f"{name}: only the edge may be reachable from outside"
                elif spec.get("externalTrafficPolicy") != "Local":
                    yield f"{name}: hides the visitors' addresses from the edge: externalTrafficPolicy must be Local"

    def policies(self):
        """Network policies: nothing by default, the edge from anywhere, and no private address as `the internet`."""
        policies = self.of("NetworkPolicy")
        closed = [
            policy for policy in policies
            if policy["spec"]["podSelector"] == {} and set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
            and not policy["spec"].get("ingress") and not policy["spec"].get("egress")
        ]
        if not closed:
            yield "no NetworkPolicy denies all other traffic"
        for policy in policies:
            name, spec = f"NetworkPolicy {policy['metadata']['name']}", policy["spec"]
            selected = self.pods(spec["podSelector"])
            if not selected:
                yield f"{name}: no pod has its labels"
            for rule in spec.get("ingress", []):
                if not rule.get("from") and {workload["metadata"]["name"] for workload in selected} != {"edge-server"}:
                    yield f"{name}: lets everyone reach more than the edge"
            for rule in spec.get("ingress", []):
                if missing := _ports(rule) - self.container_ports(selected):
                    yield f"{name}: no pod has a port {missing.pop()}"
            for rule in spec.get("ingress", []) + spec.get("egress", []):
                for peer in rule.get("from", []) + rule.get("to", []):
                    peers = self.pods(peer["podSelector"]) if "podSelector" in peer else []
                    if "podSelector" in peer and not peers:
                        yield f"{name}: no pod has the labels of a peer"
                    elif peers and "to" in rule and (missing := _ports(rule) - self.container_ports(peers)):
                        yield f"{name}: no peer has a port {missing.pop()}"
                    block = peer.get("ipBlock", {})
                    if block.get("cidr") == "0.0.0.0/0" and not PRIVATE <= set(block.get("except", [])):
                        yield f"{name}: allows private addresses as a part of the internet"
            if any(not rule.get("to") for rule in spec.get("egress", [])):
                callers = {workload["metadata"]["name"] for workload in selected} & {"control-plane", "job-runner"}
                if callers:
                    yield f"{name}: lets {', '.join(sorted(callers))}, which call addresses that users give, reach private ones"
