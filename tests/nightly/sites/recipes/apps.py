"""Applications: Next's static export, SvelteKit, Vite + React with a router, and one with a service worker."""

import json

import content
from workshop import Build

TEXTS = json.dumps([{"number": a.number, "title": a.title, "text": a.paragraphs[0]} for a in content.ARTICLES])


def nextjs(shop):
    shop.npm("next@16.4.6", "react@19.3.1", "react-dom@19.3.1", "@fontsource/inter@5.3.0")
    shop.write("next.config.mjs", "export default { output: 'export', images: { unoptimized: true } };\n")
    shop.run("cp", "node_modules/@fontsource/inter/files/inter-latin-400-normal.woff2", "inter.woff2")
    shop.write("app/site.css", "body{max-width:50em;margin:auto}.logo{background:url(./logo.png);width:40px;height:40px}")
    shop.write("app/logo.png", content.png(3, 40, 40))
    shop.write("app/layout.jsx", "import './site.css';\nimport localFont from 'next/font/local';\nimport Link from 'next/link';\n"
               "const inter = localFont({ src: '../inter.woff2' });\nexport const metadata = { title: 'Harbour' };\n"
               "export default ({ children }) => <html lang='en'><body className={inter.className}><div className='logo'/>"
               "<Link href='/'>Home</Link> <Link id='about' href='/about'>About</Link>{children}</body></html>;\n")
    shop.write("app/texts.js", f"export const texts = {TEXTS};\n")
    shop.write("app/page.jsx", "import Link from 'next/link';\nimport { texts } from './texts.js';\nexport default () => <main><h1>Harbour</h1><ul>"
               "{texts.map((t) => <li key={t.number}><Link href={`/articles/${t.number}`}>{t.title}</Link></li>)}</ul></main>;\n")
    shop.write("app/about/page.jsx", "export default () => <main><h1>About</h1></main>;\n")
    shop.write("app/articles/[number]/page.jsx", "import Image from 'next/image';\nimport { texts } from '../../texts.js';\nimport Like from './like.jsx';\nimport picture from '../../logo.png';\n"
               "export const generateStaticParams = () => texts.map((t) => ({ number: String(t.number) }));\nexport const dynamicParams = false;\n"
               "export default async ({ params }) => { const { number } = await params; const t = texts.find((t) => String(t.number) === number);\n"
               "  return <main><h1>{t.title}</h1><Image src={picture} alt=''/><p>{t.text}</p><Like/></main>; };\n")
    shop.write("app/articles/[number]/like.jsx", "'use client';\nimport { useState } from 'react';\nexport default () => { const [n, set] = useState(0); return <button onClick={() => set(n + 1)}>{n} likes</button>; };\n")
    shop.run("next", "build")
    return shop.folder / "out"


def sveltekit(shop):
    shop.npm("@sveltejs/kit@2.70.4", "@sveltejs/adapter-static@3.0.10", "@sveltejs/vite-plugin-svelte@6.2.1", "svelte@5.57.3", "vite@7.3.8")
    shop.write("svelte.config.js", "import adapter from '@sveltejs/adapter-static';\nexport default { kit: { adapter: adapter({ fallback: '200.html' }), prerender: { handleMissingId: 'ignore' } } };\n")
    shop.write("vite.config.js", "import { sveltekit } from '@sveltejs/kit/vite';\nexport default { plugins: [sveltekit()] };\n")
    shop.write("src/app.html", '<!doctype html><html lang="en"><head><meta charset="utf-8">%sveltekit.head%</head><body><div>%sveltekit.body%</div></body></html>')
    shop.write("src/lib/texts.js", f"export const texts = {TEXTS};\n")
    shop.write("src/lib/logo.png", content.png(4, 120, 60))
    shop.write("src/routes/+layout.js", "export const prerender = true;\n")
    shop.write("src/routes/+page.svelte", "<script>import { texts } from '$lib/texts.js'; import logo from '$lib/logo.png';</script>\n<svelte:head><title>Harbour</title></svelte:head>\n"
               "<h1>Harbour</h1><img src={logo} alt=''>{#each texts as t}<p><a href={`/articles/${t.number}`}>{t.title}</a></p>{/each}<a id='live' href='/live/7'>Live</a>\n")
    shop.write("src/routes/articles/[number]/+page.svelte", "<script>let { data } = $props(); let n = $state(0);</script>\n<h1>{data.title}</h1><p>{data.text}</p>"
               "<button onclick={() => n++}>{n} likes</button><style>h1 { color: teal }</style>\n")
    shop.write("src/routes/articles/[number]/+page.js", "import { texts } from '$lib/texts.js';\nexport const entries = () => texts.map((t) => ({ number: String(t.number) }));\n"
               "export const load = ({ params }) => texts.find((t) => String(t.number) === params.number);\n")
    shop.write("src/routes/live/[number]/+page.svelte", "<script>let { data } = $props();</script><h1>Live {data.number}</h1>\n")
    shop.write("src/routes/live/[number]/+page.js", "export const prerender = false;\nexport const ssr = false;\nexport const load = ({ params }) => params;\n")
    shop.run("vite", "build")
    return shop.folder / "build"


