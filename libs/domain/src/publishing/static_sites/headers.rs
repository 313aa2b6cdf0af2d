//! Response headers of a site's `_headers`, in Netlify's syntax: a path on a line, and below it `Name: value` lines.
//!
//! - A path has placeholders and at most one `*`; see [`patterns`](super::patterns). A trailing slash makes no
//!   difference.
//! - Only the headers of an [allow list](allowed) are set. All others are ignored, with a note.
//! - All paths that match a request apply, in the order of the file. Several values of a header are joined by `, `;
//!   where a header has one value alone, the last one counts. `Cache-Control` is joined below one path, and replaced by
//!   later paths.
//! - `! Name` removes the values that paths further up have set, and never a header of the platform.
//! - `X-Robots-Tag` never weakens the platform's own.

mod allowed;
mod robots;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::deploy_notes::{Note, Notes, shown};
use super::patterns::{Pattern, Subject};
use super::redirects::read_text;
use super::site_path::{self, RequestPath};
use allowed::{Merge, is_allowed, merge_of};

pub use robots::stricter_robots;

/// Name of the file, at the site's root.
pub const FILE: &str = "_headers";
/// Maximum number of paths.
pub const PATHS_MAX: usize = 1_000;
/// Maximum length of a value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4_096;
/// Maximum size of the headers of one response, names and values together. Further values are left out.
pub const RESPONSE_BYTES_MAX: usize = 16 * 1024;

/// The header rules of a site, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HeaderRules {
    paths: Vec<PathHeaders>,
}

/// The headers below one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PathHeaders {
    path: Pattern,
    headers: Vec<HeaderLine>,
}

/// A header that is set, or removed if it has no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeaderLine {
    /// In lower case.
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

/// A header of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderValue {
    /// In lower case.
    pub name: String,
    /// Visible ASCII and spaces.
    pub value: String,
}

impl HeaderRules {
    /// Parses the file. Returns the rules, and a note for each ignored line. A file that is too large or not UTF-8 has no
    /// rules.
    pub fn parse(bytes: &[u8]) -> (Self, Vec<Note>) {
        let mut notes = Notes::default();
        let mut parser = Parser { rules: Self::default(), is_path_valid: false, has_path: false };
        match read_text(bytes) {
            Ok(text) => {
                for (line, number) in text.lines().zip(1..) {
                    if let Err(reason) = parser.read(line.trim()) {
                        notes.push_line(FILE, number, reason);
                    }
                }
            }
            Err(reason) => notes.push_file(FILE, reason),
        }
        parser.rules.paths.retain(|path| !path.headers.is_empty());
        (parser.rules, notes.finish())
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns the headers of a response. `own_robots` is the platform's own `X-Robots-Tag` for it, which the returned
    /// one, if any, contains.
    pub fn headers_of(&self, request: &RequestPath, own_robots: Option<&str>) -> Vec<HeaderValue> {
        let mut response = ResponseHeaders::default();
        if site_path::is_reserved(request.path()) {
            return response.headers;
        }
        let subject = Subject::new(request);
        for path in self.paths.iter().filter(|path| path.path.matches(&subject)) {
            response.apply(&path.headers);
        }
        for header in response.headers.iter_mut().filter(|header| header.name == "x-robots-tag") {
            header.value = stricter_robots(&header.value, own_robots);
        }
        response.headers.retain(|header| !header.value.is_empty());
        response.headers
    }
}

/// Reads lines in order.
struct Parser {
    rules: HeaderRules,
    has_path: bool,
    is_path_valid: bool,
}

impl Parser {
    /// Reads a trimmed line; the error says why it is ignored.
    fn read(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let is_url = line.starts_with("https://") || line.starts_with("http://");
        if line.starts_with('/') || is_url {
            (self.has_path, self.is_path_valid) = (true, false);
            let headers = "the headers below it are ignored";
            if is_url {
                return Err(format!("paths with a domain are not supported: start with `/`; {headers}"));
            }
            if self.rules.paths.len() == PATHS_MAX {
                return Err(format!("a site has headers for at most {PATHS_MAX} paths; {headers}"));
            }
            let path =
                Pattern::parse(line).map_err(|error| format!("`{}`: {error}; {headers}", shown(line)))?;
            self.rules.paths.push(PathHeaders { path, headers: Vec::new() });
            self.is_path_valid = true;
            return Ok(());
        }
        if !self.has_path {
            return Err("a header comes below a path, such as `/*`".to_owned());
        }
        let header = header_line(line)?;
        if self.is_path_valid
            && let Some(path) = self.rules.paths.last_mut()
        {
            path.headers.push(header);
        }
        Ok(())
    }
}

/// Parses `Name: value` or `! Name`.
fn header_line(line: &str) -> Result<HeaderLine, String> {
    if let Some(name) = line.strip_prefix('!') {
        return Ok(HeaderLine { name: header_name(name)?, value: None });
    }
    let (name, value) = line.split_once(':').ok_or("a header is `Name: value`")?;
    let name = header_name(name)?;
    let value = value.trim();
    if value.is_empty() {
        return Err(format!("`{name}` has no value"));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(format!("the value of `{name}` has more than {VALUE_BYTES_MAX} bytes"));
    }
    if !value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return Err(format!("the value of `{name}` has a control or non-ASCII character; escape it"));
    }
    Ok(HeaderLine { name, value: Some(value.to_owned()) })
}

fn header_name(text: &str) -> Result<String, String> {
    let name = text.trim().to_ascii_lowercase();
    if is_allowed(&name) {
        Ok(name)
    } else {
        Err(format!("a site may not set the header `{}`", shown(text.trim())))
    }
}

/// The headers that paths have set so far.
#[derive(Default)]
struct ResponseHeaders {
    headers: Vec<HeaderValue>,
    bytes: usize,
}

impl ResponseHeaders {
    /// Applies the headers below one path.
    fn apply(&mut self, lines: &[HeaderLine]) {
        let mut set_here: Vec<&str> = Vec::new();
        for line in lines {
            let joins = match merge_of(&line.name) {
                Merge::Join => true,
                Merge::JoinBelowPath => set_here.contains(&line.name.as_str()),
                Merge::Replace => false,
            };
            match &line.value {
                Some(value) if joins => self.join(&line.name, value),
                Some(value) => self.replace(&line.name, value),
                None => self.remove(&line.name),
            }
            set_here.push(&line.name);
        }
    }

    fn join(&mut self, name: &str, value: &str) {
        let fits = self.fits(name, value);
        let Some(header) = self.headers.iter_mut().find(|header| header.name == name) else {
            return self.replace(name, value);
        };
        let has_it = header.value.split(", ").any(|part| part == value) || header.value == value;
        if fits && !has_it {
            header.value.push_str(", ");
            header.value.push_str(value);
            self.bytes += value.len() + 2;
        }
    }

    fn replace(&mut self, name: &str, value: &str) {
        self.remove(name);
        if self.fits(name, value) {
            self.bytes += name.len() + value.len() + 4;
            self.headers.push(HeaderValue { name: name.to_owned(), value: value.to_owned() });
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(at) = self.headers.iter().position(|header| header.name == name) {
            let header = self.headers.remove(at);
            self.bytes -= header.name.len() + header.value.len() + 4;
        }
    }

    fn fits(&self, name: &str, value: &str) -> bool {
        self.bytes + name.len() + value.len() + 4 <= RESPONSE_BYTES_MAX
    }
}
