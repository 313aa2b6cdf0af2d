//! Inserts the tracker script into the pages of a site with analytics, once per version of a page.

use std::cell::Cell;

use lol_html::html_content::ContentType;
use lol_html::{RewriteStrSettings, element, end, rewrite_str};
use store::sites::TrackerTag;

/// The script's path on the base host, for pages elsewhere.
pub(crate) const PUBLIC_PATH: &str = "/script.js";
/// The script's path on a site's own host.
pub(crate) const SCRIPT_PATH: &str = "/_wr/script.js";
/// The script's former path, which pages in browser caches still use.
pub(crate) const FORMER_PATH: &str = "/_wr/t.js";
/// The path that the script sends events to.
pub(crate) const COLLECT_PATH: &str = "/_wr/collect";

/// Returns the page with the script for this analytics site.
///
/// The script comes first in the head, before any `<base>` that would change its URL; without a head it comes first in the
/// body; without either at the end, because before a doctype it would switch browsers to quirks mode.
pub(crate) fn insert_tracker(html: String, tag: &TrackerTag) -> String {
    // The script honors Do Not Track itself, before anything is sent.
    let ignore_dnt = if tag.honour_dnt { "" } else { " data-ignore-dnt" };
    let hash = if tag.hash_routing { " data-hash" } else { "" };
    // The token consists of letters, digits and underscores (`domain::sites::token`), so nothing needs escaping.
    let token = &tag.site_token;
    let script =
        format!(r#"<script defer src="{SCRIPT_PATH}" data-site="{token}"{ignore_dnt}{hash}></script>"#);
    let inserted = Cell::new(false);
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(element!("head, body", |start| {
            if !inserted.replace(true) {
                start.prepend(&script, ContentType::Html);
            }
            Ok(())
        }))
        .append_document_content_handler(end!(|end| {
            if !inserted.get() {
                end.append(&script, ContentType::Html);
            }
            Ok(())
        }));
    match rewrite_str(&html, settings) {
        Ok(with_tracker) => with_tracker,
        Err(error) => {
            tracing::warn!(%error, "can't insert the tracker into a page that can't be parsed");
            html
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r#"<script defer src="/_wr/script.js" data-site="site_x"></script>"#;

    fn with_tracker(html: &str) -> String {
        insert_tracker(html.to_owned(), &tag(true)).replace(SCRIPT, "T")
    }

    fn tag(honour_dnt: bool) -> TrackerTag {
        TrackerTag { site_token: "site_x".to_owned(), honour_dnt, hash_routing: false }
    }

    #[test]
    fn marks_the_script_of_a_site_that_ignores_do_not_track() {
        let expected = SCRIPT.replace("></", " data-ignore-dnt></");
        assert_eq!(insert_tracker("<body>".to_owned(), &tag(false)), format!("<body>{expected}"));
    }

    #[test]
    fn marks_the_script_of_a_site_whose_fragments_are_pages() {
        let expected = SCRIPT.replace("></", " data-hash></");
        let tag = TrackerTag { hash_routing: true, ..tag(true) };
        assert_eq!(insert_tracker("<body>".to_owned(), &tag), format!("<body>{expected}"));
    }

    #[test]
    fn inserts_the_script_first_in_the_head_or_body_or_at_the_end() {
        for (html, expected) in [
            (
                "<!doctype html><HEAD lang=en><base href=//x></HEAD><body>",
                "<!doctype html><HEAD lang=en>T<base href=//x></HEAD><body>",
            ),
            ("<head><title>a<body>b", "<head>T<title>a<body>b"),
            ("<html><body class=a><p>b</body>", "<html><body class=a>T<p>b</body>"),
            ("<!doctype html><title>a</title><p>b", "<!doctype html><title>a</title><p>bT"),
            ("", "T"),
        ] {
            assert_eq!(with_tracker(html), expected);
        }
    }

    #[test]
    fn ignores_text_that_looks_like_a_head() {
        for (html, expected) in [
            ("<!-- <head> --><body>x", "<!-- <head> --><body>Tx"),
            ("<script>'<head>'</script><body>x", "<script>'<head>'</script><body>Tx"),
            ("<header>x</header>", "<header>x</header>T"),
            ("<textarea><head></textarea><p>", "<textarea><head></textarea><p>T"),
        ] {
            assert_eq!(with_tracker(html), expected);
        }
    }

    #[test]
    fn changes_nothing_else_in_a_page() {
        let html = "<head></head>\r\n<P CLASS='a' b = c>&amp;&nbsp;ä\u{0}<br/><svg viewBox='0 0 1 1'/></P>\t<!-- x -->";
        assert_eq!(with_tracker(html), html.replacen("<head>", "<head>T", 1));
    }
}
