//! Rewrites the references of a page to images and fonts, and extracts the title and missing paths.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use lol_html::errors::RewritingError;
use lol_html::html_content::{ContentType, Element, TextType};
use lol_html::{HandlerResult, HtmlRewriter, MemorySettings, Settings, element, text};

use super::css;
use super::links::{Linked, Links, Use};
use crate::pages::MAX_HTML_BYTES;

/// Upper bound of the parser's open elements and attributes of a page: half a megabyte of HTML can hold a quarter of a
/// million of either.
const PARSER_BYTES_MAX: usize = 16 << 20;
/// Further missing paths of a page are not reported: each can have a thousand bytes.
const MISSING_MAX: usize = 1_000;

/// A rewritten page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub html: String,
    /// Title of the page; empty if it has none.
    pub title: String,
    /// Referenced paths that don't exist, at most a thousand.
    pub missing: BTreeSet<String>,
}

/// The reason why a page can't be rewritten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// It can't be parsed.
    #[error("it can't be read as HTML: {0}")]
    Unreadable(String),
    /// The rewritten page would exceed the limit of a page.
    #[error("with its references written out it has more than {} KB", MAX_HTML_BYTES >> 10)]
    TooLarge,
}

/// Rewrites the page at a path of the site.
pub fn rewrite(document: &str, html: &str, links: &Links) -> Result<Rewritten, RewriteError> {
    let base_href = base_href(html)?;
    let base = Links::base(document, base_href.as_deref());
    // A page with its own policy would block images at other URLs.
    let has_policy = contains_ignoring_case(html, "content-security-policy");
    let page = Page { links, base, has_policy, missing: RefCell::default(), is_full: Cell::new(false) };
    let (title, in_title) = (RefCell::new(String::new()), Cell::new(false));
    let style = RefCell::new(String::new());
    let settings = settings()
        .append_element_content_handler(element!("*", |element| {
            page.check_is_not_full()?;
            in_title.set(false);
            if element.tag_name() == "title" {
                in_title.set(title.borrow().is_empty());
            }
            page.attributes(element)
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
                let written = page.css(&whole)?.unwrap_or(whole);
                // Only a rewritten reference could contain an end tag, and its `<` is escaped.
                chunk.replace(&written, ContentType::Html);
            } else {
                chunk.remove();
            }
            Ok(())
        }));
    let mut written = Vec::with_capacity(html.len());
    let run = run(html, settings, |chunk| {
        if written.len() + chunk.len() > MAX_HTML_BYTES {
            page.is_full.set(true);
        } else {
            written.extend_from_slice(chunk);
        }
    });
    if page.is_full.get() {
        return Err(RewriteError::TooLarge);
    }
    run?;
    let html = String::from_utf8(written).map_err(|error| RewriteError::Unreadable(error.to_string()))?;
    let title = html_escape::decode_html_entities(title.borrow().as_str())
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    Ok(Rewritten { html, title, missing: page.missing.into_inner() })
}

fn settings<'h, 's>() -> Settings<'h, 's> {
    Settings::new()
        .with_memory_settings(MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES_MAX))
}

fn run(html: &str, settings: Settings<'_, '_>, sink: impl FnMut(&[u8])) -> Result<(), RewriteError> {
    let unreadable = |error: RewritingError| RewriteError::Unreadable(error.to_string());
    let mut rewriter = HtmlRewriter::new(settings, sink);
    rewriter.write(html.as_bytes()).map_err(unreadable)?;
    rewriter.end().map_err(unreadable)
}

/// Returns the `href` of the page's first `<base>`.
fn base_href(html: &str) -> Result<Option<String>, RewriteError> {
    if !contains_ignoring_case(html, "<base") {
        return Ok(None);
    }
    let found = RefCell::new(None);
    let settings = settings().append_element_content_handler(element!("base[href]", |element| {
        found.borrow_mut().get_or_insert_with(|| element.get_attribute("href").unwrap_or_default());
        Ok(())
    }));
    run(html, settings, |_| {})?;
    Ok(found.into_inner())
}

fn contains_ignoring_case(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

struct Page<'a> {
    links: &'a Links,
    /// Base folder of references; `None` if they stay as they are.
    base: Option<String>,
    has_policy: bool,
    missing: RefCell<BTreeSet<String>>,
    /// Whether the rewritten page has exceeded its limit.
    is_full: Cell<bool>,
}

