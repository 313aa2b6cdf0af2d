//! Metrics. Each variant says what it measures; [`Metric::meaning`] is the text of the API document.

use chrono::TimeDelta;

use super::{Figure, Sums};

/// A visitor is active for this long after an event.
pub const ACTIVE_FOR: TimeDelta = TimeDelta::minutes(5);

/// A metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Number of page views.
    PageViews,
    /// Distinct daily visitor ids.
    UniqueVisitors,
    /// Visits that overlap the period.
    Visits,
    /// Percentage of visits with one page view and no other event.
    BounceRate,
    /// Mean duration of visits in seconds.
    AvgSessionDuration,
    /// Mean number of page views in a visit.
    ViewsPerVisit,
    /// Visitors with an event in the last five minutes.
    ActiveVisitors,
    /// Mean time in seconds for which a page was visible and focused during a visit.
    AvgTimeOnPage,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 8] = [
        Self::PageViews,
        Self::UniqueVisitors,
        Self::Visits,
        Self::BounceRate,
        Self::AvgSessionDuration,
        Self::ViewsPerVisit,
        Self::ActiveVisitors,
        Self::AvgTimeOnPage,
    ];

    /// Returns the metric's name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PageViews => "page_views",
            Self::UniqueVisitors => "unique_visitors",
            Self::Visits => "visits",
            Self::BounceRate => "bounce_rate",
            Self::AvgSessionDuration => "avg_session_duration",
            Self::ViewsPerVisit => "views_per_visit",
            Self::ActiveVisitors => "active_visitors",
            Self::AvgTimeOnPage => "avg_time_on_page",
        }
    }

    /// Parses the result of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.as_str() == text)
    }

    /// Returns the definition, including edge cases, for the API document.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::PageViews => "how often pages were shown in the period.",
            Self::UniqueVisitors => {
                "distinct visitor ids among the visits of the period. Ids are daily (they change at midnight UTC and \
                 can't be linked afterwards), so that over several days this is the sum of the days' visitors, not \
                 the number of people; a visit across midnight counts under its first id. By `url`: visitors who \
                 viewed the page."
            }
            Self::Visits => {
                "visits going on at some time of the period. A visit ends after 30 minutes without an event, or 24 \
                 hours after it began; neither midnight nor another campaign ends it. One that crosses an edge of \
                 the period, or of a bucket, counts on both sides, so that a series may sum to more than the total. \
                 By `url`: visits that viewed the page."
            }
            Self::BounceRate => {
                "visits with a single page view and no custom event, in whole percent of all visits (visits as in \
                 `visits`, looked at as a whole); 0 without visits. By `url`: of the visits that entered there."
            }
            Self::AvgSessionDuration => {
                "seconds from a visit's first event to its last, engagement with the last page included, as the \
                 mean of all visits, bounces too; whole seconds; 0 without visits. By `url`: of the visits that \
                 entered there."
            }
            Self::ViewsPerVisit => {
                "page views of a visit, the mean of all visits, two decimals; 0 without visits. By `url`: of the \
                 visits that entered there."
            }
            Self::ActiveVisitors => {
                "distinct visitors with a page view or custom event in the last five minutes, whatever the period; \
                 in a series, in the buckets those minutes lie in; compared with the five minutes before."
            }
            Self::AvgTimeOnPage => {
                "seconds a page was visible and in focus, summed over a visit, the mean of all pages of all visits \
                 that reported any; whole seconds; null if none did."
            }
        }
    }

    /// Computes the metric from its counts.
    pub fn figure(self, sums: Sums) -> Figure {
        match self {
            Self::PageViews | Self::UniqueVisitors | Self::Visits | Self::ActiveVisitors => {
                Figure::Count(sums.amount)
            }
            Self::BounceRate => Figure::Count(rounded(100 * u128::from(sums.amount), sums.over)),
            Self::AvgSessionDuration => {
                Figure::Count(rounded(sums.amount.into(), sums.over.saturating_mul(1000)))
            }
            Self::ViewsPerVisit => Figure::hundredths(rounded(100 * u128::from(sums.amount), sums.over)),
            Self::AvgTimeOnPage if sums.over == 0 => Figure::Unknown,
            Self::AvgTimeOnPage => Figure::Count(rounded(sums.amount.into(), sums.over.saturating_mul(1000))),
        }
    }

    /// Returns whether the metric is a mean. A breakdown by a mean is sorted by the number of values, else rows with
    /// a single visit would crowd out all others.
    pub fn is_mean(self) -> bool {
        matches!(
            self,
            Self::BounceRate | Self::AvgSessionDuration | Self::ViewsPerVisit | Self::AvgTimeOnPage
        )
    }
}

/// Returns `amount / over`, rounded half up; 0 if `over` is 0.
fn rounded(amount: u128, over: u64) -> u64 {
    let over = u128::from(over);
    (amount + over / 2).checked_div(over).map_or(0, |rounded| u64::try_from(rounded).unwrap_or(u64::MAX))
}
