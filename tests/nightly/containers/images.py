"""Builds the images: the product's from binaries that exist, the stores' from packages."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from containers import packages
from containers.engine import STATE

ROOT = pathlib.Path(__file__).resolve().parents[3]
HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ["edge-server", "control-plane", "collector", "job-runner", "webruntime"]
CRATES = ["edge-server", "control-plane", "collector", "job-runner", "operator"]
STORES = ["postgres", "redis", "clickhouse", "seaweedfs", "haproxy"]
PREFIX = "web-runtime-nightly"


def build_binaries(folder):
    """Builds the five programs of a checkout in release mode; returns the folder with them."""
    print(f"building the programs of {folder}", flush=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", folder / "target")) if folder == ROOT else folder / "target"
    command = ["cargo", "build", "--release", "--locked", *[part for name in CRATES for part in ("-p", name)]]
    subprocess.run(command, cwd=folder, check=True, env=os.environ | {"SQLX_OFFLINE": "true", "CARGO_TARGET_DIR": str(target)})
    return target / "release"


def baseline_binaries(tag):
    """Builds the programs of a tag in a worktree. None if there is no such tag."""
    if subprocess.run(["git", "rev-parse", "--verify", "--quiet", f"{tag}^{{commit}}"], cwd=ROOT, stdout=subprocess.DEVNULL).returncode:
        return None
    folder = ROOT / "target" / "nightly" / tag
    if not folder.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(folder), tag], cwd=ROOT, check=True)
    return build_binaries(folder)


def add_bases(engine):
    for name in packages.BASES:
        engine.docker("import", packages.bases() / f"{name}.tar", f"{PREFIX}/debian:{name}")


def add_stores(engine):
    """Builds the stores' images, one after another: they share the context."""
    with tempfile.TemporaryDirectory(dir=packages.CACHE) as context:
        context = pathlib.Path(context)
        # Links, because the library alone has 500 MB.
        shutil.copytree(packages.stores(), context, symlinks=True, dirs_exist_ok=True, copy_function=os.link)
        (context / "seaweedfs").mkdir()
        os.link(packages.seaweedfs() / "bin" / "weed", context / "seaweedfs" / "weed")
        os.link(packages.engine() / "usr/bin/tini-static", context / "clickhouse" / "tini")
        for name in ["postgres.sh", "seaweedfs.sh", "clickhouse.sh", "clickhouse_client.sh", "clickhouse.xml", "clickhouse_users.xml"]:
            shutil.copy(HERE / name, context)
        for name in STORES:
            engine.build(context, HERE / "stores.Dockerfile", f"{PREFIX}/{name}:test", target=name)
    # Without pgBackRest: Debian's does not know this version of Postgres, and the part `backup` tests backups.
    engine.docker("tag", f"{PREFIX}/postgres:test", "web-runtime/postgres:test")
    # The copy of the context.
    engine.docker("builder", "prune", "--force")


def add_programs(engine, binaries, version):
    """Builds the product's images from a folder with its programs, stripped of symbols as the Dockerfile does it."""
    with tempfile.TemporaryDirectory(dir=STATE) as context:
        for name in PROGRAMS:
            subprocess.run(["strip", "-o", f"{context}/{name}", binaries / name], check=True)
        path = f"{packages.cyclonedx() / 'bin'}:{os.environ['PATH']}"
        subprocess.run([ROOT / "deploy/compose/sbom", context], check=True, env=os.environ | {"PATH": path, "CARGO_NET_OFFLINE": "true"})
        revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        for name in PROGRAMS:
            engine.build(context, ROOT / "deploy/compose/Dockerfile", f"web-runtime/{name}:{version}", BASE=f"{PREFIX}/debian:debian",
                         BINARIES="prebuilt", BIN=name, VERSION=version, REVISION=revision)
    engine.docker("builder", "prune", "--force")


def installation(folder, version, *options):
    """Copies deploy/compose to a folder and sets it up with the images made here."""
    shutil.copytree(ROOT / "deploy/compose", folder, ignore=shutil.ignore_patterns("backups", "secrets", ".env"))
    made = []
    for _ in range(2):
        subprocess.run([folder / "setup", "localhost", *options], check=True, stdout=subprocess.DEVNULL)
        made.append({path.name: path.read_text() for path in [*(folder / "secrets").iterdir(), folder / ".env"]})
    if made[0] != made[1]:
        sys.exit("setup changed what it had made before")
    settings = (folder / ".env").read_text()
    values = {f"{name.upper()}_IMAGE": f"{PREFIX}/{name}:test" for name in STORES} | {"VERSION": version, "EDGE_NOFILE": "20000",
                                                                                   "POSTGRES_BUILD": "test", "ARCHIVE_MODE": "off",
                                                                                   "CLICKHOUSE_NOFILE": "20000"}
    for name, value in values.items():
        settings, count = re.subn(f"^{name}=.*$", f"{name}={value}", settings, flags=re.MULTILINE)
        if count != 1:
            sys.exit(f"{name} is not in .env")
    (folder / ".env").write_text(settings)
    shutil.copy(HERE / "compose.override.yml", folder)
