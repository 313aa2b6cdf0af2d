"""Content that the recipes build sites from: articles, pictures and sounds, the same at every run."""

import random
import struct
import zlib

WORDS = """harbour river valley winter summer morning engine letter garden window bridge market station mountain forest
island copper silver marble timber canvas pencil ladder basket kettle lantern compass anchor meadow orchard pasture
chimney cellar gallery library theatre workshop factory village capital border journey passage captain painter baker
teacher doctor farmer sailor singer writer reader""".split()
# A word that one article alone has, for the search of a site.
RARE_WORD, RARE_ARTICLE = "quetzalcoatlus", 17


class Article:
    """One page of text: a number, a title and paragraphs."""

    def __init__(self, number):
        chance = random.Random(number)
        self.number, self.slug = number, f"article-{number}"
        self.title = f"Article {number}: {chance.choice(WORDS)} and {chance.choice(WORDS)}"
        self.paragraphs = [" ".join(chance.choice(WORDS) for _ in range(60)).capitalize() + "." for _ in range(5)]
        if number == RARE_ARTICLE:
            self.paragraphs.insert(1, f"The {RARE_WORD} had wings of eleven metres.")

    def markdown(self, picture, link):
        """The article as Markdown, with a picture, code, a table, and links to others by `link(number)`."""
        others = "\n".join(f"- [Go to article {n}]({link(n)})" for n in (self.number + 1, self.number + 7) if n <= COUNT)
        code = f"```python\ndef article_{self.number}():\n    return {self.number}\n```"
        table = "| word | length |\n| --- | ---: |\n" + "\n".join(f"| {word} | {len(word)} |" for word in WORDS[:6])
        text = "\n\n".join(self.paragraphs)
        return f"# {self.title}\n\n{text}\n\n![A picture]({picture})\n\n## Code\n\n{code}\n\n## Table\n\n{table}\n\n## Others\n\n{others}\n"


COUNT = 30
ARTICLES = [Article(number) for number in range(1, COUNT + 1)]


def png(seed, width=320, height=180):
    """A PNG of a gradient with some noise."""
    chance = random.Random(seed)
    tint = [chance.randrange(256) for _ in range(3)]
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            rows += bytes((base + x * (k + 1) // 4 + y + (chance.getrandbits(2))) % 256 for k, base in enumerate(tint))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows), 9)) + chunk(b"IEND", b"")


def svg(text):
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 40" width="120" height="40">' \
        f'<rect width="120" height="40" rx="8" fill="#246"/><text x="60" y="26" fill="#fff" font-size="18" text-anchor="middle">{text}</text></svg>'


def wav(seconds=20, rate=8000):
    """A sound that is long enough to be seeked in."""
    samples = bytes(128 + (40 if (n // 20) % 2 else -40) for n in range(seconds * rate))
    format_ = struct.pack("<HHIIHH", 1, 1, rate, rate, 1, 8)
    return b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<I", 16) + format_ \
        + b"data" + struct.pack("<I", len(samples)) + samples


# (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
WASM = bytes.fromhex("0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b")
