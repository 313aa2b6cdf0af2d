//! One rule of `_redirects`: how a line is read, and what a request gets from it.

use serde::{Deserialize, Serialize};

use super::query::{Condition, RequestQuery};
use super::target::{EXPANDED_BYTES_MAX, Target};
use crate::static_sites::deploy_notes::shown;
use crate::static_sites::patterns::{Pattern, Subject};
use crate::static_sites::site_path::RequestPath;

/// Status of a rule that names none.
const DEFAULT_STATUS: u16 = 301;

/// What a rule does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleMatch {
    /// Redirects to this `Location`, which is visible ASCII and starts with a single slash or with another host's URL.
    Redirect {
        /// The `Location`, with the query.
        location: String,
        /// 301, 302, 307 or 308.
        status: u16,
    },
    /// Answers with the file at another path of the site.
    Rewrite {
        /// The path whose file is sent.
        request: RequestPath,
        /// 200 or 404.
        status: u16,
    },
}

/// A rule. In JSON it has the parts of its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RuleText", into = "RuleText")]
pub struct Rule {
    text: RuleText,
    from: Pattern,
    conditions: Vec<Condition>,
    target: Target,
}

/// The parts of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RuleText {
    line: usize,
    from: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    query: Vec<String>,
    to: String,
    status: u16,
    #[serde(default, skip_serializing_if = "is_false")]
    forced: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Rule {
    /// Parses a line with the given number; `None` if it is empty or a comment. The error says what is wrong.
    pub(super) fn parse(line: &str, number: usize) -> Result<Option<Self>, String> {
        let tokens: Vec<&str> = line.split_whitespace().take_while(|token| !token.starts_with('#')).collect();
        let Some((from, rest)) = tokens.split_first() else { return Ok(None) };
        if is_url(from) {
            return Err("rules for a whole domain are not supported: start with a path".to_owned());
        }
        if rest.first().is_none_or(|token| read_status(token).is_some()) {
            return Err("it has no target: write `from to status`".to_owned());
        }
        let to_at = rest.iter().position(|token| token.starts_with('/') || is_url(token));
        let to_at = to_at.ok_or("its target starts neither with `/` nor with `http://` or `https://`")?;
        let (status, forced) = read_options(&rest[to_at + 1..])?;
        let owned = |token: &&str| (*token).to_owned();
        let query = rest[..to_at].iter().map(owned).collect();
        let text =
            RuleText { line: number, from: owned(from), query, to: owned(&rest[to_at]), status, forced };
        Self::try_from(text).map(Some)
    }

    /// The number of the line.
    pub fn line(&self) -> usize {
        self.text.line
    }

    /// Whether the rule precedes files (`!`).
    pub fn is_forced(&self) -> bool {
        self.text.forced
    }

    /// Returns what the rule does with a request; `None` if it does not match, or would redirect to the same address.
    pub(super) fn apply(
        &self,
        subject: &Subject,
        request: &RequestPath,
        query: &RequestQuery<'_>,
    ) -> Option<RuleMatch> {
        let found = self.result(subject, query)?;
        let is_same = match &found {
            RuleMatch::Redirect { location, .. } => {
                location.split('#').next() == Some(query.appended_to(&request.address()).as_str())
            }
            RuleMatch::Rewrite { .. } => false,
        };
        (!is_same).then_some(found)
    }

    /// Returns what the rule does with a request, even if that is a redirect to the same address.
    pub(super) fn result(&self, subject: &Subject, query: &RequestQuery<'_>) -> Option<RuleMatch> {
        let mut captures = self.from.captures(subject)?;
        for condition in &self.conditions {
            condition.capture(query, &mut captures)?;
        }
        let target = self.target.expand(&captures)?;
        let status = self.text.status;
        if is_rewrite(status) {
            let path = target.split(['?', '#']).next().unwrap_or_default();
            return RequestPath::parse(path).map(|request| RuleMatch::Rewrite { request, status });
        }
        let location = with_query(target, &query.forwarded(&self.conditions));
        (location.len() <= EXPANDED_BYTES_MAX).then_some(RuleMatch::Redirect { location, status })
    }

    /// Returns whether the path matches, and the query too.
    pub(super) fn matches(&self, subject: &Subject, query: &RequestQuery<'_>) -> bool {
        self.from.matches(subject) && (self.conditions.is_empty() || self.result(subject, query).is_some())
    }

    /// Returns whether the query may decide if the rule matches: it has conditions, or redirects to a query of its own,
    /// which may be that of the request.
    pub(super) fn reads_query(&self) -> bool {
        !self.conditions.is_empty() || (!is_rewrite(self.text.status) && self.text.to.contains('?'))
    }

    /// Returns whether the path matches.
    pub(super) fn matches_path(&self, subject: &Subject) -> bool {
        self.from.matches(subject)
    }

    /// Returns the only path that the rule matches, if it has no placeholder and no `*` in its path.
    pub(super) fn fixed_path(&self) -> Option<String> {
        self.from.fixed_path()
    }

    /// Returns a request that the rule matches, with its query. `fill` replaces a placeholder by its name.
    pub(super) fn sample(&self, fill: impl Fn(&str) -> String) -> (RequestPath, String) {
        let query: Vec<String> = self.conditions.iter().map(|condition| condition.sample(&fill)).collect();
        (self.from.sample(fill), query.join("&"))
    }
}

