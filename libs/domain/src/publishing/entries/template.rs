//! Entry templates: HTML with `{{placeholders}}`, each escaped for its context.
//!
//! A template is rejected if a placeholder stands in code or decides what code runs: scripts, styles, comments, names
//! of tags and attributes, event handlers. Elsewhere its value is escaped for the context; a URL that would execute
//! code is replaced by an inert one. The same parser decides when the template is stored and when it is rendered.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value};

use super::placeholders::{self, Attribute};
use super::urls;
use super::value_text::value_text;

/// Maximum number of rendered bytes of a page's entries; the oldest entries beyond it are stored, but not rendered.
pub const RENDERED_BYTES_MAX: usize = 4 << 20;

/// Elements that load or declare resources: a visitor must not choose which.
const CLOSED_ELEMENTS: [&str; 14] = [
    "script",
    "style",
    "base",
    "link",
    "meta",
    "object",
    "embed",
    "applet",
    "param",
    "animate",
    "animatemotion",
    "animatetransform",
    "set",
    "frameset",
];
/// Attributes that contain one URL.
const ADDRESSES: [&str; 17] = [
    "href",
    "xlink:href",
    "src",
    "action",
    "formaction",
    "poster",
    "cite",
    "background",
    "data",
    "manifest",
    "longdesc",
    "usemap",
    "icon",
    "profile",
    "codebase",
    "dynsrc",
    "lowsrc",
];
/// Attributes that contain several URLs.
const ADDRESS_LISTS: [&str; 4] = ["srcset", "imagesrcset", "ping", "archive"];
/// Prefixes of attributes that the browser, or a script library, executes.
const RUN: [&str; 5] = ["on", "v-", "x-", "ng-", "hx-"];

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    /// Literal text.
    Plain(String),
    /// A value as text.
    Text(String),
    /// A value in a `style` attribute.
    Style(String),
    /// The value of an attribute that is a URL.
    Address(Vec<Part>),
    /// The value of an attribute that is a list of URLs.
    Addresses(Vec<Part>),
}

/// A part of a URL.
#[derive(Debug)]
enum Part {
    Plain(String),
    /// A value before the query.
    Value(String),
    /// A value in the query or the fragment.
    InQuery(String),
}

impl Piece {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Text(name) | Self::Style(name) => vec![name],
            Self::Address(parts) | Self::Addresses(parts) => parts.iter().filter_map(Part::name).collect(),
        }
    }
}

impl Part {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Plain(_) => None,
            Self::Value(name) | Self::InQuery(name) => Some(name),
        }
    }
}

/// The entries of a page as HTML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedEntries {
    pub html: String,
    /// How many entries fit.
    pub count: usize,
}

/// A template with one letter in place of each placeholder.
struct Filled {
    html: String,
    /// Position and name of each placeholder.
    at: Vec<(usize, String)>,
}

impl Template {
    /// Parses a template. The error is a sentence for its author.
    pub fn parse(template: &str) -> Result<Self, String> {
        let Filled { html, at } = fill(template)?;
        // The appended text and the element, which exists only between tags, show the context in which the next entry
        // would begin.
        let end = html.len();
        let found = placeholders::find(&format!("{html}x<i id=x>"))?;
        let is_text = |at: usize| found.text_at(at);
        if !is_text(end) || found.attributes.last().is_none_or(|last| last.value.start <= end) {
            return Err(
                "something is still open at its end: a tag, a comment, a script or the like".to_owned()
            );
        }
        if found.has_foreign_code {
            return Err("a script or style inside of svg or math can't be part of it".to_owned());
        }
        let mut template = Self { pieces: Vec::new() };
        let (mut next, mut done) = (at.iter().peekable(), 0);
        while let Some((position, name)) = next.next() {
            let Some(attribute) = found.attribute_at(*position) else {
                if !is_text(*position) {
                    return Err(format!("{{{{{name}}}}} may only stand in text or in an attribute's value"));
                }
                template.plain(&html[done..*position]);
                template.pieces.push(Piece::Text(name.clone()));
                done = position + 1;
                continue;
            };
            check_place(attribute, name)?;
            let mut inside = vec![(*position, name.clone())];
            while let Some(other) = next.next_if(|(position, _)| attribute.value.contains(position)) {
                inside.push(other.clone());
            }
            template.plain(&html[done..attribute.value.start]);
            template.attribute(attribute, &html, &inside)?;
            done = attribute.value.end;
        }
        template.plain(&html[done..]);
        Ok(template)
    }

