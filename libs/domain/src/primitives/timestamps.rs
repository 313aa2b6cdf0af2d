//! The range of valid timestamps: the years 1970 to 9999. Postgres can't store all that chrono can represent.

use chrono::{DateTime, Utc};

use crate::FieldError;

/// The first second of the year 10000.
const END: i64 = 253_402_300_800;

/// Regular expression of the beginning of a valid timestamp.
pub const PATTERN: &str = "^(19[7-9][0-9]|[2-9][0-9]{3})-";

/// Returns whether `at` lies between 1970 and 9999.
pub fn is_known(at: DateTime<Utc>) -> bool {
    (0..END).contains(&at.timestamp())
}

/// Validates a timestamp given as `field`.
pub fn check(field: &str, at: Option<DateTime<Utc>>) -> Option<FieldError> {
    let message = || format!("{field} must lie between the years 1970 and 9999 (UTC)");
    at.is_some_and(|at| !is_known(at)).then(|| FieldError::new(field, "range", message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_of_four_digits_are_valid() {
        for (text, known) in [
            ("1970-01-01T00:00:00Z", true),
            ("9999-12-31T23:59:59.999999Z", true),
            ("1969-12-31T23:59:59Z", false),
            ("9999-12-31T23:59:59-00:01", false),
            ("+200000-01-01T00:00:00Z", false),
            ("-0001-01-01T00:00:00Z", false),
        ] {
            let at = text.parse().unwrap();
            assert_eq!(is_known(at), known, "{text}");
            assert_eq!(check("closesAt", Some(at)).is_none(), known, "{text}");
        }
        assert_eq!(check("closesAt", None), None);
    }
}
