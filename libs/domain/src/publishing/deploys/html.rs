//! Rewrites references in a page, and extracts the title and missing paths.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use lol_html::html_content::{ContentType, Element, TextType};
use lol_html::{RewriteStrSettings, element, rewrite_str, text};

use super::css;
use super::links::{Linked, Links, Use};

/// A rewritten page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub html: String,
    /// Title of the page; empty if it has none.
    pub title: String,
    /// Referenced paths that don't exist.
    pub missing: BTreeSet<String>,
}

/// The page can't be parsed.
#[derive(Debug, thiserror::Error)]
#[error("it can't be read as HTML: {0}")]
pub struct Unreadable(String);

/// Rewrites the page at a path of the site.
pub fn rewrite(document: &str, html: &str, links: &Links) -> Result<Rewritten, Unreadable> {
    let base_href = base_href(html)?;
    let base = Links::base(document, base_href.as_deref());
    // A page with its own policy would block images at other URLs.
    let has_policy = contains_ignoring_case(html, "content-security-policy");
    let page = Page { links, base, has_policy, missing: RefCell::default() };
    let (title, in_title) = (RefCell::new(String::new()), Cell::new(false));
    let style = RefCell::new(String::new());
    let settings = RewriteStrSettings::new()
        .append_element_content_handler(element!("*", |element| {
            in_title.set(false);
            if element.tag_name() == "title" {
                in_title.set(title.borrow().is_empty());
            }
            if element.tag_name() == "base" && page.base.is_some() {
                element.remove_attribute("href");
            }
            page.attributes(element)?;
            Ok(())
        }))
        .append_element_content_handler(element!("svg title", |_| {
            in_title.set(false);
            Ok(())
        }))
        .append_element_content_handler(text!("title", |chunk| {
            if in_title.get() {
                title.borrow_mut().push_str(chunk.as_str());
            }
            Ok(())
        }))
        .append_element_content_handler(text!("style", |chunk| {
            // Text arrives in chunks; the whole result replaces the last one.
            if chunk.text_type() != TextType::RawText && chunk.text_type() != TextType::Data {
                return Ok(());
            }
            style.borrow_mut().push_str(chunk.as_str());
            if chunk.last_in_text_node() {
                let whole = style.take();
                let written = page.css(&whole).unwrap_or(whole);
                // Only a rewritten reference could contain an end tag, and its `<` is escaped.
                chunk.replace(&written, ContentType::Html);
            } else {
                chunk.remove();
            }
            Ok(())
        }));
    let written = rewrite_str(html, settings).map_err(|error| Unreadable(error.to_string()))?;
    let title = html_escape::decode_html_entities(title.borrow().as_str())
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    Ok(Rewritten { html: written, title, missing: page.missing.into_inner() })
}

/// Returns the `href` of the page's first `<base>`.
fn base_href(html: &str) -> Result<Option<String>, Unreadable> {
    if !contains_ignoring_case(html, "<base") {
        return Ok(None);
    }
    let found = RefCell::new(None);
    let settings =
        RewriteStrSettings::new().append_element_content_handler(element!("base[href]", |element| {
            let href = element.get_attribute("href");
            found.borrow_mut().get_or_insert(href.unwrap_or_default());
            Ok(())
        }));
    rewrite_str(html, settings).map_err(|error| Unreadable(error.to_string()))?;
    Ok(found.into_inner())
}

fn contains_ignoring_case(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

struct Page<'a> {
    links: &'a Links,
    /// Base folder of references; `None` if it is on another site.
    base: Option<String>,
    has_policy: bool,
    missing: RefCell<BTreeSet<String>>,
}

/// How an attribute contains references.
enum Holds {
    One(Use),
    /// Several references, each with a width or density.
    Set,
    Style,
}

impl Page<'_> {
    fn attributes(&self, element: &mut Element<'_, '_>) -> Result<(), lol_html::errors::AttributeNameError> {
        let tag = element.tag_name();
        let about = |name: &str| element.get_attribute(name).unwrap_or_default().to_ascii_lowercase();
        let is_image_meta = tag == "meta" && {
            let name = format!("{} {}", about("property"), about("name"));
            ["og:image", "twitter:image", "msapplication-tileimage", "thumbnail"]
                .iter()
                .any(|word| name.contains(word))
        };
        let mut written = Vec::new();
        for attribute in element.attributes() {
            let name = attribute.name();
            let Some(holds) = holds(&tag, &name, is_image_meta) else { continue };
            // Attributes are returned as written, with character references.
            let value = html_escape::decode_html_entities(&attribute.value()).into_owned();
            let new = match holds {
                Holds::One(used) => self.link(&value, used, !name.starts_with("data-")),
                Holds::Set => self.set(&value),
                Holds::Style => self.css(&value),
            };
            written.extend(new.map(|new| (name, new)));
        }
        for (name, value) in written {
            // A digest of the original style sheet would not match the rewritten one.
            if tag == "link" && name == "href" && about_stylesheet(element) {
                element.remove_attribute("integrity");
            }
            element.set_attribute(&name, &value.replace('&', "&amp;"))?;
        }
        Ok(())
    }

    fn link(&self, reference: &str, used: Use, tells: bool) -> Option<String> {
        let used = if self.has_policy && used == Use::Embedded { Use::OwnOrigin } else { used };
        match self.links.link(self.base.as_deref()?, reference, used) {
            Linked::Unchanged => None,
            Linked::Replaced(to) => Some(to),
            Linked::Missing(to, path) => tells.then(|| {
                self.missing.borrow_mut().insert(path);
                to
            }),
        }
    }

    /// Rewrites a list such as `a.png 1x, b.png 2x`: a URL ends at white space, or at a comma after it (HTML,
    /// 4.8.4.2.1).
    fn set(&self, value: &str) -> Option<String> {
        let mut rest = value.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let mut candidates = Vec::new();
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
            let (reference, after) = rest.split_at(end);
            let bare = reference.trim_end_matches(',');
            let (size, next) = if bare.len() < reference.len() {
                ("", after)
            } else {
                after.split_once(',').unwrap_or((after, ""))
            };
            let linked = self.link(bare, Use::Embedded, true).unwrap_or_else(|| bare.to_owned());
            candidates.push(format!("{linked} {}", size.trim()).trim_end().to_owned());
            rest = next.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        }
        (!candidates.is_empty()).then(|| candidates.join(", "))
    }

    fn css(&self, text: &str) -> Option<String> {
        css::rewrite(text, |reference| self.link(reference, Use::Embedded, true))
    }
}

fn about_stylesheet(element: &Element<'_, '_>) -> bool {
    element.get_attribute("rel").is_some_and(|rel| rel.to_ascii_lowercase().contains("stylesheet"))
}

/// Returns what an attribute contains; `None` if no reference.
fn holds(tag: &str, name: &str, is_image_meta: bool) -> Option<Holds> {
    use Use::{Embedded, Followed, OwnOrigin};
    let one = |used| Some(Holds::One(used));
    match (tag, name) {
        (_, "style") => Some(Holds::Style),
        (_, "srcset" | "imagesrcset") => Some(Holds::Set),
        ("script" | "iframe" | "embed" | "frame", "src") | ("object", "data") => one(OwnOrigin),
        ("use", "href" | "xlink:href") => one(OwnOrigin),
        ("a" | "area", "href") | ("form", "action") | ("button" | "input", "formaction") => one(Followed),
        (_, "src" | "poster" | "background" | "data-src") => one(Embedded),
        ("link", "href") | ("image" | "feimage", "href" | "xlink:href") => one(Embedded),
        ("meta", "content") if is_image_meta => one(Embedded),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
