//! The rules that a deploy brings along with its files, as they are stored with it.

use serde::{Deserialize, Serialize};

use super::deploy_notes::{Note, Notes};
use super::headers::{self, HeaderRules};
use super::redirects::{self, Redirects};
use super::resolution::Resolver;

/// What a site answers besides its files. Without any rules, the default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SiteRules {
    /// The parsed `_redirects`.
    pub redirects: Redirects,
    /// The parsed `_headers`.
    pub headers: HeaderRules,
    /// Whether addresses without a file answer with `index.html`, as single-page applications need.
    pub spa: bool,
}

/// A file of rules in a zip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RulesFile {
    /// The zip has none.
    Missing,
    /// Its bytes.
    Bytes(Vec<u8>),
    /// It has more than [`redirects::FILE_BYTES_MAX`]: this many.
    TooLarge(u64),
}

impl SiteRules {
    /// Parses the files of rules of a site. `exists` returns whether the site has a file at a path. Returns a note for
    /// each line, or file, that is ignored.
    pub fn parse(
        redirects: &RulesFile,
        headers: &RulesFile,
        spa: bool,
        exists: impl Fn(&str) -> bool,
    ) -> (Self, Vec<Note>) {
        let mut rules = Self { spa, ..Self::default() };
        let mut notes = Vec::new();
        match redirects {
            RulesFile::Missing => {}
            RulesFile::Bytes(bytes) => (rules.redirects, notes) = Redirects::parse(bytes, exists),
            RulesFile::TooLarge(bytes) => notes = too_large(redirects::FILE, *bytes),
        }
        match headers {
            RulesFile::Missing => {}
            RulesFile::Bytes(bytes) => {
                let (parsed, more) = HeaderRules::parse(bytes);
                rules.headers = parsed;
                notes.extend(more);
            }
            RulesFile::TooLarge(bytes) => notes.extend(too_large(headers::FILE, *bytes)),
        }
        (rules, notes)
    }

    /// Returns whether nothing differs from a site without rules.
    pub fn is_empty(&self) -> bool {
        self.redirects.is_empty() && self.headers.is_empty() && !self.spa
    }

    /// Returns what resolves requests by these rules.
    pub fn resolver(&self) -> Resolver<'_> {
        Resolver { redirects: &self.redirects, spa: self.spa }
    }
}

fn too_large(file: &str, bytes: u64) -> Vec<Note> {
    let mut notes = Notes::default();
    notes.push_file(file, redirects::too_large(bytes));
    notes.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_of_rules_are_parsed_with_their_notes() {
        let redirects = RulesFile::Bytes(b"/old /new\n/a\n".to_vec());
        let headers = RulesFile::Bytes(b"/*\n  X-Frame-Options: DENY\n  Set-Cookie: a=b\n".to_vec());
        let (rules, notes) = SiteRules::parse(&redirects, &headers, true, |_| false);
        assert_eq!((rules.redirects.len(), rules.headers.is_empty(), rules.spa), (1, false, true));
        let lines: Vec<_> = notes.iter().map(|note| (note.file.as_str(), note.line)).collect();
        assert_eq!(lines, [("_redirects", Some(2)), ("_headers", Some(3))]);
    }

    #[test]
    fn a_file_of_rules_that_is_too_large_is_ignored_with_a_note() {
        let large = RulesFile::TooLarge(redirects::FILE_BYTES_MAX as u64 + 1);
        let (rules, notes) = SiteRules::parse(&large, &large, false, |_| false);
        assert!(rules.is_empty());
        let texts: Vec<String> = notes.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 2);
        assert!(
            texts[1].starts_with("_headers: the file is ignored: it has 64.1 KB, at most 64 KB"),
            "{texts:?}"
        );
        let none = SiteRules::parse(&RulesFile::Missing, &RulesFile::Missing, false, |_| false);
        assert_eq!(none, (SiteRules::default(), Vec::new()));
    }

    #[test]
    fn rules_are_read_back_as_they_were_stored() {
        let (redirects, notes) = Redirects::parse(b"/old /new 301\n/* /index.html 200\n", |_| false);
        assert_eq!(notes, []);
        let (headers, notes) = HeaderRules::parse(b"/*\n  Referrer-Policy: no-referrer\n");
        assert_eq!(notes, []);
        let rules = SiteRules { redirects, headers, spa: true };
        let stored = serde_json::to_value(&rules).unwrap();
        assert_eq!(serde_json::from_value::<SiteRules>(stored).unwrap(), rules);
        assert!(!rules.is_empty() && SiteRules::default().is_empty());
        assert_eq!(serde_json::from_str::<SiteRules>("{}").unwrap(), SiteRules::default());
    }
}
