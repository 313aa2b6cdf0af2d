//! Publication state of a page: published, hidden or scheduled.

use chrono::{DateTime, Utc};

/// The publication state of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication {
    /// Whether visitors see the page.
    pub is_published: bool,
    /// When a hidden page is published; `None` if it is not scheduled.
    pub publish_at: Option<DateTime<Utc>>,
}

/// A requested change; `None` where the request has no value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PublicationChange {
    pub is_published: Option<bool>,
    /// The inner `None` removes the schedule.
    pub publish_at: Option<Option<DateTime<Utc>>>,
}

impl Publication {
    /// The state of a new page without settings.
    pub const NEW: Self = Self { is_published: true, publish_at: None };

    /// Applies a change.
    ///
    /// A time has precedence over `isPublished`: a future one hides the page until then, a past one publishes it.
    /// `isPublished` alone is final, so it removes the schedule.
    #[must_use]
    pub fn apply(self, change: PublicationChange, now: DateTime<Utc>) -> Self {
        match (change.publish_at, change.is_published) {
            (Some(Some(at)), _) if at > now => Self { is_published: false, publish_at: Some(at) },
            (Some(Some(_)), _) => Self { is_published: true, publish_at: None },
            (Some(None), published) => {
                Self { is_published: published.unwrap_or(self.is_published), publish_at: None }
            }
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
    fn a_time_has_precedence_and_is_published_alone_removes_it() {
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
            let change = PublicationChange { is_published, publish_at };
            assert_eq!(before.apply(change, now), after, "{before:?} {change:?}");
        }
    }
}
