//! The parameters `from` and `to` of lists.

use chrono::{DateTime, Days, NaiveDate, Utc};
use domain::{FieldError, timestamps};

/// A range of time, open at an end that is `None`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeRange {
    /// Inclusive.
    pub(super) from: Option<DateTime<Utc>>,
    /// Exclusive.
    pub(super) until: Option<DateTime<Utc>>,
}

impl TimeRange {
    /// Parses both ends, each a day (UTC), which is included, or an instant. Adds what is wrong to `errors`.
    pub(super) fn read(from: Option<String>, to: Option<String>, errors: &mut Vec<FieldError>) -> Self {
        let mut bound = |name: &str, text: Option<String>, day_after: u64| {
            let read = read_bound(text.as_deref()?, day_after);
            if read.is_none() {
                let message = format!("{name} must be a day or an instant, such as 2027-01-31");
                errors.push(FieldError::new(name, "format", message));
            }
            read
        };
        Self { from: bound("from", from, 0), until: bound("to", to, 1) }
    }
}

/// Parses an instant, or a day, which stands for its start plus `days_later`.
fn read_bound(text: &str, days_later: u64) -> Option<DateTime<Utc>> {
    let day =
        |day: NaiveDate| Some(day.checked_add_days(Days::new(days_later))?.and_hms_opt(0, 0, 0)?.and_utc());
    let read = match text.parse::<NaiveDate>() {
        Ok(read) => day(read),
        // A `+` in a query string is decoded as a space.
        Err(_no_day) => DateTime::parse_from_rfc3339(&text.replace(' ', "+")).ok().map(|at| at.to_utc()),
    };
    read.filter(|at| timestamps::is_known(*at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_meant_from_its_beginning_to_its_end() {
        let shown = |text: &str, later| read_bound(text, later).map(|at| at.to_rfc3339());
        assert_eq!(shown("2027-01-31", 0).unwrap(), "2027-01-31T00:00:00+00:00");
        assert_eq!(shown("2027-01-31", 1).unwrap(), "2027-02-01T00:00:00+00:00");
        assert_eq!(shown("2027-01-31T10:00:00 02:00", 1).unwrap(), "2027-01-31T08:00:00+00:00");
        for wrong in ["", "yesterday", "2027-02-30", "1969-12-31", "9999-12-31T23:59:59-01:00"] {
            assert_eq!(shown(wrong, 0), None, "{wrong}");
        }
    }
}
