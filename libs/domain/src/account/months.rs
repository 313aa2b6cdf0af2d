//! Calendar months in UTC, the periods of event and automation quotas.

use chrono::{DateTime, Datelike, Months, NaiveDate, Utc};

/// Returns the first day of the calendar month (UTC) of `at`.
pub fn month_of(at: DateTime<Utc>) -> NaiveDate {
    let day = at.date_naive();
    // Every month has a first day, so the fallback is never used.
    day.with_day(1).unwrap_or(day)
}

/// Returns the first day of the month after the one that begins on `month`.
pub fn month_after(month: NaiveDate) -> NaiveDate {
    // Only the last month of chrono's calendar has no successor.
    month.checked_add_months(Months::new(1)).unwrap_or(month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_at_midnight_utc_in_every_time_zone() {
        let of = |text: &str| month_of(text.parse().unwrap()).to_string();
        assert_eq!(of("2028-02-29T23:59:59.999Z"), "2028-02-01");
        assert_eq!(of("2028-03-01T00:00:00Z"), "2028-03-01");
        assert_eq!(of("2028-03-01T01:00:00+02:00"), "2028-02-01");
        assert_eq!(of("2027-12-31T23:00:00-02:00"), "2028-01-01");
        let december = month_of("2027-12-31T00:00:00Z".parse().unwrap());
        assert_eq!(month_after(december).to_string(), "2028-01-01");
    }
}
