//! Expiry of sign-in sessions.

use chrono::{DateTime, TimeDelta, Utc};

/// Minimum interval between two updates of a session's last use, which saves a write on most requests.
const RECORD_INTERVAL: TimeDelta = TimeDelta::minutes(1);

/// Returns the expiry of a session that was used at `now`: `idle` later, but never after its absolute end.
pub fn expiry(now: DateTime<Utc>, idle: TimeDelta, ends_at: DateTime<Utc>) -> DateTime<Utc> {
    (now + idle).min(ends_at)
}

/// Returns whether the last use of a session must be updated.
pub fn must_record_use(now: DateTime<Utc>, last_seen_at: DateTime<Utc>) -> bool {
    now - last_seen_at >= RECORD_INTERVAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_extends_a_session_up_to_its_absolute_end() {
        let start = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let (idle, end) = (TimeDelta::days(7), start + TimeDelta::days(30));
        assert_eq!(expiry(start, idle, end), start + idle);
        assert_eq!(expiry(start + TimeDelta::days(22), idle, end), start + TimeDelta::days(29));
        assert_eq!(expiry(start + TimeDelta::days(29), idle, end), end);
    }

    #[test]
    fn use_is_recorded_at_most_once_a_minute() {
        let seen = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        assert!(!must_record_use(seen + TimeDelta::seconds(59), seen));
        assert!(must_record_use(seen + TimeDelta::seconds(60), seen));
    }
}
