"""Compares the HTML and CSS of both servers after the documented rewriting: the tracker is inserted, and references to
images and fonts lead to content addresses. A content address counts as the same only if the build's file at the original
reference has that SHA-256."""

import functools
import hashlib
import html.parser
import posixpath
import re
import urllib.parse

TRACKER = re.compile(r'<script defer src="/_wr/script\.js" data-site="[a-z0-9_]+"(?: data-ignore-dnt)?></script>', re.IGNORECASE)
CONTENT_ADDRESS = re.compile(r"https?://assets\.localhost(?::\d+)?/([0-9a-f]{64})/[^\s\"'()<>,;]*")
CSS_REFERENCE = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^"'()\s]*))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')""")
REWRITTEN = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg", ".ico", ".bmp", ".woff", ".woff2", ".ttf", ".otf", ".eot"}
REFERENCES = {"src", "href", "poster", "content", "xlink:href", "background", "data-src", "data", "action"}
SETS = {"srcset", "imagesrcset"}


class Site:
    """The files of a build, and where references lead."""

    def __init__(self, files):
        self.files = files

    @functools.lru_cache(maxsize=None)
    def digest(self, path):
        return hashlib.sha256(self.files[path].read_bytes()).hexdigest()

    def reference(self, base, text):
        """The canonical form of one reference in a document at `base`: `{digest}` for an image or font."""
        text = text.strip()
        if found := CONTENT_ADDRESS.fullmatch(text):
            return "{" + found.group(1) + "}"
        path = self.path(base, text)
        if path is None or posixpath.splitext(path)[1].lower() not in REWRITTEN or path not in self.files:
            return text
        return "{" + self.digest(path) + "}"

    @staticmethod
    def path(base, text):
        """The decoded path that a reference leads to on the same site; None for others."""
        try:
            url = urllib.parse.urlsplit(urllib.parse.urljoin(f"http://site{base}", text))
        except ValueError:
            return None
        return urllib.parse.unquote(url.path).lstrip("/") if url.netloc == "site" and url.scheme == "http" else None

    def css(self, base, text):
        def replaced(found):
            target = next(group for group in found.groups() if group is not None)
            kind = "url" if found.group(0).startswith("url") else "import"
            return f"{kind}({self.reference(base, target)})"

        return CSS_REFERENCE.sub(replaced, text)

    def reference_set(self, base, text):
        parts = [part.split() for part in re.split(r",\s+|,(?=\S*://)|,$", text.strip()) if part.strip()]
        return ", ".join(" ".join([self.reference(base, part[0]), *part[1:]]) for part in parts)


class Tokens(html.parser.HTMLParser):
    """The tokens of a page in their canonical form."""

    def __init__(self, site, base):
        super().__init__(convert_charrefs=False)
        self.site, self.base, self.tokens, self.inside, self.has_base = site, base, [], None, False
        self.links = []

    def handle_starttag(self, tag, attributes):
        if tag == "base" and not self.has_base:
            self.has_base = True
            self.base = urllib.parse.urlsplit(urllib.parse.urljoin(f"http://site{self.base}", dict(attributes).get("href") or "")).path
        self.tokens.append(("<", tag, tuple((name, self.value(tag, name, value or "")) for name, value in attributes)))
        self.inside = tag if tag in ("script", "style") else None

    handle_startendtag = handle_starttag

    def value(self, tag, name, value):
        if tag == "link" and name == "integrity":
            # That of the style sheet as it is served. The browser refuses one that does not fit.
            return "(digest)"
        if name in SETS:
            return self.site.reference_set(self.base, value)
        if name == "style":
            return self.site.css(self.base, value)
        if name in REFERENCES:
            self.links.append(urllib.parse.urljoin(f"http://site{self.base}", value.strip()) if parses(value) else "")
            return self.site.reference(self.base, value)
        return value

    def handle_endtag(self, tag):
        self.tokens.append(("</", tag))
        self.inside = None

    def text(self, text):
        # The parser may split a text anywhere.
        if self.tokens and self.tokens[-1][0] == "text":
            text = self.tokens.pop()[1] + text
        self.tokens.append(("text", text))

    def handle_data(self, data):
        self.text(self.site.css(self.base, data) if self.inside == "style" else data)

    def handle_entityref(self, name):
        self.text(f"&{name};")

    def handle_charref(self, name):
        self.text(f"&#{name};")

    def handle_comment(self, data):
        self.tokens.append(("comment", data))

    def handle_decl(self, decl):
        self.tokens.append(("declaration", decl))

    def unknown_decl(self, data):
        self.tokens.append(("declaration", data))

    def handle_pi(self, data):
        self.tokens.append(("instruction", data))


def parses(reference):
    try:
        urllib.parse.urljoin("http://site/", reference.strip())
        return True
    except ValueError:
        return False


def tokens(site, base, text):
    parser = Tokens(site, base)
    parser.feed(text)
    parser.close()
    return parser


def links(site, base, text):
    """The paths, with queries, that a page refers to on its own site."""
    found = []
    for link in tokens(site, base, text).links:
        url = urllib.parse.urlsplit(link)
        if url.scheme == "http" and url.netloc == "site":
            found.append(urllib.parse.quote(urllib.parse.unquote(url.path)))
    return found


def difference(site, base, content_type, theirs, ours):
    """None if both bodies are the same after the rewriting; else where they first differ."""
    if theirs == ours:
        return None
    kind = content_type.split(";")[0].strip()
    if kind not in ("text/html", "text/css"):
        return f"{len(ours)} bytes instead of {len(theirs)}"
    theirs, ours = theirs.decode("utf-8", "replace"), ours.decode("utf-8", "replace")
    if kind == "text/css":
        left, right = [site.css(base, text) for text in (theirs, ours)]
        return None if left == right else first(left, right)
    stripped = TRACKER.sub("", ours, count=1)
    if stripped == theirs:
        return None
    left, right = tokens(site, base, theirs).tokens, tokens(site, base, stripped).tokens
    if left == right:
        return None
    for one, other in zip(left, right):
        if one != other:
            return first(render(one), render(other))
    return f"{len(right)} tokens instead of {len(left)}"


def render(token):
    if token[0] == "<":
        return f"<{token[1]} " + " ".join(f'{name}="{value}"' for name, value in token[2]) + ">"
    return " ".join(token)


def first(left, right):
    at = next((n for n, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))
    begin = max(0, at - 25)
    return f"…{right[begin:at + 60]!r} instead of …{left[begin:at + 60]!r}"
