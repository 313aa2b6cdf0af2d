//! Path patterns of `_redirects` and `_headers`: literal segments, placeholders (`:name`, one whole segment) and at most
//! one `*`, which matches any text, slashes included.
//!
//! With one `*` no part of a path has to be tried twice: segments before it are compared from the left, segments after
//! it from the right. So a match takes time linear in the length of the path.

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::site_path::{self, PATH_BYTES_MAX, RequestPath};

/// The name under which a target refers to the text of `*`.
pub const SPLAT: &str = "splat";

/// A parsed pattern. In JSON it is its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: String,
    head: Vec<Segment>,
    /// The rest, from the segment with the `*` on.
    splat: Option<Splat>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Placeholder(String),
}

/// The segment with the `*`, and the segments after it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Splat {
    prefix: String,
    suffix: String,
    tail: Vec<Segment>,
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Lacks the leading slash.
    #[error("a path starts with `/`")]
    NotAbsolute,
    /// Longer than any path.
    #[error("a path has at most {PATH_BYTES_MAX} bytes")]
    TooLong,
    /// Contains a query or fragment.
    #[error("a path has no `?` or `#`; write a query as `name=value` after it")]
    Query,
    /// Contains a character or segment that no path of a file has.
    #[error("no file has a path with `..`, a backslash, a control character or an encoded slash")]
    NoPath,
    /// Several `*`.
    #[error("only one `*` is supported")]
    Splats,
    /// A placeholder's name is invalid or taken.
    #[error(
        "a placeholder is a whole segment such as `:name`, with a name that occurs once and is not `splat`"
    )]
    Placeholder,
    /// Matches only addresses of the platform.
    #[error("the path is reserved for the platform")]
    Reserved,
}

/// A request path, split once for all patterns.
#[derive(Debug)]
pub struct Subject {
    segments: Vec<String>,
    is_folder: bool,
}

/// The texts that placeholders and `*` matched, by name.
pub type Captures = Vec<(String, String)>;

impl Subject {
    /// Splits a request path.
    pub fn new(request: &RequestPath) -> Self {
        let segments = request.path().split('/').filter(|segment| !segment.is_empty());
        Self { segments: segments.map(str::to_owned).collect(), is_folder: request.is_folder() }
    }
}

impl Pattern {
    /// Parses a pattern. Literal parts may be percent-encoded.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        check_text(text)?;
        let mut pattern = Self { text: text.to_owned(), head: Vec::new(), splat: None };
        for segment in text.split('/').filter(|segment| !matches!(*segment, "" | ".")) {
            let Some((prefix, suffix)) = segment.split_once('*') else {
                let segment = Segment::parse(segment)?;
                pattern.splat.as_mut().map_or(&mut pattern.head, |splat| &mut splat.tail).push(segment);
                continue;
            };
            if pattern.splat.is_some() || suffix.contains('*') {
                return Err(PatternError::Splats);
            }
            let (prefix, suffix) = (literal(prefix)?, literal(suffix)?);
            pattern.splat = Some(Splat { prefix, suffix, tail: Vec::new() });
        }
        pattern.check_names()?;
        if pattern.is_reserved() { Err(PatternError::Reserved) } else { Ok(pattern) }
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the names that a target may use, `splat` included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let tail = self.splat.iter().flat_map(|splat| &splat.tail);
        let placeholders = self.head.iter().chain(tail).filter_map(|segment| match segment {
            Segment::Placeholder(name) => Some(name.as_str()),
            Segment::Literal(_) => None,
        });
        placeholders.chain(self.splat.iter().map(|_| SPLAT))
    }

    /// Returns whether the pattern matches. A trailing slash makes no difference, and `/a/*` matches `/a` too.
    pub fn matches(&self, subject: &Subject) -> bool {
        self.parts(subject).is_some_and(|(head, middle, tail)| {
            let Some(splat) = &self.splat else { return middle.is_empty() && do_match(&self.head, head) };
            do_match(&self.head, head) && do_match(&splat.tail, tail) && splat.matches(middle)
        })
    }

    /// Returns the captured texts if the pattern matches. The text of `*` may be empty.
    pub fn captures(&self, subject: &Subject) -> Option<Captures> {
        if !self.matches(subject) {
            return None;
        }
        let (head, middle, tail) = self.parts(subject)?;
        let mut captures = Captures::new();
        capture(&self.head, head, &mut captures);
        if let Some(splat) = &self.splat {
            capture(&splat.tail, tail, &mut captures);
            let ends_in_folder = subject.is_folder && splat.tail.is_empty() && splat.suffix.is_empty();
            captures.push((SPLAT.to_owned(), splat.text(middle, ends_in_folder)));
        }
        Some(captures)
    }

    /// Returns the segments that head, `*` and tail are compared with; `None` if the path is too short.
    fn parts<'a>(&self, subject: &'a Subject) -> Option<(&'a [String], &'a [String], &'a [String])> {
        let (head, rest) = subject.segments.split_at_checked(self.head.len())?;
        let tail = self.splat.as_ref().map_or(0, |splat| splat.tail.len());
        let (middle, tail) = rest.split_at_checked(rest.len().checked_sub(tail)?)?;
        Some((head, middle, tail))
    }

    /// Returns the only path that the pattern matches, if it has no placeholder and no `*`.
    pub(super) fn fixed_path(&self) -> Option<String> {
        let is_fixed = self.names().next().is_none();
        is_fixed.then(|| self.sample(str::to_owned).path().to_owned())
    }

    /// Returns a path that the pattern matches, with each placeholder and the `*` replaced by `fill(name)`.
    pub(super) fn sample(&self, fill: impl Fn(&str) -> String) -> RequestPath {
        let of_segment = |segment: &Segment| match segment {
            Segment::Literal(text) => text.clone(),
            Segment::Placeholder(name) => fill(name),
        };
        let mut segments: Vec<String> = self.head.iter().map(of_segment).collect();
        if let Some(splat) = &self.splat {
            segments.push(format!("{}{}{}", splat.prefix, fill(SPLAT), splat.suffix));
            segments.extend(splat.tail.iter().map(of_segment));
        }
        RequestPath::of_segments(&segments)
    }

    fn check_names(&self) -> Result<(), PatternError> {
        let mut names: Vec<&str> = self.names().collect();
        names.sort_unstable();
        let is_twice = names.windows(2).any(|pair| pair[0] == pair[1]);
        if is_twice { Err(PatternError::Placeholder) } else { Ok(()) }
    }

    fn is_reserved(&self) -> bool {
        let literal = |segment: &Segment| match segment {
            Segment::Literal(text) => Some(text.clone()),
            Segment::Placeholder(_) => None,
        };
        let path: Vec<String> = self.head.iter().map_while(literal).collect();
        site_path::is_reserved(&path.join("/"))
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self, PatternError> {
        match text.strip_prefix(':') {
            Some(name) if is_name(name) => Ok(Self::Placeholder(name.to_owned())),
            Some(_) => Err(PatternError::Placeholder),
            None => literal(text).map(Self::Literal),
        }
    }
}

