//! Pages: limits, slugs, and the document that is served.

mod content;
mod publication;

use serde_json::{Map, Value};

use crate::field_error::{check_bytes, check_length};
use crate::{FieldError, entries, units};

pub use content::{Content, Hash, hash_of};
pub use publication::{Publication, PublicationChange};

/// Maximum size of a page's `html`, in bytes.
pub const MAX_HTML_BYTES: usize = 512 * 1024;
/// Maximum size of a page's `css`, in bytes.
pub const MAX_CSS_BYTES: usize = 128 * 1024;
/// Maximum size of a page's entry template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 64 * 1024;
/// Maximum size of a page's metadata as JSON, in bytes.
pub const MAX_METADATA_BYTES: usize = 16 * 1024;
/// Maximum length of a page's title, in characters.
pub const TITLE_CHARS_MAX: usize = 300;
/// Number of versions of a page that are retained, including the current one.
pub const VERSIONS_KEPT: i32 = 20;
/// Maximum number of pages in one batch call.
pub const BATCH_MAX: usize = 200;
/// Regular expression of a slug.
pub const SLUG_PATTERN: &str = "^[a-z0-9-]+(/[a-z0-9-]+)*$";
/// The slug served at the root of a site.
pub const INDEX: &str = "index";

/// Validates a slug: 2–200 characters, segments of lowercase letters, digits and hyphens, separated by `/`.
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

/// Validates the given parts of a page.
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

/// Validates a page's metadata, which is stored as JSON.
pub fn check_metadata(metadata: &Map<String, Value>) -> Vec<FieldError> {
    let size = serde_json::to_string(metadata).map_or(usize::MAX, |json| json.len());
    if size <= MAX_METADATA_BYTES {
        return Vec::new();
    }
    let [max, size] = units::sizes(MAX_METADATA_BYTES as u64, size as u64);
    let message = format!("metadata may have at most {max} as JSON, this has {size}");
    vec![FieldError::new("metadata", "too_long", message)]
}

/// Returns the path at which a slug is served.
pub fn path_of(slug: &str) -> String {
    if slug == INDEX { "/".to_owned() } else { format!("/{slug}") }
}

/// Returns the slug of a request path; `None` if no slug can match it.
pub fn slug_at(path: &str) -> Option<&str> {
    match path.strip_prefix('/')? {
        "" => Some(INDEX),
        slug if check_slug(slug).is_empty() => Some(slug),
        _ => None,
    }
}

/// Returns the slug to which a path redirects: without a trailing slash or `.html`, and without a trailing `index`.
pub fn canonical_slug(path: &str) -> Option<&str> {
    let written = path.strip_prefix('/')?;
    let slug = written.strip_suffix('/').unwrap_or(written);
    let slug = slug.strip_suffix(".html").unwrap_or(slug);
    let slug = slug.strip_suffix("/index").unwrap_or(slug);
    let is_own = slug == written && slug != INDEX;
    (!is_own && check_slug(slug).is_empty()).then_some(slug)
}

/// Returns the served document: the page's HTML with its CSS at the end of the head.
///
/// Without a `</head>` the style comes first, which every browser parses as part of the head.
pub fn render(html: &str, css: Option<&str>) -> String {
    let Some(css) = css.filter(|css| !css.is_empty()) else { return html.to_owned() };
    // A style element ends at the first `</style`, so the style sheet must not contain one.
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
        fn a_path_returns_its_slug(slug in "[a-z0-9-]{2,20}(/[a-z0-9-]{1,10}){0,2}") {
            let path = path_of(&slug);
            prop_assert_eq!(slug_at(&path), Some(slug.as_str()));
        }
    }

    #[test]
    fn metadata_is_limited_as_json() {
        let of = |bytes: usize| Map::from_iter([("k".to_owned(), Value::from("x".repeat(bytes - 8)))]);
        assert_eq!(check_metadata(&of(MAX_METADATA_BYTES)), vec![]);
        let errors = check_metadata(&of(MAX_METADATA_BYTES + 1));
        assert_eq!(errors[0].message, "metadata may have at most 16 KB as JSON, this has 16.1 KB");
        let escaped = Map::from_iter([("k".to_owned(), Value::from("\u{1}".repeat(3_000)))]);
        assert_eq!(check_metadata(&escaped).len(), 1, "escapes count as they are written");
    }

    #[test]
    fn an_alternative_path_redirects_to_the_slug() {
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
            assert_eq!(canonical_slug(path), Some(slug), "{path}");
        }
        for path in
            ["/", "//", "/about", "/about//", "//about/", "/.html", "/About/", "/about.htm", "/a/../b/"]
        {
            assert_eq!(canonical_slug(path), None, "{path}");
        }
    }

    #[test]
    fn css_is_inserted_into_the_head_and_can_not_leave_it() {
        assert_eq!(render("<HEAD></HEAD>x", Some("a{}")), "<HEAD><style>a{}</style></HEAD>x");
        assert_eq!(render("<p>x", Some("a{}")), "<style>a{}</style><p>x");
        assert_eq!(render("<p>x", None), "<p>x");
        assert!(!render("<p>", Some("</style><script>")).contains("</style><script>"));
    }
}
