//! The claim deadline of trials.

use chrono::{DateTime, Utc};

/// Returns whether a trial can still be claimed. At the deadline itself it may already be deleted.
pub fn is_open(now: DateTime<Utc>, deadline: Option<DateTime<Utc>>) -> bool {
    deadline.is_none_or(|deadline| now < deadline)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_trial_is_open_until_just_before_its_deadline() {
        let deadline = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        assert!(is_open(deadline - TimeDelta::milliseconds(1), Some(deadline)));
        assert!(!is_open(deadline, Some(deadline)));
        assert!(!is_open(deadline + TimeDelta::hours(1), Some(deadline)));
    }
}
