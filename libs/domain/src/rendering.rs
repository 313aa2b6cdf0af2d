//! The document that visitors of a page get: its HTML, with its entries at their marker and its CSS in its head.

mod base;

use std::cell::Cell;

use lol_html::html_content::ContentType;
use lol_html::{RewriteStrSettings, doc_comments, element, end_tag, rewrite_str};
use serde_json::Value;

use crate::entries::Template;
use crate::pages;

pub use base::at;

/// What a page says, as far as visitors see it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its HTML.
    pub html: &'a str,
    /// Its style sheet.
    pub css: Option<&'a str>,
    /// What each of its entries looks like.
    pub entry_template: Option<&'a str>,
    /// Its entries' data, the newest first.
    pub entries: &'a [Value],
}

/// What the marker's comment says: `<!-- service:entries -->`.
const MARKER: &str = "service:entries";
const HTML: &str = "http://www.w3.org/1999/xhtml";

/// The whole document.
pub fn page(source: Source<'_>) -> String {
    let entries = source.entry_template.and_then(|template| {
        let wanted = !source.entries.is_empty() && source.html.contains(MARKER);
        // A template that can't be read would have been refused: it is of another time.
        let template = if wanted { Template::parse(template).ok()? } else { return None };
        Some(template.render_all(source.entries))
    });
    match entries.and_then(|entries| with_entries(source.html, &entries)) {
        Some(html) => pages::render(&html, source.css),
        None => pages::render(source.html, source.css),
    }
}

/// Puts entries in the place of the first marker that is really a comment, and not the text of a script or the like:
/// there they could be run. `None` if it can't be told for certain.
fn with_entries(html: &str, entries: &str) -> Option<String> {
    let (done, code) = (Cell::new(false), std::rc::Rc::new(Cell::new(0_u32)));
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(element!("script, style", |element| {
            // In SVG and MathML these may hold comments, and run what stands beside them.
            if element.namespace_uri() != HTML && element.can_have_content() {
                code.set(code.get() + 1);
                let code = std::rc::Rc::clone(&code);
                element.on_end_tag(end_tag!(move |_| {
                    code.set(code.get().saturating_sub(1));
                    Ok(())
                }))?;
            }
            Ok(())
        }))
        .append_document_content_handler(doc_comments!(|comment| {
            if comment.text().trim() == MARKER && code.get() == 0 && !done.replace(true) {
                comment.replace(entries, ContentType::Html);
            }
            Ok(())
        }));
    rewrite_str(html, settings).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(html: &str, entries: &[Value]) -> String {
        page(Source { html, css: Some("p{}"), entry_template: Some("<li>{{a}}</li>"), entries })
    }

    #[test]
    fn entries_stand_at_the_marker_in_the_order_given() {
        let entries = [json!({"a": "2"}), json!({"a": 1})];
        assert_eq!(
            with("<head></head><ul><!-- service:entries --></ul>", &entries),
            "<head><style>p{}</style></head><ul><li>2</li><li>1</li></ul>"
        );
        assert_eq!(
            with("<ul><!--service:entries--></ul>", &entries[1..]),
            "<style>p{}</style><ul><li>1</li></ul>"
        );
        assert_eq!(with("<p>none", &entries), "<style>p{}</style><p>none");
    }

    #[test]
    fn without_entries_or_template_the_page_is_as_it_was() {
        let html = "<ul><!-- service:entries --></ul>";
        assert_eq!(with(html, &[]), format!("<style>p{{}}</style>{html}"));
        let source = Source { html, css: None, entry_template: None, entries: &[json!({"a": 1})] };
        assert_eq!(page(source), html);
        assert_eq!(page(Source { entry_template: Some("<script>{{a}}"), ..source }), html);
    }

    #[test]
    fn a_marker_that_is_no_comment_is_left_alone() {
        for html in [
            "<script>'<!-- service:entries -->'</script>",
            "<style><!-- service:entries --></style>",
            "<textarea><!-- service:entries --></textarea>",
            "<title><!-- service:entries --></title>",
            "<p title='<!-- service:entries -->'>",
            "<svg><script><!-- service:entries --></script></svg>",
            "<svg><style><!-- service:entries --></style></svg>",
            "<noscript><!-- service:entries --></noscript>",
            "<!-- not the service:entries -->",
        ] {
            assert_eq!(with(html, &[json!({"a": 1})]), format!("<style>p{{}}</style>{html}"));
        }
        let after = "<svg><style></style></svg><ul><!-- service:entries --></ul><!-- service:entries -->";
        assert!(with(after, &[json!({"a": 1})]).ends_with("<ul><li>1</li></ul><!-- service:entries -->"));
    }
}
