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
#[derive(Debug, Default, PartialEq, Eq)]
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

    /// Appends another statement. Its values that differ from those here get other names, which end with `suffix`.
    pub(super) fn push_part(&mut self, part: Self, suffix: &str) -> &mut Self {
        let mut text = part.sql;
        for (name, value) in part.values {
            if self.values.get(&name) == Some(&value) {
                continue;
            }
            let own = format!("{name}_{suffix}");
            text = text.replace(&format!("{{{name}:"), &format!("{{{own}:"));
            self.values.insert(own, value);
        }
        self.push(&text)
    }

    /// Appends another statement, whose values have names that are free here.
    pub(super) fn push_rows(&mut self, rows: Self) {
        self.values.extend(rows.values);
        self.sql.push_str(&rows.sql);
    }

    /// Appends statements that return rows of the same columns, each row preceded by the number of its statement, as `part`.
    pub(super) fn push_union(&mut self, parts: impl IntoIterator<Item = Self>) {
        for (number, part) in parts.into_iter().enumerate() {
            let union = if number > 0 { " UNION ALL " } else { "" };
            self.push(&format!("{union}SELECT toUInt16({number}) AS part, * FROM ("));
            self.push_part(part, &number.to_string()).push(")");
        }
    }

    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = (String, Bound)> {
        self.values.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_parts_do_not_mix() {
        let part = |from: i64, country: &str| {
            let mut part = Statement::default();
            part.bind("site", Bound::Text("s".to_owned()));
            part.bind("from", Bound::Number(from));
            let country = part.equals("country", country);
            part.push("SELECT count() FROM events WHERE site = {site:UUID} AND at >= {from:Int64} AND ");
            part.push(&country);
            part
        };
        let mut whole = Statement::default();
        whole.bind("site", Bound::Text("s".to_owned()));
        whole.push_union([part(1, "DE"), part(2, "it's {from:Int64}")]);
        let expected = "SELECT toUInt16(0) AS part, * FROM (SELECT count() FROM events WHERE site = {site:UUID} \
                        AND at >= {from_0:Int64} AND country = {v2_0:String}) UNION ALL \
                        SELECT toUInt16(1) AS part, * FROM (SELECT count() FROM events WHERE site = {site:UUID} \
                        AND at >= {from_1:Int64} AND country = {v2_1:String})";
        assert_eq!(whole.sql(), expected);
        let values: Vec<_> = whole.into_values().map(|(name, _)| name).collect();
        assert_eq!(values, ["from_0", "from_1", "site", "v2_0", "v2_1"]);
    }
}
