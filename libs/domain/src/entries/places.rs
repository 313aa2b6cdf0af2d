//! Where in a template placeholders stand, as an HTML parser sees it.

use std::cell::RefCell;
use std::ops::Range;

use lol_html::html_content::TextType;
use lol_html::{RewriteStrSettings, doc_text, element, rewrite_str};

/// The name space in which a `script` or `style` is what HTML says it is.
pub(super) const HTML: &str = "http://www.w3.org/1999/xhtml";

/// An attribute with a value.
#[derive(Debug)]
pub(super) struct Attribute {
    /// Its element.
    pub(super) element: String,
    /// Its name.
    pub(super) name: String,
    /// Where its value stands, without quotes.
    pub(super) value: Range<usize>,
    /// Whether it is the only one of its name.
    pub(super) is_only: bool,
}

/// What the parser found.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Text in which character references are read.
    pub(super) texts: Vec<Range<usize>>,
    /// Attributes with a value.
    pub(super) attributes: Vec<Attribute>,
    /// Scripts and styles inside of SVG or MathML, whose text looks like any other.
    pub(super) has_foreign_code: bool,
}

/// Parses a template.
///
/// # Errors
/// It can be read in more than one way.
pub(super) fn find(template: &str) -> Result<Places, String> {
    let found = RefCell::new(Places::default());
    let settings = RewriteStrSettings::new()
        .append_document_content_handler(doc_text!(|chunk| {
            if matches!(chunk.text_type(), TextType::Data | TextType::RCData) {
                found.borrow_mut().texts.push(chunk.source_location().bytes());
            }
            Ok(())
        }))
        .append_element_content_handler(element!("*", |element| {
            let mut found = found.borrow_mut();
            let tag = element.tag_name();
            let is_code = ["script", "style"].contains(&tag.as_str());
            found.has_foreign_code |= is_code && element.namespace_uri() != HTML;
            let names: Vec<String> = element.attributes().iter().map(|one| one.name()).collect();
            for (attribute, name) in element.attributes().iter().zip(&names) {
                let Some(value) = attribute.value_source_location() else { continue };
                found.attributes.push(Attribute {
                    element: tag.clone(),
                    name: name.clone(),
                    value: value.bytes(),
                    is_only: names.iter().filter(|other| *other == name).count() == 1,
                });
            }
            Ok(())
        }));
    rewrite_str(template, settings)
        .map_err(|_| "this HTML can be read in more than one way; write it plainly")?;
    Ok(found.into_inner())
}
