//! What a page may be.

mod content;
mod publication;

use crate::field_error::{check_bytes, check_length};
use crate::{FieldError, entries};

pub use content::{Content, Hash, hash_of};
pub use publication::{Publication, Wish};

/// Most bytes of a page's `html`.
pub const MAX_HTML_BYTES: usize = 512 * 1024;
/// Most bytes of a page's `css`.
pub const MAX_CSS_BYTES: usize = 128 * 1024;
/// Most bytes of its template of entries.
pub const MAX_TEMPLATE_BYTES: usize = 64 * 1024;
/// Most characters of its title.
pub const TITLE_CHARS_MAX: usize = 300;
/// How many versions of a page are kept, the newest among them.
pub const VERSIONS_KEPT: i32 = 20;
/// Most pages of one call.
pub const BATCH_MAX: usize = 200;
/// How a slug is written, as a regular expression.
pub const SLUG_PATTERN: &str = "^[a-z0-9-]+(/[a-z0-9-]+)*$";
/// The slug served at the root of a site.
pub const INDEX: &str = "index";

/// What is wrong with a slug: 2–200 characters, segments of lowercase letters, digits and hyphens, `/` between.
pub fn check_slug(slug: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_length(&mut errors, "slug", slug, 2, 200);
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !slug.split('/').all(|segment| !segment.is_empty() && segment.chars().all(allowed)) {
        let rule = "lowercase letters, digits and hyphens, with single `/` between segments";
        errors.push(FieldError::new("slug", "characters", format!("slug may have only {rule}")));
    }
    errors
}

/// What is wrong with the parts of a page that are given.
pub fn check_content(
    title: Option<&str>,
    html: Option<&str>,
    css: Option<&str>,
    entry_template: Option<&str>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(title) = title {
        check_length(&mut errors, "title", title, 1, TITLE_CHARS_MAX);
    }
    if let Some(html) = html {
        check_bytes(&mut errors, "html", html, MAX_HTML_BYTES);
    }
    if let Some(css) = css {
        check_bytes(&mut errors, "css", css, MAX_CSS_BYTES);
    }
    if let Some(template) = entry_template {
        let before = errors.len();
        check_bytes(&mut errors, "entryTemplate", template, MAX_TEMPLATE_BYTES);
        if errors.len() == before {
            errors.extend(entries::check_template(template));
        }
    }
    errors
}

/// The path a slug is served at.
pub fn path_of(slug: &str) -> String {
    if slug == INDEX { "/".to_owned() } else { format!("/{slug}") }
}

/// The slug asked for by a request path; `None` if no slug could ever match it.
pub fn slug_at(path: &str) -> Option<&str> {
    match path.strip_prefix('/')? {
        "" => Some(INDEX),
        slug if check_slug(slug).is_empty() => Some(slug),
        _ => None,
    }
}

/// The slug that is meant by a path that isn't its own: with a slash or `.html` at its end, or with `index` for
/// what is at the root of something.
pub fn slug_meant_by(path: &str) -> Option<&str> {
    let written = path.strip_prefix('/')?;
    let slug = written.strip_suffix('/').unwrap_or(written);
    let slug = slug.strip_suffix(".html").unwrap_or(slug);
    let slug = slug.strip_suffix("/index").unwrap_or(slug);
    let is_own = slug == written && slug != INDEX;
    (!is_own && check_slug(slug).is_empty()).then_some(slug)
}

/// The document a visitor gets: the page's HTML with its CSS put at the end of the head.
///
/// Without a `</head>` the style goes first, which every browser takes as part of the head.
pub fn render(html: &str, css: Option<&str>) -> String {
    let Some(css) = css.filter(|css| !css.is_empty()) else { return html.to_owned() };
    // A style element ends at the first `</style`, so the sheet must not hold one.
    let style = format!("<style>{}</style>", css.replace("</", "<\\/"));
    match html.to_ascii_lowercase().find("</head>") {
        Some(at) => format!("{}{style}{}", &html[..at], &html[at..]),
        None => format!("{style}{html}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slugs_have_segments() {
        for right in ["index", "a1", "docs/start", "a/b/c", "404"] {
            assert_eq!(check_slug(right), vec![], "{right}");
        }
        for wrong in ["a", "", "/a", "a/", "a//b", "A1", "a_b", "a b", "ä1", "a.html", &"a".repeat(201)] {
            assert!(!check_slug(wrong).is_empty(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_slug_is_found_at_its_own_path(slug in "[a-z0-9-]{2,20}(/[a-z0-9-]{1,10}){0,2}") {
            let path = path_of(&slug);
            prop_assert_eq!(slug_at(&path), Some(slug.as_str()));
        }
    }

    #[test]
    fn an_address_written_differently_means_the_page_it_is_like() {
        for (path, slug) in [
            ("/about/", "about"),
            ("/about.html", "about"),
            ("/docs/start.html", "docs/start"),
            ("/docs/index.html", "docs"),
            ("/docs/index", "docs"),
            ("/docs/index/", "docs"),
            ("/index", "index"),
            ("/index.html", "index"),
            ("/index/", "index"),
        ] {
            assert_eq!(slug_meant_by(path), Some(slug), "{path}");
        }
        for path in
            ["/", "//", "/about", "/about//", "//about/", "/.html", "/About/", "/about.htm", "/a/../b/"]
        {
            assert_eq!(slug_meant_by(path), None, "{path}");
        }
    }

    #[test]
    fn css_goes_into_the_head_and_can_not_leave_it() {
        assert_eq!(render("<HEAD></HEAD>x", Some("a{}")), "<HEAD><style>a{}</style></HEAD>x");
        assert_eq!(render("<p>x", Some("a{}")), "<style>a{}</style><p>x");
        assert_eq!(render("<p>x", None), "<p>x");
        assert!(!render("<p>", Some("</style><script>")).contains("</style><script>"));
    }
}
