//! Positions of placeholders in a template, as an HTML parser sees them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use lol_html::html_content::TextType;
use lol_html::{RewriteStrSettings, doc_text, element, rewrite_str};

/// The namespace in which `script` and `style` are HTML elements.
pub(super) const HTML: &str = "http://www.w3.org/1999/xhtml";

/// An attribute with a value.
#[derive(Debug)]
pub(super) struct Attribute {
    /// Name of the element.
    pub(super) element: String,
    /// Name of the attribute.
    pub(super) name: String,
    /// Position of the value, without quotes.
    pub(super) value: Range<usize>,
    /// Whether the element has the attribute only once.
    pub(super) is_only: bool,
}

/// The parse result, in the order of the template.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Texts in which character references are decoded.
    pub(super) texts: Vec<Range<usize>>,
    /// Attributes with a value.
    pub(super) attributes: Vec<Attribute>,
    /// Whether SVG or MathML contains scripts or styles; their text looks like any other.
    pub(super) has_foreign_code: bool,
}

impl Places {
    /// Returns whether `at` is inside a text.
    pub(super) fn text_at(&self, at: usize) -> bool {
        let next = self.texts.partition_point(|text| text.end <= at);
        self.texts.get(next).is_some_and(|text| text.contains(&at))
    }

    /// Returns the attribute with a value that contains `at`.
    pub(super) fn attribute_at(&self, at: usize) -> Option<&Attribute> {
        let next = self.attributes.partition_point(|attribute| attribute.value.end <= at);
        self.attributes.get(next).filter(|attribute| attribute.value.contains(&at))
    }
}

/// Parses a template. Fails if parsers may interpret it differently.
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
