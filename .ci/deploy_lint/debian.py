"""Programs of Debian's packages: the installed one, or one that is unpacked into the user's cache and run by its path."""

import os
import pathlib
import shutil
import subprocess
import tempfile

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "web-runtime-ci" / "tools-deploy"


def program(package, name=None):
    """The path of a program, or None if it can't be had."""
    name = name or package
    found, folder = shutil.which(name), CACHE / package
    unpacked = folder / "usr/bin" / name
    if found or unpacked.exists():
        return pathlib.Path(found or unpacked)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        scratch = pathlib.Path(scratch)
        if not shutil.which("apt-get") or subprocess.run(["apt-get", "download", "-q", package], cwd=scratch, capture_output=True).returncode != 0:
            return None
        for archive in scratch.glob("*.deb"):
            subprocess.run(["dpkg", "-x", archive, scratch / "unpacked"], check=True)
        shutil.rmtree(folder, ignore_errors=True)
        (scratch / "unpacked").rename(folder)
    return unpacked if unpacked.exists() else None
