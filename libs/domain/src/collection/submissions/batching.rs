//! Decides which submissions may share one statement with submissions of other requests.
//!
//! All requests of a batch wait for its last row, so a large submission, or one with many webhooks, is stored in its
//! own transaction instead.

/// Maximum number of webhooks that receive the event of a batched submission.
const WEBHOOKS_MAX: i64 = 32;
/// Maximum size in bytes of a batched submission, counted by [`size_bytes`].
const BYTES_MAX: usize = 64 << 10;

/// Returns whether `webhooks` is low enough for a batch.
pub fn has_few_webhooks(webhooks: i64) -> bool {
    webhooks <= WEBHOOKS_MAX
}

/// Returns whether `bytes`, counted by [`size_bytes`], is low enough for a batch.
pub fn is_small(bytes: usize) -> bool {
    bytes <= BYTES_MAX
}

/// Returns the bytes that a submission adds to a statement: its answers, and its event once for each webhook.
pub fn size_bytes(payload: usize, event: usize, webhooks: usize) -> usize {
    event.saturating_mul(webhooks).saturating_add(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submission_with_many_webhooks_or_many_bytes_is_not_batched() {
        assert_eq!([0, 32, 33, i64::MAX].map(has_few_webhooks), [true, true, false, false]);
        assert_eq!([0, 65_536, 65_537, usize::MAX].map(is_small), [true, true, false, false]);
    }

    #[test]
    fn an_event_counts_once_for_each_webhook() {
        assert_eq!(size_bytes(100, 1_000, 0), 100);
        assert_eq!(size_bytes(100, 1_000, 3), 3_100);
        assert!(!is_small(size_bytes(1, usize::MAX, 2)), "the sum saturates");
    }
}