    fn plain(&mut self, text: &str) {
        self.pieces.push(Piece::Plain(text.to_owned()));
    }

    fn attribute(&mut self, of: &Attribute, html: &str, inside: &[(usize, String)]) -> Result<(), String> {
        let is_quoted = html[..of.value.start].ends_with(['"', '\'']);
        if !is_quoted && html[of.value.clone()].contains(['"', '\'']) {
            return Err(format!("write the value of {} in quotes", of.name));
        }
        // An unquoted value ends at a space and can't be empty.
        let quote = if is_quoted { "" } else { "\"" };
        self.plain(quote);
        let parts = split(html, &of.value, inside);
        match of.name.as_str() {
            name if ADDRESSES.contains(&name) => self.pieces.push(Piece::Address(address(parts)?)),
            name if ADDRESS_LISTS.contains(&name) => self.pieces.push(Piece::Addresses(addresses(parts)?)),
            name => self.pieces.extend(parts.into_iter().map(|part| match part {
                Part::Plain(text) => Piece::Plain(text),
                Part::Value(value) | Part::InQuery(value) if name == "style" => Piece::Style(value),
                Part::Value(value) | Part::InQuery(value) => Piece::Text(value),
            })),
        }
        self.plain(quote);
        Ok(())
    }

    /// Returns the names of the placeholders, each once, in the order of their first use.
    pub fn names(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        self.pieces.iter().flat_map(Piece::names).filter(|name| seen.insert(*name)).collect()
    }

    /// Renders one entry.
    pub fn render(&self, data: &Map<String, Value>) -> String {
        let mut page = Rendered::default();
        page.add(self, data);
        page.html
    }

    /// Renders entries one after the other, newest first, as many as fit into [`RENDERED_BYTES_MAX`].
    pub fn render_newest(&self, entries: &[Value]) -> RenderedEntries {
        let (mut page, mut count) = (Rendered::default(), 0);
        for data in entries.iter().filter_map(Value::as_object) {
            let before = page.html.len();
            page.add(self, data);
            if page.is_full() {
                page.html.truncate(before);
                break;
            }
            count += 1;
        }
        RenderedEntries { html: page.html, count }
    }
}

/// The output so far.
#[derive(Default)]
struct Rendered {
    html: String,
    /// Bytes of values read, including those that rendered to nothing, because a template may name one value many
    /// times.
    read: Cell<usize>,
}

impl Rendered {
    fn is_full(&self) -> bool {
        self.html.len() > RENDERED_BYTES_MAX || self.read.get() > RENDERED_BYTES_MAX
    }

    /// Appends an entry, or as much of it as fits.
    fn add(&mut self, template: &Template, data: &Map<String, Value>) {
        let Self { html, read } = self;
        let value = |name: &str| {
            let text = data.get(name).and_then(value_text).unwrap_or_default();
            read.set(read.get() + text.len());
            text
        };
        for piece in &template.pieces {
            match piece {
                Piece::Plain(text) => html.push_str(text),
                Piece::Text(name) => escape(html, &value(name)),
                Piece::Style(name) => {
                    html.push_str(Some(value(name)).filter(|it| is_plain_style(it)).as_deref().unwrap_or(""));
                }
                Piece::Address(parts) => write_address(html, parts, false, value),
                Piece::Addresses(parts) => write_address(html, parts, true, value),
            }
            if html.len() > RENDERED_BYTES_MAX || read.get() > RENDERED_BYTES_MAX {
                return;
            }
        }
    }
}

/// Replaces the placeholders.
fn fill(template: &str) -> Result<Filled, String> {
    let (mut html, mut at, mut rest) = (String::new(), Vec::new(), template);
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) = after.split_once("}}").ok_or("a {{ has no }}")?;
        let name = inside.trim();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
            let shown: String = inside.chars().take(40).collect();
            return Err(format!(
                "{{{{{shown}}}}} is no placeholder: letters, digits, `_`, `-` and `.`, at most 64"
            ));
        }
        html.push_str(before);
        at.push((html.len(), name.to_owned()));
        html.push('x');
        rest = after;
    }
    html.push_str(rest);
    Ok(Filled { html, at })
}

