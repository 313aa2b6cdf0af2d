//! Rendering of a page: its HTML with the entries at their marker and the CSS in the head.

mod base;

use std::cell::Cell;

use lol_html::html_content::ContentType;
use lol_html::{RewriteStrSettings, doc_comments, element, end_tag, rewrite_str};
use serde_json::Value;

use crate::entries::Template;
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
    let entries = source.entry_template.and_then(|template| {
        let wanted = !source.entries.is_empty() && source.html.contains(MARKER);
        // An invalid template can't be stored any more; this one was stored under older rules.
        let template = if wanted { Template::parse(template).ok()? } else { return None };
        Some(template.render_all(source.entries))
    });
    match entries.and_then(|entries| with_entries(source.html, &entries)) {
        Some(html) => pages::render(&html, source.css),
        None => pages::render(source.html, source.css),
    }
}

/// Replaces the first marker that is a comment for an HTML parser. In the text of a script, entries could be
/// executed. Returns `None` if the parser is ambiguous.
fn with_entries(html: &str, entries: &str) -> Option<String> {
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
