//! Targets of rules: a path of the same site, or a URL of another host. Captured texts are percent-encoded where they are
//! inserted, and never in the host, so no request chooses the host or a header of the response.

use percent_encoding::{AsciiSet, utf8_percent_encode};
use url::Url;

use crate::static_sites::patterns::SPLAT;
use crate::url_escapes;

/// Maximum length of a target in the file, in bytes.
const TARGET_BYTES_MAX: usize = 2_000;
/// Maximum length of an expanded target: a target may repeat a placeholder.
pub(super) const EXPANDED_BYTES_MAX: usize = 8_192;

/// Characters of the text of a `*` that are escaped: its slashes stay.
const SPLAT_ESCAPED: &AsciiSet = &url_escapes::SEGMENT.remove(b'/');

/// A parsed target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    parts: Vec<Part>,
    is_own_site: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Captured(String),
}

impl Target {
    /// Parses a target with placeholders of these names; the error says what is wrong.
    pub(super) fn parse(text: &str, names: &[&str]) -> Result<Self, String> {
        if text.len() > TARGET_BYTES_MAX {
            return Err(format!("a target has at most {TARGET_BYTES_MAX} bytes"));
        }
        if text.contains('\\') || text.chars().any(char::is_control) {
            return Err("a target has no backslash and no control character".to_owned());
        }
        if text.starts_with("//") {
            return Err(
                "a target that starts with `//` names another host: write `https://` before it".to_owned()
            );
        }
        let is_own_site = text.starts_with('/');
        let path_at = if is_own_site { 0 } else { check_origin(text)? };
        let path = text[path_at..].split(['?', '#']).next().unwrap_or_default();
        if path.split('/').any(|segment| segment == "..") {
            return Err("a target has no `..`".to_owned());
        }
        let mut parts = vec![Part::Literal(text[..path_at].to_owned())];
        parts.extend(parts_of(&text[path_at..], names));
        Ok(Self { parts, is_own_site })
    }

    /// Whether the target is a path of the same site.
    pub(super) fn is_own_site(&self) -> bool {
        self.is_own_site
    }

    /// Returns the target with captured texts, as visible ASCII. `None` if it would be too long.
    pub(super) fn expand(&self, captures: &[(String, String)]) -> Option<String> {
        let mut expanded = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => expanded.push_str(text),
                Part::Captured(name) => {
                    let set = if name == SPLAT { SPLAT_ESCAPED } else { url_escapes::SEGMENT };
                    let (_, text) = captures.iter().find(|(captured, _)| captured == name)?;
                    expanded.extend(utf8_percent_encode(text, set));
                }
            }
            if expanded.len() > EXPANDED_BYTES_MAX {
                return None;
            }
        }
        Some(if self.is_own_site { with_single_slashes(&expanded) } else { expanded })
    }
}

/// Checks the scheme and host of a URL. Returns the length of both.
fn check_origin(text: &str) -> Result<usize, String> {
    let scheme = text.find("://").map_or(0, |at| at + 3);
    let end = text[scheme..].find(['/', '?', '#']).map_or(text.len(), |at| scheme + at);
    let origin = &text[..end];
    let url =
        Url::parse(origin).map_err(|_| "its target is no valid URL; a host has no placeholder".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("a target is a path, or a URL with `http` or `https`".to_owned());
    }
    if origin.contains(['@', '*', '%']) || !origin.is_ascii() {
        return Err(
            "the host of a target has no user name, placeholder or escape; write it in ASCII".to_owned()
        );
    }
    Ok(end)
}

/// Splits a text at its placeholders. A `:` before another name is kept as it is.
fn parts_of(text: &str, names: &[&str]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(':') {
        let after = &rest[at + 1..];
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        literal.push_str(&rest[..at]);
        if names.contains(&&after[..end]) {
            parts.push(Part::Literal(escaped(&literal)));
            parts.push(Part::Captured(after[..end].to_owned()));
            literal.clear();
        } else {
            literal.push_str(&rest[at..=at + end]);
        }
        rest = &after[end..];
    }
    literal.push_str(rest);
    parts.push(Part::Literal(escaped(&literal)));
    parts
}

/// Returns a literal text as in a URL. `%` is kept where it begins an escape.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for (index, piece) in text.split('%').enumerate() {
        let is_escape = piece.len() >= 2 && piece.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
        if index > 0 {
            escaped.push_str(if is_escape { "%" } else { "%25" });
        }
        escaped.extend(utf8_percent_encode(piece, url_escapes::FORBIDDEN));
    }
    escaped
}

/// Returns a target on the same site without empty segments: an empty capture between two slashes would make the next
/// segment a host.
fn with_single_slashes(target: &str) -> String {
    let (path, rest) = target.split_at(target.find(['?', '#']).unwrap_or(target.len()));
    let mut single = String::with_capacity(target.len());
    for c in path.chars() {
        if c != '/' || !single.ends_with('/') {
            single.push(c);
        }
    }
    single + rest
}