impl Splat {
    /// Returns whether these segments have the prefix and the suffix, without overlap.
    fn matches(&self, middle: &[String]) -> bool {
        let (Some(first), Some(last)) = (middle.first(), middle.last()) else {
            return self.prefix.is_empty() && self.suffix.is_empty();
        };
        let is_long_enough = middle.len() > 1 || first.len() >= self.prefix.len() + self.suffix.len();
        is_long_enough && first.starts_with(&self.prefix) && last.ends_with(&self.suffix)
    }

    /// Returns the text between prefix and suffix of segments that match.
    fn text(&self, middle: &[String], ends_in_folder: bool) -> String {
        let joined = middle.join("/");
        let text = joined.strip_prefix(&self.prefix).and_then(|text| text.strip_suffix(&self.suffix));
        let mut text = text.unwrap_or_default().to_owned();
        if ends_in_folder && !text.is_empty() {
            text.push('/');
        }
        text
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

/// Returns whether a text is the name of a placeholder.
pub fn is_name(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_first) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && text != SPLAT
}

fn check_text(text: &str) -> Result<(), PatternError> {
    if !text.starts_with('/') {
        return Err(PatternError::NotAbsolute);
    }
    if text.len() > PATH_BYTES_MAX {
        return Err(PatternError::TooLong);
    }
    if text.contains(['?', '#']) { Err(PatternError::Query) } else { Ok(()) }
}

/// Returns a literal part, decoded as requests are.
fn literal(text: &str) -> Result<String, PatternError> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| PatternError::NoPath)?;
    if decoded == ".." || decoded.contains(['/', '\\']) || decoded.chars().any(char::is_control) {
        return Err(PatternError::NoPath);
    }
    Ok(decoded.nfc().collect())
}

fn do_match(pattern: &[Segment], segments: &[String]) -> bool {
    pattern.iter().zip(segments).all(|(pattern, segment)| match pattern {
        Segment::Literal(text) => text == segment,
        Segment::Placeholder(_) => true,
    })
}