def vite_react(shop):
    shop.npm("vite@8.3.8", "@vitejs/plugin-react@6.3.0", "react@19.3.1", "react-dom@19.3.1", "react-router-dom@7.18.5", "@fontsource/inter@5.3.0")
    shop.write("vite.config.js", "import react from '@vitejs/plugin-react';\nexport default { plugins: [react()], build: { assetsInlineLimit: 0 } };\n")
    shop.write("index.html", '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Harbour</title><link rel="icon" href="/icon.svg"></head>'
               '<body><div id="root"></div><script type="module" src="/src/main.jsx"></script></body></html>')
    shop.write("public/_redirects", "/old-about /about 301\n/* /index.html 200\n")
    shop.write("public/icon.svg", content.svg("H"))
    shop.write("src/logo.png", content.png(6))
    shop.write("src/texts.js", f"export const texts = {TEXTS};\n")
    shop.write("src/article.jsx", "import { useParams } from 'react-router-dom';\nimport { texts } from './texts.js';\nimport logo from './logo.png';\n"
               "export default () => { const t = texts.find((t) => String(t.number) === useParams().number); return <main><h1>{t.title}</h1><img src={logo} alt=''/><p>{t.text}</p></main>; };\n")
    shop.write("src/main.jsx", """import '@fontsource/inter/400.css';
import './site.css';
import { StrictMode, Suspense, lazy } from 'react';
import { createRoot } from 'react-dom/client';
import { BrowserRouter, Link, Route, Routes } from 'react-router-dom';
import { texts } from './texts.js';
const Article = lazy(() => import('./article.jsx'));
const Home = () => <main><h1>Harbour</h1><ul>{texts.map((t) => <li key={t.number}><Link to={`/articles/${t.number}`}>{t.title}</Link></li>)}</ul></main>;
createRoot(document.getElementById('root')).render(<StrictMode><BrowserRouter><nav><Link to="/">Home</Link> <Link to="/about">About</Link></nav>
  <Suspense fallback={<p>…</p>}><Routes><Route path="/" element={<Home/>}/><Route path="/about" element={<h1>About</h1>}/>
  <Route path="/articles/:number" element={<Article/>}/><Route path="*" element={<h1>There is no such page</h1>}/></Routes></Suspense></BrowserRouter></StrictMode>);
""")
    shop.write("src/site.css", "body{font-family:Inter;max-width:50em;margin:auto;background:url(./logo.png) no-repeat right top}")
    shop.run("vite", "build")
    return shop.folder / "dist"


def vite_pwa(shop):
    shop.npm("vite@8.3.8", "vite-plugin-pwa@2.0.0", "workbox-build@7.4.1", "workbox-window@7.4.1")
    shop.write("vite.config.js", "import { VitePWA } from 'vite-plugin-pwa';\nexport default { plugins: [VitePWA({ registerType: 'autoUpdate', injectRegister: 'script',\n"
               "  includeAssets: ['icon.png'], manifest: { name: 'Harbour', short_name: 'Harbour', icons: [{ src: 'icon.png', sizes: '192x192', type: 'image/png' }] } })] };\n")
    shop.write("index.html", '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Harbour</title></head><body><h1>Harbour</h1>'
               '<p id="state">waiting</p><nav id="nav"></nav><script type="module" src="/main.js"></script></body></html>')
    shop.write("public/icon.png", content.png(8, 192, 192))
    shop.write("texts.js", f"export const texts = {TEXTS};\n")
    shop.write("main.js", """import { texts } from './texts.js';
const show = () => {
  const number = Number(location.pathname.match(/^\\/articles\\/(\\d+)$/)?.[1]);
  const text = texts.find((t) => t.number === number);
  document.querySelector('h1').textContent = text ? text.title : 'Harbour';
};
document.querySelector('#nav').innerHTML = texts.map((t) => `<p><a href="/articles/${t.number}">${t.title}</a></p>`).join('');
document.querySelector('#nav').addEventListener('click', (event) => {
  event.preventDefault(); history.pushState(null, '', event.target.href); show();
});
addEventListener('popstate', show); show();
navigator.serviceWorker.ready.then(() => { document.querySelector('#state').textContent = 'works offline'; });
""")
    shop.run("vite", "build")
    return shop.folder / "dist"


BUILDS = [
    Build("next", nextjs, ["/", "/about", "/articles/2", "/articles/9.html"], click='a:has-text("Article 3:")', bytes_of="/articles/2"),
    Build("sveltekit", sveltekit, ["/", "/articles/2", "/live/9"], click='#live', fallback="200.html"),
    Build("vite-react", vite_react, ["/", "/about", "/articles/2"], click='a:has-text("Article 3:")', fallback="index.html", wrap="dist",
          beside={"package.json": "{}", "src/main.jsx": "// the source\n", "README.md": "# Harbour\n"}, bytes_of="/articles/2",
          expects=[("/old-about", 301, {"location": "/about"})]),
    Build("vite-pwa", vite_pwa, ["/", "/articles/2"], click='a:has-text("Article 3:")', fallback="index.html", spa=True, shows=("/", "works offline")),
]