/// Checks whether a placeholder may stand in the attribute.
fn check_place(attribute: &Attribute, name: &str) -> Result<(), String> {
    let Attribute { element, name: attribute_name, is_only, .. } = attribute;
    let reject =
        |why: &str| Err(format!("{{{{{name}}}}} may not stand in `{attribute_name}` of `{element}`: {why}"));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if CLOSED_ELEMENTS.contains(&element.as_str()) {
        return reject("it decides what is loaded or run");
    }
    let is_known = attribute_name == "xlink:href" || attribute_name.chars().all(plain);
    let is_run = RUN.iter().any(|run| attribute_name.starts_with(run)) || attribute_name == "srcdoc";
    if !is_known || is_run {
        return reject("its value is run");
    }
    if !is_only {
        return reject("the attribute is there twice");
    }
    Ok(())
}

/// Splits the value of an attribute at its placeholders.
fn split(html: &str, value: &Range<usize>, inside: &[(usize, String)]) -> Vec<Part> {
    let (mut parts, mut done) = (Vec::new(), value.start);
    for (position, name) in inside {
        parts.push(Part::Plain(html[done..*position].to_owned()));
        parts.push(Part::Value(name.clone()));
        done = position + 1;
    }
    parts.push(Part::Plain(html[done..value.end].to_owned()));
    parts
}

/// Parses a URL: its literal parts decide its scheme and where its query begins.
fn address(parts: Vec<Part>) -> Result<Vec<Part>, String> {
    let (mut before, mut has_value, mut in_query, mut settled) = (String::new(), false, false, false);
    let mut read = Vec::new();
    for part in parts {
        let Part::Plain(text) = part else {
            let (Part::Value(name) | Part::InQuery(name)) = part else { continue };
            has_value = true;
            read.push(if in_query { Part::InQuery(name) } else { Part::Value(name) });
            continue;
        };
        if !settled {
            let scheme_end = text.find([':', '/', '?', '#', '\\']).unwrap_or(text.len());
            // `&colon;` is a colon too.
            if text[..scheme_end].contains('&') {
                return Err("write the beginning of an address plainly, without `&`".to_owned());
            }
            settled = scheme_end < text.len();
            before.push_str(&text[..scheme_end]);
            if settled && !has_value && text[scheme_end..].starts_with(':') && !urls::is_scheme(before.trim())
            {
                return Err(format!("an address of `{}:` may hold no placeholder", before.trim()));
            }
        }
        in_query |= text.contains(['?', '#']);
        read.push(Part::Plain(text));
    }
    Ok(read)
}

fn addresses(parts: Vec<Part>) -> Result<Vec<Part>, String> {
    if parts.iter().any(|part| matches!(part, Part::Plain(text) if text.contains('&'))) {
        return Err("write a list of addresses plainly, without `&`".to_owned());
    }
    Ok(parts)
}

fn write_address(html: &mut String, parts: &[Part], is_list: bool, value: impl Fn(&str) -> String) {
    let mut whole = String::new();
    for part in parts {
        match part {
            Part::Plain(text) => whole.push_str(text),
            Part::Value(name) | Part::InQuery(name) => whole.push_str(&value(name)),
        }
    }
    let between = |c: char| is_list && (c.is_ascii_whitespace() || c == ',');
    if !whole.split(between).all(urls::may_be_followed) {
        html.push_str(urls::REFUSED);
        return;
    }
    for part in parts {
        match part {
            Part::Plain(text) => html.push_str(text),
            Part::Value(name) if is_list => escape(html, &value(name)),
            Part::Value(name) => escape(html, &urls::in_address(&value(name))),
            Part::InQuery(name) => escape(html, &urls::in_query(&value(name))),
        }
    }
}

/// Returns whether a value stays inside one CSS declaration: words, numbers, colours, lengths.
fn is_plain_style(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || " #%.,+_-".contains(c))
}

/// Escapes text for element content and for attributes in either kind of quotes.
fn escape(html: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(c),
        }
    }
}
