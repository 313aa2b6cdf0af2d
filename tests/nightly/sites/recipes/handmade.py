"""A site made by hand, of what generators rarely write: names of every kind, `<base>`, import maps, wasm, workers, ranges."""

import json
import urllib.parse

import content
from workshop import Build

HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
NAMES = ["plain.html", "Capital.html", "UPPER/Case Page.html", "under_score.html", "_private/_page.html", "with space.html", "a+b.html", "v1.2.html",
         "docs/v1.2/index.html", "日本語.html", "größe/straße.html", "emoji-🚢.html", "100%.html", "quote's.html", "a&b.html", "tilde~x.html",
         "(round).html", "comma,semi;.html", "at@sign.html", "x.html", "x/index.html", "only-folder/index.html", "a-b.html", "a_b.html", "A-B.html",
         "deep/er/and/deeper/index.html", "deep/er/page.html", "trailing-.html", "dot.dot.dot.html", "x.htm", "single/a.html", "1.html", "-.html",
         "hash%23like.html", "equals=x.html", "$dollar.html", "!bang.html", "[bracket].html", ".dotfile.html", "en/index.html", "de/index.html"]
FILES = ["files/plain.txt", "files/_under.txt", "files/With Space.txt", "files/ü+ö.txt", "files/no-extension", "files/.hidden", "files/archive.tar.gz",
         "files/data.JSON", ".well-known/security.txt", "files/日本.txt", "LICENSE", "robots.txt", "humans.txt"]


