"""Programs of Debian's packages, unpacked once into a cache and run by path. Nothing is installed."""

import os
import pathlib
import shutil
import subprocess
import tempfile

# Patroni and Postgres run as another user, which can't enter root's home.
ROOT_CACHE, USER_CACHE = pathlib.Path("/var/cache/web-runtime"), pathlib.Path.home() / ".cache/web-runtime-ci"
POSTGRES_VERSIONS = range(18, 13, -1)
# The interpreter of Debian's packages.
PYTHON = "/usr/bin/python3"


class Missing(Exception):
    """A program can't be had; the text says why."""


def cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or (ROOT_CACHE if os.getuid() == 0 else USER_CACHE)) / "nightly"


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise Missing(f"{' '.join(map(str, command))}: {done.stdout.strip()[-300:]}")
    return done.stdout


def once(folder, fill):
    """Returns the folder, after `fill` made it unless the cache has it. Only a complete one gets its final name."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = pathlib.Path(scratch) / "made"
            fill(made, pathlib.Path(scratch))
            made.chmod(0o755)
            os.rename(made, folder)
    return folder


def debian(*packages):
    """The root of unpacked packages, and of those of their libraries and Python modules that are not installed."""

    def fill(made, scratch):
        wanted, seen = list(packages), set()
        while wanted:
            name = wanted.pop()
            if name in seen:
                continue
            seen.add(name)
            into = scratch / name
            into.mkdir()
            try:
                run("apt-get", "download", "-q", name, cwd=into)
            except OSError as error:
                raise Missing(f"{name} is a package of Debian: {error}") from error
            archive = next(into.glob("*.deb"))
            run("dpkg", "-x", archive, made)
            depends = [one.split()[0].split(":")[0] for one in run("dpkg-deb", "-f", archive, "Depends").split(",") if one.strip()]
            wanted += [one for one in depends if one.startswith(("lib", "python3-")) and not is_installed(one)]

    return once(cache() / f"debian-{packages[0]}", fill)


def is_installed(package):
    shown = subprocess.run(["dpkg-query", "--show", "--showformat=${Status}", package], capture_output=True, text=True)
    return shown.stdout.endswith(" installed")


def program(package, path):
    """The installed program of that name, or that of Debian's package; with the environment that it needs."""
    installed = shutil.which(pathlib.Path(path).name)
    if installed:
        return installed, {}
    root = debian(package)
    libraries = [str(folder) for folder in (root / "usr/lib").glob("*-linux-gnu*")] + [str(root / "usr/lib")]
    return str(root / path), {"LD_LIBRARY_PATH": ":".join(libraries)}


def postgres():
    """The folder with Postgres' programs. Patroni needs pg_basebackup and pg_rewind, so the sandbox's package won't do."""
    installed = [pathlib.Path(f"/usr/lib/postgresql/{version}/bin") for version in POSTGRES_VERSIONS]
    for folder in installed:
        if all((folder / name).exists() for name in ("postgres", "initdb", "pg_basebackup", "pg_rewind")):
            return folder
    version = next((found for found in POSTGRES_VERSIONS if run("apt-cache", "search", f"^postgresql-{found}$")), None)
    if version is None:
        raise Missing("Postgres with pg_rewind can't be had (on Debian: the package postgresql)")
    return debian(f"postgresql-{version}") / f"usr/lib/postgresql/{version}/bin"


def patroni():
    """The command that runs Patroni, with its environment."""
    root = debian("patroni", "python3-etcd")
    return [PYTHON, str(root / "usr/bin/patroni")], {"PYTHONPATH": str(root / "usr/lib/python3/dist-packages")}


def redis():
    """The Redis that the sandbox uses."""
    found = shutil.which("redis-server") or next((str(path) for path in sorted(ROOT_CACHE.glob("redis-*/redis-server"))), None)
    if found is None:
        caches = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "web-runtime"
        found = next((str(path) for path in sorted(caches.glob("redis-*/redis-server"))), None)
    if found is None:
        raise Missing("no Redis: `cargo run -- up` fetches one")
    return found


def libchdb():
    """The ClickHouse that the sandbox uses."""
    folders = (ROOT_CACHE, pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "web-runtime")
    found = [path for folder in folders for path in sorted(folder.glob("libchdb-*/libchdb.so"))]
    if not found:
        raise Missing("no libchdb: `cargo run -- up` fetches it")
    return found[-1]


def faketime():
    """The library that changes the time of a process."""
    root = debian("libfaketime")
    return next(root.glob("usr/lib/*/faketime/libfaketimeMT.so.1"))
