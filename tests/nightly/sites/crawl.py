"""Requests every address of a build from nginx and from this system, and compares status, target and bytes."""

import collections
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

    def get(self, target, method="GET"):
        for attempt in range(2):
            try:
                self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                self.connection.request(method, target, headers={"Host": self.host, "Accept-Encoding": "identity"})
                response = self.connection.getresponse()
                return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            except (OSError, http.client.HTTPException):
                self.connection = None
                if attempt:
                    raise


class Crawl:
    """What the addresses of a build answered."""

    def __init__(self):
        self.compared, self.lost, self.differing, self.types = 0, {}, {}, {}

    def reasons(self):
        return collections.Counter(reason for reason, _ in self.lost.values())


def candidates(paths):
    """The addresses of these files: each path, each folder with an index, and pages without their extension."""
    found = {}
    for path in paths:
        if path in serve.PARSED:
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
        compare(site, result, address, path, (status, headers, body), ours.get(address), deployed)
    return result


def compare(site, result, address, path, theirs, ours, deployed):
    (status, headers, body), (own_status, own_headers, own_body) = theirs, ours
    if own_status // 100 != status // 100:
        result.lost[address] = (reason(address, path, own_status, own_headers, deployed), f"{own_status} instead of {status}")
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


def reason(address, path, status, headers, deployed):
    """Why an address is lost, as far as the answer of the deploy or the form of the address shows it."""
    said = path and deployed.reason_of(path)
    if said:
        return f"left out: {re.sub(r'[0-9,.]+ (KB|MB|bytes)', 'N KB', said)[:70]}"
    if status // 100 == 3:
        return f"redirected ({status})"
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