impl TryFrom<RuleText> for Rule {
    type Error = String;

    fn try_from(text: RuleText) -> Result<Self, String> {
        let from = Pattern::parse(&text.from).map_err(|error| format!("`{}`: {error}", shown(&text.from)))?;
        let conditions: Vec<Condition> =
            text.query.iter().map(|condition| Condition::parse(condition)).collect::<Result<_, _>>()?;
        let mut names: Vec<&str> = from.names().collect();
        for name in conditions.iter().filter_map(Condition::placeholder) {
            if names.contains(&name) {
                return Err(format!("the placeholder `:{}` occurs twice", shown(name)));
            }
            names.push(name);
        }
        let target = Target::parse(&text.to, &names)?;
        check_status(text.status, &target)?;
        Ok(Self { text, from, conditions, target })
    }
}

impl From<Rule> for RuleText {
    fn from(rule: Rule) -> Self {
        rule.text
    }
}

fn is_rewrite(status: u16) -> bool {
    matches!(status, 200 | 404)
}

fn is_url(token: &str) -> bool {
    let is_scheme =
        |scheme: &str| token.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    is_scheme("http://") || is_scheme("https://")
}

/// Returns the status of a token such as `302` or `200!`, and whether it is forced.
fn read_status(token: &str) -> Option<(u16, bool)> {
    let digits = token.strip_suffix('!').unwrap_or(token);
    let is_number = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten().map(|status| (status, digits.len() < token.len()))
}

/// Reads what follows the target: a status, and conditions, which are not supported.
fn read_options(tokens: &[&str]) -> Result<(u16, bool), String> {
    let (status, rest) = match tokens.split_first() {
        Some((first, rest)) => match read_status(first) {
            Some(status) => (status, rest),
            None => ((DEFAULT_STATUS, false), tokens),
        },
        None => ((DEFAULT_STATUS, false), tokens),
    };
    match rest.first().map(|token| (token, token.split_once('='))) {
        None => Ok(status),
        Some((_, Some((name, _)))) => Err(format!("the condition `{}` is not supported", shown(name))),
        Some((token, None)) => Err(format!("`{}` after the target is no status such as 301", shown(token))),
    }
}

fn check_status(status: u16, target: &Target) -> Result<(), String> {
    match status {
        301 | 302 | 307 | 308 => Ok(()),
        200 | 404 if target.is_own_site() => Ok(()),
        200 | 404 => {
            Err("other hosts are never proxied: redirect to them by 301, 302, 307 or 308".to_owned())
        }
        _ => Err(format!("the status {status} is not supported: use 200, 301, 302, 307, 308 or 404")),
    }
}

/// Returns a redirect's location for a request with this query, from that for a request without one.
pub fn with_forwarded_query(location: String, query: &str) -> String {
    if query.is_empty() { location } else { with_query(location, &RequestQuery::new(query).forwarded(&[])) }
}

/// Adds the forwarded query, unless the target has its own.
fn with_query(target: String, query: &str) -> String {
    if query.is_empty() || target.split('#').next().is_some_and(|before| before.contains('?')) {
        return target;
    }
    match target.split_once('#') {
        Some((before, fragment)) => format!("{before}?{query}#{fragment}"),
        None => format!("{target}?{query}"),
    }
}