def handmade(shop):
    shop.npm("@fontsource/inter@5.3.0")
    shop.run("mkdir", "-p", "site/fonts")
    shop.run("cp", "node_modules/@fontsource/inter/files/inter-latin-400-normal.woff2", "site/fonts/Inter Regular.woff2")
    shop.run("cp", "node_modules/@fontsource/inter/files/inter-latin-400-normal.woff", "site/fonts/inter.woff")
    shop.write("site/css/site.css", "@import 'more.css';@font-face{font-family:Inter;src:url('../fonts/Inter Regular.woff2') format('woff2'),url(../fonts/inter.woff)}"
               "body{font-family:Inter;max-width:50em;margin:auto;background:url('../img/paper_1.png')}")
    shop.write("site/css/more.css", "h1{background:no-repeat right url(\"../img/Größe.svg\")}")
    shop.write("site/img/paper_1.png", content.png(1, 60, 60))
    shop.write("site/img/Größe.svg", content.svg("Größe"))
    shop.write("site/img/sprite.svg", '<svg xmlns="http://www.w3.org/2000/svg"><symbol id="dot" viewBox="0 0 9 9"><circle cx="4" cy="4" r="4"/></symbol></svg>')
    shop.write("site/img/picture@2x.png", content.png(2))
    links = "".join(f'<li><a href="/{urllib.parse.quote(name)}">{name.replace("&", "&amp;")}</a>' for name in NAMES)
    shop.write("site/index.html", HEAD.format(title="Names") + '<link rel="stylesheet" href="css/site.css"></head><body><h1>Names</h1>'
               '<input id="search" placeholder="Search"><div id="found"></div>'
               '<img src="img/picture@2x.png" srcset="img/paper_1.png 60w, img/picture@2x.png 320w" sizes="320px" alt="">'
               '<svg width="9" height="9"><use href="img/sprite.svg#dot"/></svg>'
               f'<p><a id="technology" href="technology/">Technology</a> <a href="base.html">Base</a></p><ul>{links}</ul><script src="js/search.js"></script></body></html>')
    for name in NAMES:
        shop.write(f"site/{name}", HEAD.format(title="Page") + f'<link rel="stylesheet" href="/css/site.css"></head><body><h1>{name.replace("&", "&amp;")}</h1>'
                   '<p><a href="/">Start</a> <a href="./">Folder</a> <a href="../">Up</a></p></body></html>')
    shop.write("site/_headers", "/technology/*\n  Cross-Origin-Opener-Policy: same-origin\n  Set-Cookie: a=b\n")
    for secret in [".env", ".env.local", ".git/config", ".npmrc"]:
        shop.write(f"site/{secret}", "SECRET=1\n")
    for name in FILES:
        shop.write(f"site/{name}", f"The file {name}\n" * 20)
    shop.write("site/js/search.js", "fetch('/js/index.json').then((r) => r.json()).then((all) => document.querySelector('#search').addEventListener('input', (e) => {\n"
               "  document.querySelector('#found').innerHTML = all.filter((n) => n.includes(e.target.value)).map((n) => `<a href=\"/${encodeURI(n)}\">${n}</a>`).join(' ');\n}));\n")
    shop.write("site/js/index.json", json.dumps(NAMES, ensure_ascii=False))
    shop.write("site/base.html", HEAD.format(title="Base") + '<base href="/deep/er/"><link rel="stylesheet" href="../../css/site.css"></head><body><h1>Base</h1>'
               '<img src="../../img/picture@2x.png" alt=""><a href="page.html">page</a><p id="out"></p>'
               '<script>document.querySelector("#out").textContent = document.baseURI.replace(location.origin, "") + " " + document.querySelector("a").pathname;</script></body></html>')
    shop.write("site/404.html", HEAD.format(title="404") + "</head><body><h1>There is no such page</h1></body></html>")
    shop.write("site/technology/index.html", HEAD.format(title="Technology") + """<link rel="stylesheet" href="../css/site.css">
<script type="importmap">{"imports": {"tools": "./lib/tools.js", "tools/": "./lib/"}}</script></head><body><h1>Technology</h1><p id="out">waiting</p>
<audio id="sound" src="sound.wav" preload="metadata" controls></audio>
<script type="module">
import { name } from 'tools';
import { late } from 'tools/late.js';
const answers = [name, late, import.meta.url.replace(location.origin, '')];
const { instance } = await WebAssembly.instantiateStreaming(fetch('add.wasm'));
answers.push(instance.exports.add(2, 3));
answers.push((await import('./lib/late.js')).late);
const worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
answers.push(await new Promise((done) => { worker.onmessage = (event) => done(event.data); worker.postMessage(20); }));
const sound = document.querySelector('#sound');
await new Promise((done) => { if (sound.readyState > 0) done(); else sound.onloadedmetadata = done; });
sound.currentTime = 15;
await new Promise((done) => { sound.onseeked = done; });
answers.push(Math.round(sound.currentTime), Math.round(sound.duration));
const range = await fetch('sound.wav', { headers: { range: 'bytes=100-199' } });
answers.push(range.status, (await range.arrayBuffer()).byteLength, range.headers.get('content-range'));
document.querySelector('#out').textContent = answers.join(' ');
</script></body></html>""")
    shop.write("site/technology/lib/tools.js", "export { late } from './late.js';\nexport const name = 'tools';\n")
    shop.write("site/technology/lib/late.js", "export const late = 'late';\n")
    shop.write("site/technology/worker.js", "import { late } from './lib/late.js';\nonmessage = (event) => postMessage(`${late}:${event.data * 2}`);\n")
    shop.write("site/technology/add.wasm", content.WASM)
    shop.write("site/technology/sound.wav", content.wav())
    shop.write("site/large.html", HEAD.format(title="Large") + "</head><body><h1>Large</h1>" + "<p>a line of a large page</p>\n" * 22_000 + "</body></html>")
    return shop.folder / "site"


BUILDS = [
    Build("handmade", handmade, ["/", "/base.html", "/technology/", "/_private/_page.html", "/docs/v1.2/", "/%E6%97%A5%E6%9C%AC%E8%AA%9E.html", "/large.html"],
          click="#technology", shows=("/technology/", "late:40"), search={"input": "#search", "text": "deeper", "result": "#found a"},
          expects=[("/technology/", 200, {"cross-origin-opener-policy": "same-origin", "set-cookie": None}), ("/.env", 404, {}),
                   ("/.env.local", 404, {}), ("/.git/config", 404, {}), ("/.npmrc", 404, {})]),
]
