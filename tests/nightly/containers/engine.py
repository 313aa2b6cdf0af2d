"""Docker's engine in namespaces of its own.

The part runs itself again below `unshare`, in new network, mount and process namespaces, and starts dockerd there. So
docker0, iptables' chains and the policy of FORWARD are never changed on this machine, published ports exist inside only,
and the kernel ends everything with the first process, however that ends. Images and containers are in memory if there is
enough, in a file system that ends with the namespaces, too; otherwise in a folder of the cache that is deleted afterwards, as
are the empty control groups."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from containers import packages
from containers.packages import Missing

INSIDE = "WEBRUNTIME_NIGHTLY_INSIDE"
STATE = packages.CACHE / "state"
NOFILE = 20_000
# Images, volumes and logs take 3 GB, containers 2 GB.
MEMORY_KB = 10_000_000


def enter():
    """Returns inside new namespaces, in a copy of this process; outside it never returns."""
    if os.environ.get(INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        shutil.rmtree(STATE, ignore_errors=True)
        STATE.mkdir(parents=True)
        available = int(re.search(r"MemAvailable:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1))
        if available > MEMORY_KB:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6g,mode=0755", "nightly", STATE], check=True)
        return
    options = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    process = subprocess.Popen(["unshare", *options, sys.executable, *sys.argv], env=os.environ | {INSIDE: "1"})
    for number in [signal.SIGTERM, signal.SIGINT]:
        # unshare ignores SIGTERM; its end kills the first process inside, and the kernel the others.
        signal.signal(number, lambda *_: process.kill())
    code = process.wait()
    remove_control_groups()
    shutil.rmtree(STATE, ignore_errors=True)
    sys.exit(code)


def reason_against():
    """Why the engine can't run here, or None."""
    if os.geteuid() != 0:
        return "it needs root, for Docker's engine"
    if not shutil.which("unshare") or not shutil.which("ip"):
        return "it needs unshare and ip"
    if "overlay" not in pathlib.Path("/proc/filesystems").read_text():
        return "the kernel has no overlay file system"
    if subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode:
        return "this user may not create namespaces"
    return None


def remove_control_groups():
    """Removes the groups of containers, which are empty, with those of earlier runs."""
    for hierarchy in pathlib.Path("/sys/fs/cgroup").glob("*/web-runtime-nightly"):
        for folder in sorted(hierarchy.rglob("*/"), key=lambda path: -len(path.parts)):
            with contextlib.suppress(OSError):
                folder.rmdir()
        with contextlib.suppress(OSError):
            hierarchy.rmdir()


class Engine:
    """A running dockerd, and its client."""

    def __init__(self):
        folder = packages.engine()
        libraries = folder / "usr/lib/x86_64-linux-gnu"
        path = ":".join(map(str, [folder / "programs", folder / "usr/bin", folder / "usr/sbin", packages.compose() / "bin"]))
        self.environment = os.environ | {"PATH": f"{path}:{os.environ['PATH']}", "DOCKER_HOST": f"unix://{STATE}/socket", "DOCKER_BUILDKIT": "1",
                                         "DOCKER_CONFIG": str(STATE / "client")}
        own = {"LD_LIBRARY_PATH": str(libraries), "XTABLES_LIBDIR": str(libraries / "xtables")}
        limit = {"nofile": {"Name": "nofile", "Soft": NOFILE, "Hard": NOFILE}}
        (STATE / "daemon.json").write_text(json.dumps({
            "data-root": str(STATE / "data"), "exec-root": str(STATE / "exec"), "pidfile": str(STATE / "pid"),
            "hosts": [f"unix://{STATE}/socket"], "default-ulimits": limit, "storage-driver": "overlay2",
            "cgroup-parent": "/web-runtime-nightly",
            # Ports by iptables alone, as clients of other machines get them; the proxy for loopback accepts before it connects.
            "userland-proxy": False}))
        plugins = STATE / "client" / "cli-plugins"
        plugins.mkdir(parents=True)
        (plugins / "docker-compose").symlink_to(packages.compose() / "bin" / "docker-compose")
        self.log = STATE / "dockerd.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(["dockerd", "--config-file", str(STATE / "daemon.json")], env=self.environment | own, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while subprocess.run(["docker", "version"], env=self.environment, capture_output=True).returncode:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Missing(f"dockerd does not start: {self.log.read_text()[-500:]}")
            time.sleep(0.1)

    def docker(self, *arguments, check=True, **options):
        """Runs the client and returns its output."""
        done = subprocess.run(["docker", *map(str, arguments)], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        if check and done.returncode:
            sys.exit(f"docker {' '.join(map(str, arguments))[:200]}: {done.stderr.strip()[-2000:]}")
        return done.stdout.strip()

    def build(self, context, dockerfile, tag, target=None, **arguments):
        options = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
        self.docker("build", "--quiet", "--file", dockerfile, "--tag", tag, *(["--target", target] if target else []), *options, context)

    def size_mb(self, image):
        return int(self.docker("image", "inspect", image, "--format", "{{.Size}}")) / 1e6

    def memory_mb(self, container):
        """The resident memory of each process of a container; pages that processes share are divided among them."""
        for pid in self.docker("top", container, "-eo", "pid").split()[1:]:
            pages = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            yield int(re.search(r"Pss:\s+(\d+)", pages).group(1)) / 1024

    def kill(self, container):
        """Kills the first process of a container. `docker kill` would turn the restart policy off."""
        os.kill(int(self.docker("inspect", container, "--format", "{{.State.Pid}}")), signal.SIGKILL)

    def stop(self):
        """Ends dockerd at once. What it started ends with the namespaces."""
        self.process.kill()
        self.process.wait()
