//! Refuses rules that would redirect in a circle.
//!
//! Rules are added in the order in which they are tried. For each, a request with made-up names in place of its
//! placeholders is redirected through all rules before it, until a file or no rule answers. A new rule is tried last,
//! so a new circle contains it, and it is the one to refuse. Rules with a fixed path are found by that path, so only
//! rules with placeholders are compared one by one.

use std::collections::HashMap;

use super::query::RequestQuery;
use super::rule::{Rule, RuleMatch};
use crate::static_sites::address::{FileAt, file_at};
use crate::static_sites::patterns::Subject;
use crate::static_sites::site_path::RequestPath;

/// Maximum number of redirects in a row; browsers give up at 20.
const HOPS_MAX: usize = 10;

/// The rules added so far, and the ends of their redirects.
pub(super) struct Chains<F> {
    exists: F,
    rules: Vec<Rule>,
    /// Rules by their fixed path.
    fixed: HashMap<String, Vec<usize>>,
    /// Rules with placeholders or `*` in their path.
    open: Vec<usize>,
    ends: Vec<End>,
}

/// A request that no rule so far answers, and the rules that led to it.
struct End {
    request: RequestPath,
    subject: Subject,
    query: String,
    passed: Vec<usize>,
    is_file: bool,
}

/// Where a redirect leads.
enum Hop {
    /// To a request that may be redirected again.
    Next(End),
    /// To a file or another host.
    Answered,
}

impl<F: Fn(&str) -> bool> Chains<F> {
    /// Creates chains without rules, for a site with these files.
    pub(super) fn new(exists: F) -> Self {
        Self { exists, rules: Vec::new(), fixed: HashMap::new(), open: Vec::new(), ends: Vec::new() }
    }

    /// Adds a rule unless it closes a circle; the error names the lines.
    pub(super) fn add(&mut self, rule: Rule) -> Result<(), String> {
        let (index, fixed_path) = (self.rules.len(), rule.fixed_path());
        self.rules.push(rule);
        match &fixed_path {
            Some(path) => self.fixed.entry(path.clone()).or_default().push(index),
            None => self.open.push(index),
        }
        let changes = self.changed_ends(index, fixed_path.as_deref());
        let changes = changes.and_then(|changes| Ok((changes, self.own_end(index)?)));
        match changes {
            Ok((changes, own)) => {
                self.set_ends(changes, own);
                Ok(())
            }
            Err(error) => {
                self.rules.pop();
                fixed_path.map_or(Some(&mut self.open), |path| self.fixed.get_mut(&path)).map(Vec::pop);
                Err(error)
            }
        }
    }

    /// Returns the rules, by line.
    pub(super) fn finish(mut self) -> Vec<Rule> {
        self.rules.sort_by_key(Rule::line);
        self.rules
    }

    fn set_ends(&mut self, changes: Vec<(usize, Hop)>, own: Hop) {
        // From the last one on, so that the indices before it stay valid.
        for (index, hop) in changes.into_iter().rev() {
            match hop {
                Hop::Next(end) => self.ends[index] = end,
                Hop::Answered => drop(self.ends.swap_remove(index)),
            }
        }
        if let Hop::Next(end) = own {
            self.ends.push(end);
        }
    }

    /// Returns the ends that the rule `last` matches, by index, with where they lead now.
    fn changed_ends(&self, last: usize, fixed_path: Option<&str>) -> Result<Vec<(usize, Hop)>, String> {
        let is_at = |end: &End| fixed_path.is_none_or(|path| end.request.path() == path);
        let changed = self.ends.iter().enumerate().filter(|(_, end)| is_at(end) && self.matches(last, end));
        changed.map(|(index, end)| Ok((index, self.follow(self.step(end, last)?)?))).collect()
    }

    /// Returns the end of the rule's own redirects. It is applied whether or not an earlier one matches first.
    fn own_end(&self, index: usize) -> Result<Hop, String> {
        let (request, query) = self.rules[index].sample(made_up);
        let start = self.end(request, query, Vec::new());
        self.follow(self.step(&start, index)?)
    }

    /// Follows redirects until no rule matches.
    fn follow(&self, mut hop: Hop) -> Result<Hop, String> {
        while let Hop::Next(end) = &hop {
            let Some(index) = self.first_match(end) else { break };
            hop = self.step(end, index)?;
        }
        Ok(hop)
    }

    fn first_match(&self, end: &End) -> Option<usize> {
        let mut fixed = self.fixed.get(end.request.path()).into_iter().flatten().copied();
        let fixed = fixed.find(|index| self.matches(*index, end));
        let mut open = self.open.iter().copied().take_while(|index| fixed.is_none_or(|fixed| *index < fixed));
        open.find(|index| self.matches(*index, end)).or(fixed)
    }

    fn matches(&self, index: usize, end: &End) -> bool {
        let rule = &self.rules[index];
        (rule.is_forced() || !end.is_file) && rule.matches(&end.subject, &RequestQuery::new(&end.query))
    }

    /// Applies one rule.
    fn step(&self, end: &End, index: usize) -> Result<Hop, String> {
        let found = self.rules[index].result(&end.subject, &RequestQuery::new(&end.query));
        let Some(RuleMatch::Redirect { location, .. }) = found else { return Ok(Hop::Answered) };
        let before_fragment = location.split('#').next().unwrap_or_default();
        let (path, query) = before_fragment.split_once('?').unwrap_or((before_fragment, ""));
        let Some(request) = RequestPath::parse(path) else { return Ok(Hop::Answered) };
        if let Some(at) = end.passed.iter().position(|rule| *rule == index) {
            return Err(self.circle(&end.passed[at..]));
        }
        if end.passed.len() == HOPS_MAX {
            return Err(format!("with the other rules, it redirects more than {HOPS_MAX} times in a row"));
        }
        let passed = [end.passed.as_slice(), &[index]].concat();
        Ok(Hop::Next(self.end(request, query.to_owned(), passed)))
    }

    fn end(&self, request: RequestPath, query: String, passed: Vec<usize>) -> End {
        let is_file = file_at(&request, &self.exists) != FileAt::Missing;
        End { subject: Subject::new(&request), request, query, passed, is_file }
    }

    fn circle(&self, rules: &[usize]) -> String {
        match rules {
            [_] => "its target matches the rule itself, and would be redirected without end".to_owned(),
            _ => {
                let lines: Vec<String> =
                    rules.iter().map(|rule| self.rules[*rule].line().to_string()).collect();
                format!("the lines {} would redirect in a circle", lines.join(", "))
            }
        }
    }
}

/// Returns a segment that no file and no pattern names: it has a character for private use.
fn made_up(name: &str) -> String {
    format!("\u{e000}{name}")
}
