//! The period of a view, as the query of its page names it.

use serde::Serialize;
use serde_json::{Value, json};

use crate::api_client::Call;
use crate::url_query::UrlQuery;

/// Days up to which each one has a value of its own.
const DAYS_BY_DAY: i64 = 120;

/// The periods that have a link: value, label and key.
pub(super) const CHOICES: [(&str, &str, &str); 4] =
    [("today", "Today", "D"), ("7d", "7 days", "W"), ("30d", "30 days", "T"), ("90d", "90 days", "N")];

/// A period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Period {
    pub(super) name: String,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
}

impl Period {
    /// Reads the query. Without a period, and with an unknown one, it is 30 days.
    pub(super) fn of(query: &UrlQuery) -> Self {
        Self::or(query, "30d")
    }

    /// Reads the query, with another default.
    pub(super) fn or(query: &UrlQuery, default: &str) -> Self {
        let is_known = |name: &&str| *name == "custom" || CHOICES.iter().any(|(known, ..)| known == name);
        let name = query.get("period").filter(is_known).unwrap_or(default).to_owned();
        let days = |parameter: &str| query.get(parameter).filter(|_| name == "custom").map(str::to_owned);
        let (from, to) = (days("from"), days("to"));
        Self { name, from, to }
    }

    /// Adds the period to a query of the API.
    pub(super) fn add_to(&self, call: Call) -> Call {
        let call = call.query("period", &self.name);
        call.optional_query("from", self.from.as_deref()).optional_query("to", self.to.as_deref())
    }

    /// Adds the period to the body of a query.
    pub(super) fn add_to_body(&self, mut body: Value) -> Value {
        body["period"] = json!(self.name);
        for (name, day) in [("from", &self.from), ("to", &self.to)] {
            if let Some(day) = day {
                body[name] = json!(day);
            }
        }
        body
    }

    /// Returns the interval of the chart's points.
    pub(super) fn interval(&self) -> &'static str {
        let parse = |day: &Option<String>| day.as_deref()?.parse::<chrono::NaiveDate>().ok();
        match (self.name.as_str(), parse(&self.from), parse(&self.to)) {
            ("today", ..) => "hour",
            ("custom", Some(from), Some(to)) => match (to - from).num_days() {
                0..=1 => "hour",
                2..DAYS_BY_DAY => "day",
                120..=730 => "week",
                _ => "month",
            },
            _ => "day",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_periods_have_longer_intervals() {
        let interval = |query: &str| Period::of(&UrlQuery::parse(query)).interval();
        assert_eq!(interval(""), "day");
        assert_eq!(interval("period=today"), "hour");
        assert_eq!(interval("period=custom&from=2026-01-01&to=2026-01-01"), "hour");
        assert_eq!(interval("period=custom&from=2026-01-01&to=2026-12-31"), "week");
        assert_eq!(Period::of(&UrlQuery::parse("period=ever&from=2026-01-01")).name, "30d");
    }
}
