"""Requests every address of a build from nginx and from this system, and compares status, target and bytes."""

import collections
import gzip
import http.client
import re
import urllib.parse

import canonical
import serve

UNKNOWN = ["/no-such-page-here", "/no-such-folder/page.html"]
MAX_REDIRECTS = 5
MEDIA_TYPES = {"application/javascript": "text/javascript", "application/x-javascript": "text/javascript", "image/vnd.microsoft.icon": "image/x-icon",
               "text/xml": "application/xml", "application/font-woff": "font/woff", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav"}


class Client:
    """Requests over one connection that is kept open."""

    def __init__(self, port, host):
        self.port, self.host, self.connection = port, host, None

    def get(self, target, **headers):
        for attempt in range(2):
            try:
                self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                self.connection.request("GET", target, headers={"Host": self.host, "Accept-Encoding": "identity", **headers})
                response = self.connection.getresponse()
                return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            except (OSError, http.client.HTTPException):
                self.connection = None
                if attempt:
                    raise


class Crawl:
    """What the addresses of a build answered."""

    def __init__(self):
        self.compared, self.lost, self.moved, self.differing, self.types = 0, {}, {}, {}, {}

    def reasons(self):
        return collections.Counter(reason for reason, _ in [*self.lost.values(), *self.moved.values()])


def candidates(paths):
    """The addresses of these files: each path, each folder with an index, and pages without their extension."""
    found = {}
    for path in paths:
        if path in serve.PARSED or serve.SECRET.search(path):
            continue
        found[quote(path)] = path
        if path == "index.html" or path.endswith("/index.html"):
            folder = path[:-len("index.html")]
            found[quote(folder)] = path
            if folder:
                found[quote(folder.rstrip("/"))] = path
        elif path.endswith(".html"):
            found.setdefault(quote(path[:-len(".html")]), path)
        if "+" in path:
            found["/" + urllib.parse.quote(path, safe="/+")] = path
    return found


def quote(path):
    return "/" + urllib.parse.quote(path)


def crawl(build, folder, port, deployed, progress):
    """Compares every address of the build. A refused deploy loses all of them."""
    files = serve.files_of(folder)
    site, result = canonical.Site(files), Crawl()
    origin = urllib.parse.urlsplit(deployed.origin)
    theirs, ours = Client(port, f"{build.name}.localhost"), Client(origin.port, origin.netloc)
    queue = collections.deque(candidates(files).items())
    queue.extend((address, None) for address in UNKNOWN)
    seen = {address for address, _ in queue}
    while queue:
        address, path = queue.popleft()
        status, headers, body = theirs.get(address)
        is_unknown = address in UNKNOWN
        if status >= 400 and not is_unknown:
            continue
        kind = headers.get("content-type", "")
        if status == 200 and kind.startswith("text/html"):
            for link in canonical.links(site, address, body.decode("utf-8", "replace")):
                if link not in seen:
                    seen.add(link)
                    queue.append((link, None))
        result.compared += 1
        if result.compared % 500 == 0:
            progress(f"{build.name}: {result.compared} addresses compared")
        if deployed.refusal:
            result.lost[address] = ("the deploy was refused", deployed.refusal)
            continue
        own = ours.get(address)
        if is_unknown and status == 404 and "404.html" not in files:
            # Both answer with a text of their own.
            body, headers = own[2], own[1]
        compare(site, result, address, path, (status, headers, body), own, deployed)
        if own[0] == 200 and path and address == quote(path):
            check_variants(result, address, own, ours)
    if not deployed.refusal:
        for address, status, wanted in build.expects:
            check_expected(result, address, status, wanted, ours.get(address))
    return result


def check_variants(result, address, own, ours):
    """The compressed body is the same, and so is a range of the plain one."""
    _, headers, body = own
    _, packed_headers, packed = ours.get(address, **{"Accept-Encoding": "gzip"})
    encoding = packed_headers.get("content-encoding")
    if encoding == "gzip":
        packed = gzip.decompress(packed)
    if encoding not in (None, "gzip") or packed != body:
        result.differing[address] = f"with Accept-Encoding: gzip, {encoding} and {len(packed)} bytes instead of {len(body)}"
    if len(body) > 200 and not headers.get("content-type", "").startswith("text/html"):
        status, _, piece = ours.get(address, **{"Range": "bytes=100-199"})
        if status != 206 or piece != body[100:200]:
            result.differing[address] = f"range: {status} and {len(piece)} bytes"


def check_expected(result, address, status, wanted, own):
    """An address where nginx is no measure: a redirect, a header, a secret."""
    result.compared += 1
    if own[0] != status:
        result.lost[address] = ("rule not applied", f"{own[0]} instead of {status}")
    for name, value in wanted.items():
        if own[0] == status and own[1].get(name) != value:
            result.differing[address] = f"{name}: {own[1].get(name)} instead of {value}"


def compare(site, result, address, path, theirs, ours, deployed):
    (status, headers, body), (own_status, own_headers, own_body) = theirs, ours
    if own_status // 100 != status // 100:
        group = result.lost if own_status >= 400 else result.moved
        group[address] = (reason(address, path, own_status, deployed), f"{own_status} instead of {status}")
    elif status // 100 == 3:
        targets = [urllib.parse.urlsplit(urllib.parse.urljoin(f"http://site{address}", one.get("location", ""))).path for one in (headers, own_headers)]
        if targets[0] != targets[1]:
            result.differing[address] = f"redirects to {targets[1]} instead of {targets[0]}"
    else:
        kind, own_kind = [media_type(one.get("content-type", "")) for one in (headers, own_headers)]
        if kind != own_kind and kind != "application/octet-stream":
            result.types[address] = f"{own_kind or 'no type'} instead of {kind}"
        if different := canonical.difference(site, address, kind, body, own_body):
            result.differing[address] = different


def media_type(text):
    kind = text.split(";")[0].strip().lower()
    return MEDIA_TYPES.get(kind, kind)


def reason(address, path, status, deployed):
    """Why an address is lost or moved, as far as the answer of the deploy or the form of the address shows it."""
    said = path and deployed.reason_of(path)
    if said:
        return f"left out: {re.sub(r'[0-9,.]+ (KB|MB|bytes)', 'N KB', said)[:70]}"
    if status < 400:
        return "a redirect instead of the file" if status >= 300 else "the file instead of a redirect"
    if status >= 500:
        return f"server error ({status})"
    name = urllib.parse.unquote(address)
    stem = re.sub(r"(/index)?\.html$", "", name)
    for text, matches in [("non-ASCII name", not name.isascii()), ("`_` in the name", "_" in stem), ("capital in the name", stem != stem.lower()),
                          ("space in the name", " " in stem), ("dot in the name", "." in stem), ("other character in the name", not re.fullmatch(r"[a-z0-9/-]*", stem)),
                          ("address with .html", name.endswith(".html")), ("address with a final slash", name.endswith("/"))]:
        if matches and (path is None or path.endswith((".html", ".htm"))):
            return f"{status}, {text}"
    return f"{status}, page" if path is None or path.endswith(".html") else f"{status}, file"
