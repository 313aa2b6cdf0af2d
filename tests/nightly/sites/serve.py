"""Serves builds: by a plain nginx, and by this system after a deploy of their zip."""

import contextlib
import gzip
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile

import workshop

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import fixture  # noqa: E402

# Read by hosts of static sites at the deploy, and never served.
PARSED = {"_redirects", "_headers"}
COMPRESSED = {".html", ".htm", ".css", ".js", ".mjs", ".json", ".svg", ".xml", ".wasm", ".txt", ".map", ".ttf", ".otf", ".webmanifest"}
# Never published, wherever they lie in a zip.
SECRET = re.compile(r"(^|/)(\.env[^/]*|\.(git|svn|hg|ssh|aws)/.*|\.npmrc|\.htpasswd)$")
# Names that a bundler derived from the content: Vite's eight characters, hexadecimal digests, Next, SvelteKit and Astro.
HASHED_NAME = re.compile(r"[.-](?=[A-Za-z0-9_-]{0,7}[0-9A-Z_])[A-Za-z0-9_-]{8}\.(js|mjs|css|woff2?|png|jpg|svg|webp|wasm)$|[./-][0-9a-f]{8,64}(\.min)?\.[a-z0-9]+$"
                         r"|/_next/static/|/_app/immutable/|/_astro/|^/[0-9a-f]{64}/")
# What the part sends and reads; printed at its start.
API_FIELDS = """POST /api/trial: reads key
POST /api/account/upgrade: sends plan
GET /api/account: reads siteUrl
POST /api/deploy: sends sizeBytes; reads deployId, uploadUrl, uploadHeaders
PUT to uploadUrl: sends the zip
POST /api/deploy/{id}/process: sends spa (for one build); reads stats.filesServed, stats.filesLeftOut, files[].path, files[].reason, errors
a refusal: reads detail, code"""
TYPES = """text/html html htm; text/css css; application/javascript js mjs; application/json json map; image/svg+xml svg; image/png png;
image/x-icon ico; image/webp webp; font/woff2 woff2; font/woff woff; application/wasm wasm; text/plain txt; application/xml xml;
audio/wav wav; application/manifest+json webmanifest;"""


def files_of(folder):
    """Every file of a build by its path, in the order of the paths."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return dict(sorted(found.items()))


@contextlib.contextmanager
def nginx(builds, folders, scratch):
    """Serves every build at NAME.localhost, and with compressed files and `expires` at NAME-compressed.localhost; yields the
    port."""
    port = fixture.free_port()
    servers = []
    for build in builds:
        folder = folders[build.name]
        site = f"root {folder}; index index.html; charset utf-8;"
        if (folder / "404.html").exists() and not build.fallback:
            site += " error_page 404 /404.html;"
        last = f"/{build.fallback}" if build.fallback else "=404"
        site += f" location / {{ try_files $uri $uri.html $uri/ {last}; }}"
        servers.append(f"server {{ listen 127.0.0.1:{port}; server_name {build.name}.localhost; {site} }}")
        if build.bytes_of:
            with_gzip = compressed(folder, scratch / build.name)
            site = site.replace(str(folder), str(with_gzip))
            servers.append(f"server {{ listen 127.0.0.1:{port}; server_name {build.name}-compressed.localhost; gzip_static on; gzip_vary on;"
                           f" expires $hashed_expires; {site} }}")
    user = "user root;" if os.geteuid() == 0 else ""
    (scratch / "nginx.conf").write_text(f"""worker_processes 1; daemon off; pid {scratch}/nginx.pid; error_log {scratch}/error.log; {user}
events {{ worker_connections 1024; }}
http {{ types {{ {TYPES} }} default_type application/octet-stream; access_log off; sendfile on; server_names_hash_bucket_size 128; absolute_redirect off;
  client_body_temp_path {scratch}/t1; proxy_temp_path {scratch}/t2; fastcgi_temp_path {scratch}/t3; uwsgi_temp_path {scratch}/t4; scgi_temp_path {scratch}/t5;
  map $uri $hashed_expires {{ "~{HASHED_NAME.pattern}" max; default -1; }}
  {chr(10).join(servers)}
}}""")
    process = subprocess.Popen([workshop.nginx(), "-p", str(scratch), "-c", str(scratch / "nginx.conf")])
    try:
        for _ in range(200):
            if process.poll() is not None:
                sys.exit(f"nginx ended: {(scratch / 'error.log').read_text()[-800:]}")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).read()
                break
            time.sleep(0.05)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def compressed(folder, target):
    """A copy of a build with a .gz beside every file that compresses."""
    for path, file in files_of(folder).items():
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.symlink_to(file)
        if file.suffix in COMPRESSED:
            data = file.read_bytes()
            packed = gzip.compress(data, 9, mtime=0)
            if len(packed) < len(data):
                copy.with_name(copy.name + ".gz").write_bytes(packed)
    return target


def zip_of(build, folder):
    """The build as its author would zip it; with `wrap`, inside of its project."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in build.beside.items():
            archive.writestr(path, text)
        for path, file in files_of(folder).items():
            archive.write(file, f"{build.wrap}/{path}" if build.wrap else path)
    return packed.getvalue()


class Deployed:
    """A deployed build: its origin, and what the answer of `process` said. `refusal` is set if nothing was published."""

    def __init__(self, build, origin, answer, refusal=None):
        self.wrap, self.origin, self.answer, self.refusal = build.wrap, origin, answer, refusal

    def reason_of(self, path):
        """What the answer says about a file that it left out; None if it says nothing."""
        for one in self.answer.get("files", []):
            if one.get("path") in (path, f"{self.wrap}/{path}"):
                return one.get("reason")
        for text in self.answer.get("errors", []):
            if text.startswith(f"{path} ") or text.startswith(f"{path}:"):
                return text[len(path):].strip()
        return None


def deploy(stack, build, folder):
    """Publishes a build from a new account, by the calls in API_FIELDS."""
    base = stack["base_url"]
    key = fixture.call("POST", f"{base}/api/trial")["key"]
    if build.plan != "free":
        fixture.call("POST", f"{base}/api/account/upgrade", key, {"plan": build.plan})
    # As a site that is meant to be found. A claim by hand needs a browser and an identity provider.
    fixture.query(stack, "update accounts set claimed_at = now() where claimed_at is null")
    origin = fixture.call("GET", f"{base}/api/account", key)["siteUrl"].rstrip("/")
    zipped = zip_of(build, folder)
    try:
        begun = fixture.call("POST", f"{base}/api/deploy", key, {"sizeBytes": len(zipped)})
        request = urllib.request.Request(begun["uploadUrl"], zipped, begun["uploadHeaders"], method="PUT")
        urllib.request.urlopen(request).read()
        process = f"{base}/api/deploy/{begun['deployId']}/process"
        answer = fixture.call("POST", process, key, {"spa": True} if build.spa else {})
        return Deployed(build, origin, answer)
    except urllib.error.HTTPError as error:
        problem = json.loads(error.read() or b"{}")
        said = problem.get("detail") or json.dumps(problem)
        return Deployed(build, origin, {}, f"{error.code} {problem.get('code', '')}: {said}"[:300])
