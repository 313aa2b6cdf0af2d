//! The states of a domain, and when it is checked again.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{ErrorCode, SERVED_FOR, is_served};

/// The state of a domain, as `status` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits for its owner's records.
    Pending,
    /// It is served.
    Active,
    /// It is not served, although it was, or its records did not come in time.
    Failed,
}

/// Both states that follow from checks of DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is served.
    pub status: Status,
    /// `pending`, `verified` or `failed`: what its records are like.
    pub dns_status: &'static str,
}

impl Status {
    /// Returns the state as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Failed => "failed",
        }
    }
}

/// Returns the states after a check. `verified_at` already includes this check; `before` is the DNS state before it, which
/// an inconclusive check leaves as it was.
pub fn standing(
    problem: Option<ErrorCode>,
    before: &str,
    verified_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Standing {
    let is_waiting = verified_at.is_none() && before == "pending" && now - created_at < SERVED_FOR;
    let dns_status = match problem {
        None => "verified",
        Some(code) if code.is_inconclusive() && before == "verified" => "verified",
        Some(_) if is_waiting => "pending",
        Some(_) => "failed",
    };
    let status = match is_served(verified_at, now) {
        true => Status::Active,
        false if is_waiting => Status::Pending,
        false => Status::Failed,
    };
    Standing { status, dns_status }
}

/// Returns when to check again after `failed` scheduled checks in a row: the delays of the schedule one after the other,
/// then its last one. Without failures that is its last one too. `fraction` in 0..1 spreads it by 20 %.
pub fn next_check(schedule: &[Duration], failed: usize, fraction: f64, now: DateTime<Utc>) -> DateTime<Utc> {
    let last = schedule.last().copied().unwrap_or(Duration::from_hours(1));
    let delay = match failed {
        0 => last,
        failed => schedule.get(failed - 1).copied().unwrap_or(last),
    };
    let spread = delay.mul_f64(0.8 + 0.4 * fraction.clamp(0.0, 1.0));
    now + TimeDelta::from_std(spread).unwrap_or(TimeDelta::hours(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_come_less_and_less_often() {
        let now = DateTime::UNIX_EPOCH;
        let schedule = [5, 60, 3600].map(Duration::from_secs);
        let delay = |failed, fraction| (next_check(&schedule, failed, fraction, now) - now).num_seconds();
        assert_eq!([delay(1, 0.5), delay(2, 0.5), delay(3, 0.5), delay(9, 0.5)], [5, 60, 3600, 3600]);
        assert_eq!(delay(0, 0.5), 3600, "while everything stands");
        assert_eq!([delay(1, 0.0), delay(1, 1.0)], [4, 6]);
    }

    #[test]
    fn a_domain_goes_from_pending_to_active_and_fails_a_week_after_its_records_went() {
        let now = DateTime::UNIX_EPOCH;
        let days = |days| now - TimeDelta::days(days);
        let missing = Some(ErrorCode::TxtMissing);
        let timeout = Some(ErrorCode::DnsTimeout);
        for (problem, before, verified_at, created_at, expected) in [
            (missing, "pending", None, days(0), (Status::Pending, "pending")),
            (timeout, "pending", None, days(0), (Status::Pending, "pending")),
            (None, "pending", Some(now), days(0), (Status::Active, "verified")),
            (missing, "verified", Some(days(1)), days(30), (Status::Active, "failed")),
            (timeout, "verified", Some(days(1)), days(30), (Status::Active, "verified")),
            (timeout, "failed", Some(days(1)), days(30), (Status::Active, "failed")),
            (missing, "failed", Some(days(8)), days(30), (Status::Failed, "failed")),
            (missing, "pending", None, days(8), (Status::Failed, "failed")),
            // It was moved to another account, now or before.
            (missing, "verified", None, days(1), (Status::Failed, "failed")),
            (missing, "failed", None, days(1), (Status::Failed, "failed")),
        ] {
            let standing = standing(problem, before, verified_at, created_at, now);
            assert_eq!(
                (standing.status, standing.dns_status),
                expected,
                "{problem:?} {before} {verified_at:?}"
            );
        }
    }
}
