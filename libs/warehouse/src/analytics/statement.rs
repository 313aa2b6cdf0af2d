//! A SQL statement under construction: constant text, and values that the server binds.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::analytics::Range;

/// A bound value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bound {
    Text(String),
    Number(i64),
    Numbers(Vec<i64>),
    Ids(Vec<u64>),
}

/// The text and the bound values.
#[derive(Debug, Default)]
pub(super) struct Statement {
    sql: String,
    values: BTreeMap<String, Bound>,
}

impl Statement {
    /// Appends text, which must not contain a caller's value.
    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.sql.push_str(text);
        self
    }

    pub(super) fn bind(&mut self, name: &str, value: Bound) {
        self.values.insert(name.to_owned(), value);
    }

    /// Binds the bounds of a range as `from` and `to`, in milliseconds.
    pub(super) fn bind_range(&mut self, range: Range) {
        self.bind("from", Bound::Number(range.start.timestamp_millis()));
        self.bind("to", Bound::Number(range.end.timestamp_millis()));
    }

    /// Binds a value and returns the condition that a column equals it.
    pub(super) fn equals(&mut self, column: &str, value: &str) -> String {
        let name = format!("v{}", self.values.len());
        let mut condition = String::new();
        // Writing to a string cannot fail.
        let _ = write!(condition, "{column} = {{{name}:String}}");
        self.bind(&name, Bound::Text(value.to_owned()));
        condition
    }

    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = (String, Bound)> {
        self.values.into_iter()
    }
}
