//! Metrics. Each variant says what it measures; [`Metric::meaning`] is the text of the API document.

use chrono::TimeDelta;

use super::{MetricValue, Sums};

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
            Self::PageViews => "number of page views in the period.",
            Self::UniqueVisitors => {
                "distinct visitor ids of the visits in the period. Ids are daily (they change at midnight UTC and \
                 can't be linked afterwards), so over several days this is the sum of the daily visitors and not \
                 the number of persons; a visit across midnight counts under its first id. By `url`: visitors that \
                 viewed the page."
            }
            Self::Visits => {
                "visits that overlap the period. A visit ends after 30 minutes without an event, or 24 hours after \
                 it began; neither midnight nor another campaign ends it. A visit across the boundary of two \
                 buckets counts in both, so a series may sum to more than the total. By `url`: visits that viewed \
                 the page."
            }
            Self::BounceRate => {
                "percentage of visits with a single page view and no custom event, as an integer, of the visits in \
                 `visits`; each visit counts as a whole. Null without visits. By `url`: of the visits that entered on \
                 the page."
            }
            Self::AvgSessionDuration => {
                "mean time in seconds from a visit's first event to its last, including engagement with the last \
                 page, over all visits with bounces; an integer; null without visits. By `url`: of the visits that \
                 entered on the page."
            }
            Self::ViewsPerVisit => {
                "mean number of page views of a visit, two decimals; null without visits. By `url`: of the visits that \
                 entered on the page."
            }
            Self::ActiveVisitors => {
                "distinct visitors with a page view or custom event in the last five minutes, whatever the period; \
                 a series has them in the buckets of these minutes; compared with the five minutes before."
            }
            Self::AvgTimeOnPage => {
                "mean time in seconds for which a page was visible and focused during a visit, over all pages of all \
                 visits that reported any; an integer; null if none did."
            }
        }
    }

    /// Computes the metric from its counts.
    pub fn figure(self, sums: Sums) -> MetricValue {
        match self {
            Self::PageViews | Self::UniqueVisitors | Self::Visits | Self::ActiveVisitors => {
                MetricValue::Count(sums.amount)
            }
            mean if mean.is_mean() && sums.over == 0 => MetricValue::Unknown,
            Self::BounceRate => MetricValue::Count(rounded(100 * u128::from(sums.amount), sums.over)),
            Self::AvgSessionDuration | Self::AvgTimeOnPage => {
                MetricValue::Count(rounded(sums.amount.into(), sums.over.saturating_mul(1000)))
            }
            Self::ViewsPerVisit => MetricValue::hundredths(rounded(100 * u128::from(sums.amount), sums.over)),
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