fn capture(pattern: &[Segment], segments: &[String], captures: &mut Captures) {
    for (pattern, segment) in pattern.iter().zip(segments) {
        if let Segment::Placeholder(name) = pattern {
            captures.push((name.clone(), segment.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn captured(pattern: &str, sent: &str) -> Option<String> {
        let request = RequestPath::parse(sent).unwrap();
        let captures = Pattern::parse(pattern).unwrap().captures(&Subject::new(&request))?;
        let texts: Vec<String> = captures.iter().map(|(name, text)| format!("{name}={text}")).collect();
        Some(texts.join(" "))
    }

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, sent, captures) in [
            ("/", "/", Some("")),
            ("/a", "/a", Some("")),
            ("/a", "/a/", Some("")),
            ("/a/", "/a", Some("")),
            ("/a", "/ab", None),
            ("/a", "/a/b", None),
            ("/A", "/a", None),
            ("/caf%C3%A9", "/café", Some("")),
            ("/café", "/cafe%CC%81", Some("")),
            ("/:x/b", "/a/b", Some("x=a")),
            ("/:x/b", "/b", None),
            ("/:year/:month", "/2024/01/", Some("year=2024 month=01")),
            ("/*", "/", Some("splat=")),
            ("/*", "/a/b", Some("splat=a/b")),
            ("/a/*", "/a", Some("splat=")),
            ("/a/*", "/a/b/c/", Some("splat=b/c/")),
            ("/a/*", "/ab", None),
            ("/a*", "/abc/d", Some("splat=bc/d")),
            ("/*.css", "/x/y.css", Some("splat=x/y")),
            ("/*.css", "/x/y.css/", Some("splat=x/y")),
            ("/ab*ba", "/aba", None),
            ("/ab*ba", "/abba", Some("splat=")),
            ("/a/*/z", "/a/b/c/z", Some("splat=b/c")),
            ("/a/*/:n/z", "/a/b/c/z", Some("n=c splat=b")),
            ("/a/*/z", "/a/z", Some("splat=")),
            ("/a/*/z", "/a", None),
        ] {
            assert_eq!(captured(pattern, sent).as_deref(), captures, "{pattern} {sent}");
        }
    }

    #[test]
    fn invalid_patterns_say_why() {
        for (text, why) in [
            ("a", PatternError::NotAbsolute),
            ("", PatternError::NotAbsolute),
            ("/a?b", PatternError::Query),
            ("/a#b", PatternError::Query),
            ("/*/*", PatternError::Splats),
            ("/a**", PatternError::Splats),
            ("/:a/:a", PatternError::Placeholder),
            ("/:splat", PatternError::Placeholder),
            ("/:1", PatternError::Placeholder),
            ("/:a.html", PatternError::Placeholder),
            ("/../a", PatternError::NoPath),
            ("/a\\b", PatternError::NoPath),
            ("/a%2Fb", PatternError::NoPath),
            ("/%0d%0a", PatternError::NoPath),
            ("/%ff", PatternError::NoPath),
            ("/_wr/*", PatternError::Reserved),
            ("/%5fwr/collect", PatternError::Reserved),
            ("/.well-known/acme-challenge/*", PatternError::Reserved),
            (&format!("/{}", "a".repeat(1_024)), PatternError::TooLong),
        ] {
            assert_eq!(Pattern::parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn a_pattern_is_stored_as_its_text() {
        let pattern = Pattern::parse("/a/:x/*").unwrap();
        let json = serde_json::to_string(&pattern).unwrap();
        assert_eq!(json, "\"/a/:x/*\"");
        assert_eq!(serde_json::from_str::<Pattern>(&json).unwrap(), pattern);
        assert!(serde_json::from_str::<Pattern>("\"/*/*\"").is_err());
    }

    /// The pattern as a regular expression.
    fn described(pattern: &str) -> regex::Regex {
        let segments = pattern.split('/').filter(|segment| !segment.is_empty());
        let mut text = String::new();
        for segment in segments {
            text.push_str(&match segment {
                "*" => "(/.*)?".to_owned(),
                _ if segment.starts_with(':') => "/[^/]+".to_owned(),
                _ => format!("/{}", regex::escape(segment).replace("\\*", ".*")),
            });
        }
        regex::Regex::new(&format!("^{text}/?$")).unwrap()
    }

    proptest! {
        #[test]
        fn patterns_match_as_their_regular_expressions(
            head in "(/(a|b|ab)){0,1}(/:x)?(/(a|b))?",
            middle in "(/\\*|/a\\*|/\\*b|/a\\*b|)",
            tail in "(/(a|b))?(/:y)?(/(a|b))?",
            path in "(/(a|b|ab|aab)){0,5}/?",
        ) {
            let pattern = format!("/{head}{middle}{tail}").replace("//", "/");
            let request = RequestPath::parse(&format!("/{path}")).unwrap();
            let parsed = Pattern::parse(&pattern).unwrap();
            let captures = parsed.captures(&Subject::new(&request));
            let canonical = format!("/{}", request.path());
            prop_assert_eq!(captures.is_some(), described(&pattern).is_match(&canonical), "{} {}", pattern, path);
            if let Some(captures) = captures {
                let captured: Vec<&str> = captures.iter().map(|(name, _)| name.as_str()).collect();
                prop_assert_eq!(captured, parsed.names().collect::<Vec<_>>());
            }
        }
    }
}
