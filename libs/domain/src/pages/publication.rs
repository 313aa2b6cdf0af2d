//! Whether visitors see a page, and when they will.

use chrono::{DateTime, Utc};

/// Whether visitors see a page now, and when it publishes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication {
    /// Visitors see it.
    pub is_published: bool,
    /// When it publishes itself; never if it is published.
    pub publish_at: Option<DateTime<Utc>>,
}

/// What somebody wants of it: each as it was sent, `None` where it wasn't.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// Seen or not.
    pub is_published: Option<bool>,
    /// A time, or none any more.
    pub publish_at: Option<Option<DateTime<Utc>>>,
}

impl Publication {
    /// A page of which nothing else was said.
    pub const NEW: Self = Self { is_published: true, publish_at: None };

    /// What a wish makes of it.
    ///
    /// A time beats a word: one to come hides the page until then, one that is past publishes it. A word alone
    /// decides for good, so it clears the time.
    #[must_use]
    pub fn after(self, wish: Wish, now: DateTime<Utc>) -> Self {
        match (wish.publish_at, wish.is_published) {
            (Some(Some(at)), _) if at > now => Self { is_published: false, publish_at: Some(at) },
            (Some(Some(_)), _) => Self { is_published: true, publish_at: None },
            (Some(None), word) => Self { is_published: word.unwrap_or(self.is_published), publish_at: None },
            (None, Some(is_published)) => Self { is_published, publish_at: None },
            (None, None) => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_time_beats_a_word_and_a_word_alone_clears_the_time() {
        let now = DateTime::from_timestamp_nanos(1_795_003_200_000_000_000);
        let (past, soon, later) =
            (now - TimeDelta::hours(1), now + TimeDelta::hours(1), now + TimeDelta::hours(2));
        let seen = Publication { is_published: true, publish_at: None };
        let hidden = Publication { is_published: false, publish_at: None };
        let due = |at| Publication { is_published: false, publish_at: Some(at) };
        for (before, is_published, publish_at, after) in [
            (seen, None, None, seen),
            (due(soon), None, None, due(soon)),
            (seen, Some(false), None, hidden),
            (due(soon), Some(false), None, hidden),
            (due(soon), Some(true), None, seen),
            (seen, None, Some(Some(soon)), due(soon)),
            (seen, Some(true), Some(Some(soon)), due(soon)),
            (due(soon), None, Some(Some(later)), due(later)),
            (hidden, None, Some(Some(past)), seen),
            (hidden, Some(false), Some(Some(now)), seen),
            (due(soon), None, Some(None), hidden),
            (seen, None, Some(None), seen),
            (due(soon), Some(true), Some(None), seen),
        ] {
            let wish = Wish { is_published, publish_at };
            assert_eq!(before.after(wish, now), after, "{before:?} {wish:?}");
        }
    }
}
