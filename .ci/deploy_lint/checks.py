"""All checks of deploy/, in order: each tool, then our own rules, and for both what they must reject."""

import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile

from . import compose, compose_scripts, examples, kubernetes, observability

# deploy/kubernetes/README.md promises it: preStop.sleep works since then.
OLDEST_KUBERNETES = "1.30"


@dataclasses.dataclass
class Tools:
    """The folders with the programs, or None for a tool that can't be had."""

    compose: pathlib.Path | None
    hadolint: pathlib.Path | None
    kubectl: pathlib.Path | None
    schemas: pathlib.Path | None
    promtool: pathlib.Path | None


def all_problems(root, tools):
    """Every problem of deploy/, one line each."""
    yield from (f"compose/{problem}" for problem in compose_scripts.problems(root / "deploy/compose"))
    yield from (f"server.xml: {problem}" for problem in compose.clickhouse_problems((root / "deploy/compose/clickhouse/server.xml").read_text()))
    if tools.hadolint:
        yield from dockerfile_problems(root, tools.hadolint / "hadolint")
    if tools.compose:
        yield from compose_problems(root / "deploy/compose", tools.compose / "docker-compose")
    if tools.kubectl and tools.schemas:
        yield from kubernetes_problems(root / "deploy/kubernetes", tools.kubectl / "kubectl")
    if tools.schemas:
        yield from (f"observability: {problem}" for problem in observability.problems(root, tools.promtool))


def run(*command, **options):
    """Runs a tool. Returns whether it succeeded, and its output or its errors."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    return done.returncode == 0, done.stdout if done.returncode == 0 else (done.stdout + done.stderr).strip()


def dockerfile_problems(root, hadolint):
    """hadolint on the Dockerfile, which may have warnings of no severity."""
    good, output = run(hadolint, "--no-color", "--failure-threshold", "style", root / "deploy/compose/Dockerfile")
    if not good:
        yield f"hadolint: {output}"
    good, _ = run(hadolint, "--failure-threshold", "style", "-", input="FROM debian:latest\nRUN cd /tmp\n")
    if good:
        yield "hadolint accepts a base image without a version"


def compose_problems(folder, program):
    """`docker compose config` and our rules, for each profile, and with the example of an override."""
    text = (folder / "compose.yml").read_text()
    yield from (f"compose.yml {problem}" for problem in compose.text_problems(text))
    overrides = sorted(folder.glob("compose.override*.yml*"))
    for profile, edges in (("single", 1), ("replicas", 2), ("single,observability", 1), ("single,observability,backup", 1)):
        for override in (None, *overrides):
            files = ["--file", "compose.yml", *(["--file", override.name] if override else [])]
            name = f"compose.yml, profile {profile}" + (f", {override.name}" if override else "")
            good, output = resolved(folder, program, files, profile, {"EDGES": str(edges)})
            if not good:
                yield f"{name}: {output}"
                continue
            config = json.loads(output)
            yield from (f"{name}: {problem}" for problem in compose.problems(config, opens_ports=bool(override)))
            if not override:
                yield from examples.compose_rules_that_cannot_fail(config)
    good, _ = resolved(folder, program, ["--file", "compose.yml"], "single", {"VERSION": ""})
    if good:
        yield "docker compose config accepts a missing VERSION"
    yield from examples.compose_text_rules_that_cannot_fail()


def resolved(folder, program, files, profile, environment):
    """`docker compose config` with the values of .env.example, and those of this process only where it needs them."""
    clean = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    values = ["--env-file", ".env.example", *(f"--profile={one}" for one in profile.split(","))]
    command = [program, *values, *files, "config", "--format", "json"]
    return run(*command, cwd=folder, env=clean | environment | {"COMPOSE_PROFILES": profile})


def kubernetes_problems(folder, kubectl):
    """kustomize build, the schemas of Kubernetes, and our rules: for the base and each overlay, with each component too."""
    import yaml  # part of the schemas' packages

    builds = [folder / "base", *sorted((folder / "overlays").iterdir())]
    components = sorted((folder / "components").iterdir())
    base = None
    with tempfile.TemporaryDirectory() as scratch:
        for component in components:
            combined = pathlib.Path(scratch) / component.name
            combined.mkdir()
            paths = {"resources": builds[-1], "components": component}
            relative = {key: [os.path.relpath(path, combined.resolve())] for key, path in paths.items()}
            (combined / "kustomization.yaml").write_text(json.dumps(relative))
            builds.append(combined)
        for build in builds:
            good, output = run(kubectl, "kustomize", build)
            if not good:
                yield f"{build.name}: {output}"
                continue
            resources = list(yaml.safe_load_all(output))
            base = base or resources
            yield from (f"kubernetes/{build.name}: {problem}" for problem in schema_problems(resources))
            yield from (f"kubernetes/{build.name}: {problem}" for problem in kubernetes.problems(resources))
        (pathlib.Path(scratch) / "kustomization.yaml").write_text("resources: [missing.yaml]\n")
        if run(kubectl, "kustomize", scratch)[0]:
            yield "kustomize accepts a missing file"
    if base:
        yield from memory_problems(base, folder.parent / "compose/.env.example")
        misspelt = {**base[0], "spec": {"finalizer": []}}
        if not list(schema_problems([misspelt])):
            yield "the schemas of Kubernetes accept a misspelt field"
        yield from examples.kubernetes_rules_that_cannot_fail(base)
    for problem in examples.script_problems(folder, kubectl):
        yield f"kubernetes/{problem}"


def memory_problems(base, env_file):
    """The limits of memory have one reason each, so they are the same in Kubernetes and in Compose."""
    values = dict(line.split("=", 1) for line in env_file.read_text().splitlines() if "=" in line and not line.startswith("#"))
    names = {"edge-server": "EDGE", "control-plane": "CONTROL_PLANE", "collector": "COLLECTOR", "job-runner": "JOB_RUNNER",
             "migrate": "OPERATOR", "webruntime": "OPERATOR"}
    for resource in base:
        template, name = kubernetes.pod_template(resource), resource["metadata"]["name"]
        if template:
            limit = template["spec"]["containers"][0]["resources"]["limits"]["memory"]
            text = values[f"{names[name]}_MEMORY"]
            if kubernetes.mebibytes(limit) != kubernetes.mebibytes(text.removesuffix("m") + "Mi"):
                yield f"{name}: the limit of memory is {limit} in Kubernetes and {text} in Compose"


def schema_problems(resources):
    """What the schemas of the oldest supported and the newest known Kubernetes refuse, unknown fields included."""
    import kubernetes_validate

    for version in (OLDEST_KUBERNETES, kubernetes_validate.latest_version()):
        for resource in resources:
            try:
                kubernetes_validate.validate(resource, version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
                yield f"{resource['kind']} {resource['metadata']['name']}, {version}: {getattr(error, 'message', error)}"
