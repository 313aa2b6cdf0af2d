//! Where in a template placeholders stand, as an HTML parser sees it.

use std::cell::RefCell;
use std::collections::BTreeMap;
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

impl Places {
    /// Whether text stands there. What was found is in the template's order.
    pub(super) fn text_at(&self, at: usize) -> bool {
        let next = self.texts.partition_point(|text| text.end <= at);
        self.texts.get(next).is_some_and(|text| text.contains(&at))
    }

    /// The attribute whose value stands there.
    pub(super) fn attribute_at(&self, at: usize) -> Option<&Attribute> {
        let next = self.attributes.partition_point(|attribute| attribute.value.end <= at);
        self.attributes.get(next).filter(|attribute| attribute.value.contains(&at))
    }
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
            let mut names = BTreeMap::<String, usize>::new();
            for attribute in element.attributes() {
                *names.entry(attribute.name()).or_default() += 1;
            }
            for attribute in element.attributes() {
                let (name, value) = (attribute.name(), attribute.value_source_location());
                let Some(value) = value else { continue };
                let is_only = names.get(&name) == Some(&1);
                found.attributes.push(Attribute {
                    element: tag.clone(),
                    name,
                    value: value.bytes(),
                    is_only,
                });
            }
            Ok(())
        }));
    rewrite_str(template, settings)
        .map_err(|_| "this HTML can be read in more than one way; write it plainly")?;
    Ok(found.into_inner())
}
