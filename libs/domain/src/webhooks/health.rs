//! What an attempt shows of its webhook, beyond its delivery.

use chrono::TimeDelta;

use super::verdict::Verdict;

/// Why a webhook is switched off by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its receiver says that there is nobody.
    Gone,
    /// Nothing was delivered for too long.
    Failing,
}

impl Reason {
    /// Its word in the API and at rest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

/// What is to be noted of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diagnosis {
    /// Nothing new.
    Nothing,
    /// It works again.
    Works,
    /// It has begun to fail.
    Fails,
    /// It is switched off.
    Ends(Reason),
}

/// What follows for a webhook that has failed for `failing_for` already, if it has. Being out of reach for a moment,
/// or for a night, ends nothing: only when a delivery is given up (`is_last`) and all have failed for `patience`.
pub fn diagnose(
    verdict: &Verdict,
    is_last: bool,
    failing_for: Option<TimeDelta>,
    patience: TimeDelta,
) -> Diagnosis {
    match (verdict, failing_for) {
        (Verdict::Gone, _) => Diagnosis::Ends(Reason::Gone),
        (Verdict::Delivered, Some(_)) => Diagnosis::Works,
        (Verdict::Delivered, None) => Diagnosis::Nothing,
        (_, None) => Diagnosis::Fails,
        (_, Some(time)) if is_last && time >= patience => Diagnosis::Ends(Reason::Failing),
        _ => Diagnosis::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: TimeDelta = TimeDelta::days(1);

    #[test]
    fn a_webhook_ends_when_it_is_gone_or_has_only_failed_for_days() {
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
