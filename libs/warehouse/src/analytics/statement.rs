//! A SQL statement under construction: constant text, and values that the server binds.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use chrono::{DateTime, NaiveDate, TimeDelta, TimeZone as _, Utc};
use domain::analytics::Range;

/// Longer than any visit.
pub(super) const VISIT_MAX: TimeDelta = TimeDelta::hours(25);

/// A bound value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Bound {
    Text(String),
    Texts(Vec<String>),
    Number(i64),
    Numbers(Vec<i64>),
    Ids(Vec<u64>),
    /// A `DateTime64(3, 'UTC')`.
    Time(DateTime<Utc>),
    /// A `Date`.
    Day(NaiveDate),
}

/// The text and the bound values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
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

    /// Binds a range as `from` and `to`, its `first_day` and `last_day`, the `earliest_day` on which a visit that overlaps it may
    /// have begun, and all values of [`Self::bind_began`].
    pub(super) fn bind_range(&mut self, range: Range) {
        self.bind("from", Bound::Time(range.start));
        self.bind("to", Bound::Time(range.end));
        self.bind("first_day", Bound::Day(range.start.date_naive()));
        self.bind("last_day", Bound::Day(last_day(range)));
        let earliest = range.start - VISIT_MAX;
        self.bind("earliest_day", Bound::Day(earliest.date_naive()));
        self.bind_began(Range { start: earliest, end: range.end });
    }

    /// Binds when visits began: `began_from`, `began_to` and the first and last day.
    pub(super) fn bind_began(&mut self, range: Range) {
        self.bind("began_from", Bound::Time(range.start));
        self.bind("began_to", Bound::Time(range.end));
        self.bind("began_first_day", Bound::Day(range.start.date_naive()));
        self.bind("began_last_day", Bound::Day(last_day(range)));
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

    /// Appends statements that return rows of the same columns.
    pub(super) fn push_union(&mut self, parts: impl IntoIterator<Item = Self>) {
        for (number, part) in parts.into_iter().enumerate() {
            self.push(if number > 0 { " UNION ALL " } else { "" });
            self.push_part(part, &number.to_string());
        }
    }

    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    /// Returns the bytes of text and values.
    pub(super) fn size(&self) -> usize {
        let value = |value: &Bound| match value {
            Bound::Text(text) => text.len(),
            Bound::Number(number) => size_of_val(number),
            Bound::Time(time) => size_of_val(time),
            Bound::Day(day) => size_of_val(day),
            Bound::Numbers(numbers) => size_of_val(numbers.as_slice()),
            Bound::Ids(ids) => size_of_val(ids.as_slice()),
            Bound::Texts(texts) => texts.iter().map(|text| text.len() + size_of::<String>()).sum(),
        };
        let values = self.values.iter().map(|(name, bound)| name.len() + size_of::<Bound>() + value(bound));
        self.sql.len() + values.sum::<usize>()
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = (String, Bound)> {
        self.values.into_iter()
    }
}

/// Returns a `DateTime64(3, 'UTC')` as text. Those of ClickHouse are of the years 1900 to 2299.
pub(super) fn time_literal(time: DateTime<Utc>) -> String {
    let of_year = |year| Utc.with_ymd_and_hms(year, 1, 1, 0, 0, 0).single().unwrap_or(time);
    time.clamp(of_year(1900), of_year(2299)).format("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// Returns a `Date` as text. Those of ClickHouse range from 1970 to 2149.
pub(super) fn day_literal(day: NaiveDate) -> String {
    let of_number = |number| NaiveDate::from_epoch_days(number).unwrap_or(day);
    day.clamp(of_number(0), of_number(65_000)).to_string()
}

/// Returns the last day (UTC) of a range.
fn last_day(range: Range) -> NaiveDate {
    (range.end - TimeDelta::milliseconds(1)).date_naive()
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
        let expected = "SELECT count() FROM events WHERE site = {site:UUID} AND at >= {from_0:Int64} \
                        AND country = {v2_0:String} UNION ALL \
                        SELECT count() FROM events WHERE site = {site:UUID} AND at >= {from_1:Int64} \
                        AND country = {v2_1:String}";
        assert_eq!(whole.sql(), expected);
        let values: Vec<_> = whole.into_values().map(|(name, _)| name).collect();
        assert_eq!(values, ["from_0", "from_1", "site", "v2_0", "v2_1"]);
    }
}
