//! Which submissions may be stored together with those of others, who wait until the last of them is.
//!
//! Larger ones are taken by themselves, so that nobody's long answers or many webhooks hold up those who share a statement
//! with them.

/// Most webhooks that are told of one.
const LISTENERS_MAX: i64 = 32;
/// Most bytes of one with all that they are told.
const BYTES_MAX: usize = 64 << 10;

/// Whether so few webhooks are told of one.
pub fn are_few(listeners: i64) -> bool {
    listeners <= LISTENERS_MAX
}

/// Whether that is little, counted as [`bytes`] does.
pub fn is_light(bytes: usize) -> bool {
    bytes <= BYTES_MAX
}

/// Bytes of one: of its answers, and of what each of its webhooks is told.
pub fn bytes(payload: usize, event: usize, webhooks: usize) -> usize {
    event.saturating_mul(webhooks).saturating_add(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_which_many_are_told_or_much_is_goes_by_itself() {
        assert_eq!([0, 32, 33, i64::MAX].map(are_few), [true, true, false, false]);
        assert_eq!([0, 65_536, 65_537, usize::MAX].map(is_light), [true, true, false, false]);
    }

    #[test]
    fn what_each_webhook_is_told_weighs_and_what_nobody_is_told_does_not() {
        assert_eq!(bytes(100, 1_000, 0), 100);
        assert_eq!(bytes(100, 1_000, 3), 3_100);
        assert!(!is_light(bytes(1, usize::MAX, 2)), "and no number is too large to be counted");
    }
}
