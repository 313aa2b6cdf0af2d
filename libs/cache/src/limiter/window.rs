//! Arithmetic of fixed windows, without a store.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::rule::{Decision, Rule};

/// A rule's window at a point in time, for one key.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) rule: Rule,
    /// The counter's name: key, length and number of the window.
    pub(super) name: String,
    /// Time until the window ends.
    left: Duration,
}

impl Window {
    pub(super) fn of(rule: Rule, key: &str, now: DateTime<Utc>) -> Self {
        let length_ms = u64::try_from(rule.window.as_millis()).unwrap_or(u64::MAX).max(1);
        let now_ms = u64::try_from(now.timestamp_millis()).unwrap_or_default();
        let name = format!("{key}:{length_ms}:{}", now_ms / length_ms);
        Self { rule, name, left: Duration::from_millis(length_ms - now_ms % length_ms) }
    }

    /// The counter's TTL: one second longer than the window, for processes with slow clocks.
    pub(super) fn ttl_ms(&self) -> u64 {
        u64::try_from(self.left.as_millis()).unwrap_or(u64::MAX).saturating_add(1_000)
    }
}

/// Decides about a hit by the counts before it.
pub(super) fn decide(windows: &[Window], counts: &[u32]) -> Decision {
    let counted = || windows.iter().zip(counts);
    let exceeded = counted()
        .filter(|(window, count)| **count >= window.rule.limit)
        .max_by_key(|(window, _)| window.left);
    if let Some((window, _)) = exceeded {
        let (Rule { limit, window }, left) = (window.rule, window.left);
        return Decision {
            allowed: false,
            limit,
            window,
            remaining: 0,
            retry_after: left,
            reset_after: left,
        };
    }
    let remaining = |(window, count): &(&Window, &u32)| window.rule.limit.saturating_sub(**count + 1);
    match counted().min_by_key(remaining) {
        Some(nearest) => Decision {
            allowed: true,
            limit: nearest.0.rule.limit,
            window: nearest.0.rule.window,
            remaining: remaining(&nearest),
            retry_after: Duration::ZERO,
            reset_after: nearest.0.left,
        },
        None => Decision {
            allowed: true,
            limit: u32::MAX,
            window: Duration::ZERO,
            remaining: u32::MAX,
            retry_after: Duration::ZERO,
            reset_after: Duration::ZERO,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);
    const DAY: Duration = Duration::from_hours(24);

    fn windows(rules: &[Rule]) -> Vec<Window> {
        // 14:30 on some day.
        let now = DateTime::from_timestamp(1_700_000_000 / 86_400 * 86_400 + 52_200, 0).unwrap();
        rules.iter().map(|rule| Window::of(*rule, "key", now)).collect()
    }

    #[test]
    fn reports_the_rule_with_the_fewest_hits_left() {
        let both = windows(&[Rule { limit: 5, window: HOUR }, Rule { limit: 20, window: DAY }]);
        let decision = decide(&both, &[1, 18]);
        assert_eq!((decision.allowed, decision.limit, decision.remaining), (true, 20, 1));
        assert_eq!(decision.window, DAY);
        assert_eq!(decision.reset_after, DAY - Duration::from_secs(52_200));
    }

    #[test]
    fn of_exceeded_rules_the_longest_sets_retry_after() {
        let both = windows(&[Rule { limit: 5, window: HOUR }, Rule { limit: 20, window: DAY }]);
        assert_eq!(decide(&both, &[5, 7]).retry_after, Duration::from_mins(30));
        let decision = decide(&both, &[5, 20]);
        assert_eq!((decision.allowed, decision.limit), (false, 20));
        assert_eq!(decision.retry_after, DAY - Duration::from_secs(52_200));
    }

    #[test]
    fn allows_every_hit_without_rules() {
        assert!(decide(&[], &[]).allowed);
    }
}
