//! Rules of a site's `_redirects`, in Netlify's syntax: `from [query] to [status][!]`, one rule a line.
//!
//! - `from` is a path with placeholders (`:name`) and at most one `*`; see [`patterns`](super::patterns). A trailing
//!   slash makes no difference.
//! - `name=value` and `name=:placeholder` before the target require parameters of the query. These are not forwarded;
//!   all others are, unless the target has a query of its own.
//! - `to` is a path of the same site or a URL. Placeholders are inserted percent-encoded, never into a host.
//! - The status is 301 without one. 301, 302, 307 and 308 redirect. 200 and 404 answer with another file of the same
//!   site; other hosts are never proxied, and rules are not applied to the target again.
//! - With `!` a rule precedes files. All such rules are tried first, then files, then the other rules, each in the
//!   order of their lines.
//! - A line with a condition (`Country=`, `Language=`, `Role=`, `Cookie=`), with a domain before the path, without a
//!   target, or that would redirect in a circle is ignored, with a note. Circles count only where no file answers.

mod loops;
mod query;
mod rule;
mod target;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::deploy_notes::{Note, Notes};
use super::patterns::Subject;
use super::site_path::{self, RequestPath};
use crate::units;
use loops::Chains;

pub use query::RequestQuery;
pub use rule::{Rule, RuleMatch, with_forwarded_query};

/// Name of the file, at the site's root.
pub const FILE: &str = "_redirects";
/// Maximum number of rules.
pub const RULES_MAX: usize = 2_000;
/// Maximum size of the file.
pub const FILE_BYTES_MAX: usize = 64 * 1024;

/// The rules of a site, by line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Redirects {
    rules: Vec<Rule>,
}

impl Redirects {
    /// Parses the file of a site. `exists` returns whether the site has a file at a path: redirects end there. Returns
    /// the rules, and a note for each ignored line. A file that is too large or not UTF-8 has no rules.
    pub fn parse(bytes: &[u8], exists: impl Fn(&str) -> bool) -> (Self, Vec<Note>) {
        let mut notes = Notes::default();
        let rules = match read_text(bytes) {
            Ok(text) => accepted(parsed_lines(text, &mut notes), exists, &mut notes),
            Err(reason) => {
                notes.push_file(FILE, reason);
                Vec::new()
            }
        };
        (Self { rules }, notes.finish())
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns the first match of the rules that precede files (`!`).
    pub fn before_files(&self, request: &RequestPath, query: &RequestQuery<'_>) -> Option<RuleMatch> {
        self.first_match(request, query, true)
    }

    /// Returns the first match of the rules for addresses without a file.
    pub fn after_files(&self, request: &RequestPath, query: &RequestQuery<'_>) -> Option<RuleMatch> {
        self.first_match(request, query, false)
    }

    /// Returns whether the query may decide which rule matches a request. If not, a redirect for a request with a query
    /// is that for one without, plus the query ([`with_forwarded_query`]).
    pub fn reads_query(&self, request: &RequestPath) -> bool {
        let mut reading = self.rules.iter().filter(|rule| rule.reads_query()).peekable();
        if reading.peek().is_none() {
            return false;
        }
        let subject = Subject::new(request);
        reading.any(|rule| rule.matches_path(&subject))
    }

    fn first_match(
        &self,
        request: &RequestPath,
        query: &RequestQuery<'_>,
        is_forced: bool,
    ) -> Option<RuleMatch> {
        if site_path::is_reserved(request.path()) {
            return None;
        }
        let subject = Subject::new(request);
        let mut rules = self.rules.iter().filter(|rule| rule.is_forced() == is_forced);
        rules.find_map(|rule| rule.apply(&subject, request, query))
    }
}

/// Returns the text of a file of rules, without a byte order mark.
pub(super) fn read_text(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(too_large(bytes.len() as u64));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "the file is ignored: it is not UTF-8")?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Returns why a file of rules with this size is ignored.
pub(super) fn too_large(bytes: u64) -> String {
    let [max, bytes] = units::sizes(FILE_BYTES_MAX as u64, bytes);
    format!("the file is ignored: it has {bytes}, at most {max} are read")
}

/// Returns the rules of all valid lines, at most [`RULES_MAX`].
fn parsed_lines(text: &str, notes: &mut Notes) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        match Rule::parse(line, number) {
            Ok(Some(_)) if rules.len() == RULES_MAX => {
                let reason =
                    format!("a site has at most {RULES_MAX} rules: this and later lines are ignored");
                notes.push_line(FILE, number, reason);
                break;
            }
            Ok(rule) => rules.extend(rule),
            Err(reason) => notes.push_line(FILE, number, reason),
        }
    }
    rules
}

/// Returns the rules without those that would redirect in a circle.
fn accepted(rules: Vec<Rule>, exists: impl Fn(&str) -> bool, notes: &mut Notes) -> Vec<Rule> {
    let mut chains = Chains::new(exists);
    let (forced, others): (Vec<Rule>, Vec<Rule>) = rules.into_iter().partition(Rule::is_forced);
    for rule in forced.into_iter().chain(others) {
        let line = rule.line();
        if let Err(reason) = chains.add(rule) {
            notes.push_line(FILE, line, reason);
        }
    }
    chains.finish()
}
