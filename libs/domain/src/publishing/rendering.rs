//! Rendering of a page: its HTML with the entries at their marker and the CSS in the head.

mod base;

use std::cell::Cell;

use lol_html::html_content::ContentType;
use lol_html::{RewriteStrSettings, doc_comments, element, end_tag, rewrite_str};
use serde_json::Value;

use crate::entries::{RenderedEntries, Template};
use crate::pages;

pub use base::at;

/// The parts of a page that visitors see.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub html: &'a str,
    pub css: Option<&'a str>,
    pub entry_template: Option<&'a str>,
    /// Data of the entries, newest first.
    pub entries: &'a [Value],
}

/// Text of the marker comment: `<!-- service:entries -->`.
const MARKER: &str = "service:entries";
const HTML: &str = "http://www.w3.org/1999/xhtml";

/// Renders the whole document.
pub fn page(source: Source<'_>) -> String {
    match entries(source).and_then(|entries| with_entries(source.html, &entries.html)) {
        Some(Document { html, .. }) => pages::render(&html, source.css),
        None => pages::render(source.html, source.css),
    }
}

/// Returns how many of the entries the document shows.
pub fn rendered_entries(source: Source<'_>) -> usize {
    let Some(entries) = entries(source) else { return 0 };
    let has_marker = with_entries(source.html, "").is_some_and(|document| document.has_marker);
    if has_marker { entries.count } else { 0 }
}

fn entries(source: Source<'_>) -> Option<RenderedEntries> {
    if source.entries.is_empty() || !source.html.contains(MARKER) {
        return None;
    }
    // An invalid template can't be stored any more; this one was stored under older rules.
    let template = Template::parse(source.entry_template?).ok()?;
    Some(template.render_newest(source.entries))
}

/// A document with its entries.
struct Document {
    html: String,
    has_marker: bool,
}

/// Replaces the first marker that is a comment for an HTML parser. In the text of a script, entries could be
/// executed. Returns `None` if the parser is ambiguous.
fn with_entries(html: &str, entries: &str) -> Option<Document> {
    let (done, code) = (Cell::new(false), std::rc::Rc::new(Cell::new(0_u32)));
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(element!("script, style", |element| {
            // In SVG and MathML, these elements may contain comments and execute the text beside them.
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
    let html = rewrite_str(html, settings).ok()?;
    Some(Document { html, has_marker: done.get() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(html: &str, entries: &[Value]) -> String {
        page(Source { html, css: Some("p{}"), entry_template: Some("<li>{{a}}</li>"), entries })
    }

    #[test]
    fn entries_replace_the_marker_in_their_order() {
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
    fn counts_the_entries_that_the_document_shows() {
        let entries = vec![json!({"a": "x".repeat(16_000)}); 500];
        let source = |html, template| Source { html, css: None, entry_template: template, entries: &entries };
        let marked = "<ul><!-- service:entries --></ul>";
        assert_eq!(rendered_entries(source(marked, Some("<li>"))), 500);
        let fitting = crate::entries::RENDERED_BYTES_MAX / 16_000;
        let shown = rendered_entries(source(marked, Some("{{a}}")));
        assert_eq!(shown, fitting, "the newest that fit");
        assert_eq!(page(source(marked, Some("{{a}}"))).matches('x').count(), fitting * 16_000);
        assert_eq!(rendered_entries(source(marked, None)), 0);
        assert_eq!(rendered_entries(source("<p>service:entries", Some("<li>"))), 0, "no marker");
        assert_eq!(rendered_entries(Source { entries: &[], ..source(marked, Some("<li>")) }), 0);
    }

    #[test]
    fn without_entries_or_template_the_page_is_unchanged() {
        let html = "<ul><!-- service:entries --></ul>";
        assert_eq!(with(html, &[]), format!("<style>p{{}}</style>{html}"));
        let source = Source { html, css: None, entry_template: None, entries: &[json!({"a": 1})] };
        assert_eq!(page(source), html);
        assert_eq!(page(Source { entry_template: Some("<script>{{a}}"), ..source }), html);
    }

    #[test]
    fn a_marker_that_is_no_comment_is_ignored() {
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
