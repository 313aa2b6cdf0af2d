//! Puts the tracker into the pages of a counted site, once for each version of a page.

use std::cell::Cell;

use lol_html::html_content::ContentType;
use lol_html::{RewriteStrSettings, element, end, rewrite_str};
use store::sites::TrackerTag;

/// Where the tracker is for other people's pages: on the base host.
pub(crate) const PUBLIC_PATH: &str = "/script.js";
/// Where it is for a site's own pages: on their host.
pub(crate) const SCRIPT_PATH: &str = "/_wr/script.js";
/// Where it was before, as pages in browsers' caches say.
pub(crate) const FORMER_PATH: &str = "/_wr/t.js";
/// Where it sends what it sees.
pub(crate) const COLLECT_PATH: &str = "/_wr/collect";

/// The page with the tracker in it, told which site it counts for.
///
/// It stands first in the head, where no `<base>` can lead it astray yet; in a page without one, first in the body;
/// in a page that names neither, at the end: before a doctype it would change how browsers draw the page.
pub(crate) fn insert_tracker(html: String, tag: &TrackerTag) -> String {
    // The tracker leaves people alone who ask for it, before anybody here could.
    let rule = if tag.honour_dnt { "" } else { " data-ignore-dnt" };
    // Letters, digits and underscores, as `domain::sites::token` makes them: nothing to escape.
    let script =
        format!(r#"<script defer src="{SCRIPT_PATH}" data-site="{}"{rule}></script>"#, tag.site_token);
    let placed = Cell::new(false);
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(element!("head, body", |start| {
            if !placed.replace(true) {
                start.prepend(&script, ContentType::Html);
            }
            Ok(())
        }))
        .append_document_content_handler(end!(|end| {
            if !placed.get() {
                end.append(&script, ContentType::Html);
            }
            Ok(())
        }));
    match rewrite_str(&html, settings) {
        Ok(counted) => counted,
        Err(error) => {
            tracing::warn!(%error, "a page can't be read well enough to be counted");
            html
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r#"<script defer src="/_wr/script.js" data-site="site_x"></script>"#;

    fn counted(html: &str) -> String {
        insert_tracker(html.to_owned(), &tag(true)).replace(SCRIPT, "T")
    }

    fn tag(honour_dnt: bool) -> TrackerTag {
        TrackerTag { site_token: "site_x".to_owned(), honour_dnt }
    }

    #[test]
    fn the_tracker_is_told_where_a_site_counts_everybody() {
        let everybody = SCRIPT.replace("></", " data-ignore-dnt></");
        assert_eq!(insert_tracker("<body>".to_owned(), &tag(false)), format!("<body>{everybody}"));
    }

    #[test]
    fn the_tracker_stands_first_in_the_head_or_the_body_or_at_the_end() {
        for (html, with) in [
            (
                "<!doctype html><HEAD lang=en><base href=//x></HEAD><body>",
                "<!doctype html><HEAD lang=en>T<base href=//x></HEAD><body>",
            ),
            ("<head><title>a<body>b", "<head>T<title>a<body>b"),
            ("<html><body class=a><p>b</body>", "<html><body class=a>T<p>b</body>"),
            ("<!doctype html><title>a</title><p>b", "<!doctype html><title>a</title><p>bT"),
            ("", "T"),
        ] {
            assert_eq!(counted(html), with);
        }
    }

    #[test]
    fn what_only_looks_like_a_head_is_none() {
        for (html, with) in [
            ("<!-- <head> --><body>x", "<!-- <head> --><body>Tx"),
            ("<script>'<head>'</script><body>x", "<script>'<head>'</script><body>Tx"),
            ("<header>x</header>", "<header>x</header>T"),
            ("<textarea><head></textarea><p>", "<textarea><head></textarea><p>T"),
        ] {
            assert_eq!(counted(html), with);
        }
    }

    #[test]
    fn nothing_else_in_a_page_changes() {
        let html = "<head></head>\r\n<P CLASS='a' b = c>&amp;&nbsp;ä\u{0}<br/><svg viewBox='0 0 1 1'/></P>\t<!-- x -->";
        assert_eq!(counted(html), html.replacen("<head>", "<head>T", 1));
    }
}
