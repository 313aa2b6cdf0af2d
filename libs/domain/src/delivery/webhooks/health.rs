//! The health of a webhook, derived from its attempts.

use chrono::TimeDelta;

use super::response::Verdict;

/// Why a webhook was deactivated automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The receiver responded that the webhook is gone.
    Gone,
    /// No delivery has succeeded for too long.
    Failing,
}

impl Reason {
    /// Returns the reason's name in the API and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

/// A change of a webhook's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diagnosis {
    Nothing,
    /// The webhook works again.
    Works,
    /// The webhook has begun to fail.
    Fails,
    /// The webhook must be deactivated.
    Ends(Reason),
}

/// Diagnoses a webhook that has been failing for `failing_for`, if it has. A short outage, or one night, deactivates
/// nothing: only the last attempt of a delivery does (`is_last`), and only if all have failed for `failing_max`.
pub fn diagnose(
    verdict: &Verdict,
    is_last: bool,
    failing_for: Option<TimeDelta>,
    failing_max: TimeDelta,
) -> Diagnosis {
    match (verdict, failing_for) {
        (Verdict::Gone, _) => Diagnosis::Ends(Reason::Gone),
        (Verdict::Delivered, Some(_)) => Diagnosis::Works,
        (Verdict::Delivered, None) => Diagnosis::Nothing,
        (_, None) => Diagnosis::Fails,
        (_, Some(time)) if is_last && time >= failing_max => Diagnosis::Ends(Reason::Failing),
        _ => Diagnosis::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: TimeDelta = TimeDelta::days(1);

    #[test]
    fn a_webhook_is_deactivated_when_gone_or_after_days_of_failures() {
        let after = |verdict: &Verdict, is_last, days: Option<i32>| {
            diagnose(verdict, is_last, days.map(|days| DAY * days), DAY * 5)
        };
        let later = Verdict::Retry(None);
        assert_eq!(after(&Verdict::Gone, false, None), Diagnosis::Ends(Reason::Gone));
        assert_eq!(after(&later, false, None), Diagnosis::Fails);
        assert_eq!(after(&later, true, None), Diagnosis::Fails);
        assert_eq!(after(&later, true, Some(4)), Diagnosis::Nothing);
        assert_eq!(after(&later, false, Some(6)), Diagnosis::Nothing, "it is tried again");
        assert_eq!(after(&later, true, Some(5)), Diagnosis::Ends(Reason::Failing));
        assert_eq!(after(&Verdict::GiveUp, true, Some(5)), Diagnosis::Ends(Reason::Failing));
    }

    #[test]
    fn one_delivery_makes_it_a_webhook_that_works() {
        let failed_for_days = Some(DAY * 9);
        assert_eq!(diagnose(&Verdict::Delivered, true, failed_for_days, DAY), Diagnosis::Works);
        assert_eq!(diagnose(&Verdict::Delivered, true, None, DAY), Diagnosis::Nothing);
    }
}
