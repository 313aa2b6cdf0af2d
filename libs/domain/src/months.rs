//! Calendar months, by which events and automation runs are counted.

use chrono::{DateTime, Datelike, NaiveDate, Utc};

/// The first day of the calendar month (UTC) in which `at` lies.
pub fn month_of(at: DateTime<Utc>) -> NaiveDate {
    let day = at.date_naive();
    // Every month has a first day.
    day.with_day(1).unwrap_or(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_at_midnight_of_its_first_day_wherever_the_account_is() {
        let of = |text: &str| month_of(text.parse().unwrap()).to_string();
        assert_eq!(of("2028-02-29T23:59:59.999Z"), "2028-02-01");
        assert_eq!(of("2028-03-01T00:00:00Z"), "2028-03-01");
        assert_eq!(of("2028-03-01T01:00:00+02:00"), "2028-02-01");
        assert_eq!(of("2027-12-31T23:00:00-02:00"), "2028-01-01");
    }
}
