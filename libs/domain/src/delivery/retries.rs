//! The retry schedule of webhooks and mails.

use std::time::Duration;

/// Upper bound of a receiver's `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// Returns the delay before attempt `next` (0 is the first), with a jitter of ±20 % by `fraction` in 0..1; `None` at
/// the end of the schedule. A `Retry-After` can only prolong the delay, up to one day.
pub fn delay_before(
    schedule: &[Duration],
    next: usize,
    fraction: f64,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    let spread = schedule.get(next)?.mul_f64(0.8 + 0.4 * fraction.clamp(0.0, 1.0));
    let requested = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
    Some(spread.max(requested))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_has_jitter_and_an_end() {
        let schedule = [0, 5, 300].map(Duration::from_secs);
        let delay = |next, fraction, requested| {
            delay_before(&schedule, next, fraction, requested).map(|p| p.as_secs_f64())
        };
        assert_eq!(delay(0, 1.0, None), Some(0.0));
        assert_eq!(delay(1, 0.0, None), Some(4.0));
        assert_eq!(delay(1, 1.0, None), Some(6.0));
        assert_eq!(delay(1, 0.5, Some(Duration::from_secs(90))), Some(90.0));
        assert_eq!(delay(2, 0.5, Some(Duration::from_secs(9))), Some(300.0));
        assert_eq!(delay(1, 0.5, Some(Duration::MAX)), Some(86_400.0));
        assert_eq!(delay(3, 0.5, None), None);
    }
}