/// How an attribute contains references.
enum Holds {
    One(Use),
    /// Several references, each with a width or density.
    Set,
    Style,
}

impl Page<'_> {
    fn check_is_not_full(&self) -> Result<(), RewriteError> {
        if self.is_full.get() { Err(RewriteError::TooLarge) } else { Ok(()) }
    }

    fn attributes(&self, element: &mut Element<'_, '_>) -> HandlerResult {
        let tag = element.tag_name();
        let about = |name: &str| element.get_attribute(name).unwrap_or_default().to_ascii_lowercase();
        let is_image_meta = tag == "meta" && {
            let name = format!("{} {}", about("property"), about("name"));
            ["og:image", "twitter:image", "msapplication-tileimage", "thumbnail"]
                .iter()
                .any(|word| name.contains(word))
        };
        // Browsers use the first of several attributes with the same name.
        let mut seen = BTreeSet::new();
        let mut written = Vec::new();
        for attribute in element.attributes() {
            let name = attribute.name();
            let Some(holds) = holds(&tag, &name, is_image_meta) else { continue };
            if !seen.insert(name.clone()) {
                continue;
            }
            // Attributes are returned as written, with character references.
            let value = html_escape::decode_html_entities(&attribute.value()).into_owned();
            let new = match holds {
                Holds::One(used) => self.link(&value, used, !name.starts_with("data-")),
                Holds::Set => self.set(&value)?,
                Holds::Style => self.css(&value)?,
            };
            written.extend(new.map(|new| (name, new)));
        }
        if tag == "link"
            && let Some(integrity) = self.new_integrity(element)
        {
            written.push(("integrity".to_owned(), integrity));
        }
        for (name, value) in written {
            element.set_attribute(&name, &value.replace('&', "&amp;"))?;
        }
        Ok(())
    }

    fn link(&self, reference: &str, used: Use, tells: bool) -> Option<String> {
        let used = if self.has_policy && used == Use::Embedded { Use::OwnOrigin } else { used };
        match self.links.link(self.base.as_deref()?, reference, used) {
            Linked::Unchanged => None,
            Linked::Replaced(to) => Some(to),
            Linked::Missing(path) => {
                let mut missing = self.missing.borrow_mut();
                if tells && missing.len() < MISSING_MAX {
                    missing.insert(path);
                }
                None
            }
        }
    }

    /// Returns the integrity metadata of a rewritten style sheet, if the element has one for the original.
    fn new_integrity(&self, link: &Element<'_, '_>) -> Option<String> {
        let href = link.get_attribute("href").filter(|_| link.has_attribute("integrity"))?;
        let href = html_escape::decode_html_entities(&href).into_owned();
        self.links.new_integrity(self.base.as_deref()?, &href).map(str::to_owned)
    }

    /// Rewrites a list such as `a.png 1x, b.png 2x`: a URL ends at white space, or at a comma after it (HTML,
    /// 4.8.4.2.1).
    fn set(&self, value: &str) -> Result<Option<String>, RewriteError> {
        let mut rest = value.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let (mut written, mut is_changed) = (String::new(), false);
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
            let (reference, after) = rest.split_at(end);
            let bare = reference.trim_end_matches(',');
            let (size, next) = if bare.len() < reference.len() {
                ("", after)
            } else {
                after.split_once(',').unwrap_or((after, ""))
            };
            let linked = self.link(bare, Use::Embedded, true);
            is_changed |= linked.is_some();
            let linked = linked.as_deref().unwrap_or(bare);
            if !written.is_empty() {
                written.push_str(", ");
            }
            written.push_str(format!("{linked} {}", size.trim()).trim_end());
            if written.len() > MAX_HTML_BYTES {
                return Err(self.full());
            }
            rest = next.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        }
        Ok(is_changed.then_some(written))
    }

    fn css(&self, text: &str) -> Result<Option<String>, RewriteError> {
        let link = |reference: &str| self.link(reference, Use::Embedded, true);
        css::rewrite(text, MAX_HTML_BYTES, link).map_err(|css::TooLarge| self.full())
    }

    fn full(&self) -> RewriteError {
        self.is_full.set(true);
        RewriteError::TooLarge
    }
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
