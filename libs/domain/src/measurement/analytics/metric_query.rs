//! Queries of one metric: its period, series, breakdown and filters.

use chrono::{DateTime, NaiveDate, Utc};

use super::filters::{read_filters, read_word};
use super::periods::{RawDays, read_days};
use super::{
    ACTIVE_FOR, BUCKETS_MAX, Bucket, Days, Dimension, Filter, Grouping, Metric, Period, Range, Zone,
};
use crate::FieldError;

/// Default number of rows in a breakdown.
pub const LIMIT_DEFAULT: u32 = 10;
/// Maximum number of rows in a breakdown.
pub const LIMIT_MAX: u32 = 1000;

/// The unparsed parameters of a metric query.
#[derive(Debug, Clone, Default)]
pub struct RawMetricQuery<'a> {
    /// `metric`; page views if absent.
    pub metric: Option<&'a str>,
    /// The days of the query.
    pub days: RawDays<'a>,
    /// `groupBy`.
    pub group_by: Option<&'a str>,
    /// `breakdownBy`.
    pub breakdown_by: Option<&'a str>,
    /// `filters`, a JSON object.
    pub filters: Option<&'a str>,
    /// `filters.utm_source=…` and so on, by the dimension's name.
    pub filter: Vec<(&'a str, &'a str)>,
    /// `limit`.
    pub limit: Option<i64>,
    /// `compare`.
    pub compare: bool,
    /// Whether the series is compared, too.
    pub compare_series: bool,
}

/// A validated metric query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricQuery {
    pub metric: Metric,
    /// Interval of the period.
    pub range: Range,
    /// Interval of the counted events. It differs from `range` for active visitors, who are always counted now.
    pub counted: Range,
    /// The previous interval, for a comparison.
    pub compared: Option<Range>,
    /// Buckets of the series in order of time, without gaps; empty if no series is requested.
    pub buckets: Vec<Bucket>,
    /// Buckets of the previous interval; empty unless the series is compared.
    pub compared_buckets: Vec<Bucket>,
    /// Dimension of the breakdown.
    pub breakdown: Option<Dimension>,
    pub filters: Vec<Filter>,
    /// Maximum number of rows in the breakdown.
    pub limit: u32,
}

/// Parses and validates a metric query. Returns the errors of all fields.
pub fn parse_metric_query(
    query: &RawMetricQuery<'_>,
    now: DateTime<Utc>,
    zone: Zone,
) -> Result<MetricQuery, Vec<FieldError>> {
    let mut errors = Vec::new();
    let metric = read_word("metric", query.metric, &Metric::ALL, Metric::as_str, &mut errors)
        .unwrap_or(Metric::PageViews);
    let today = now.with_timezone(&zone).date_naive();
    let days = read_days(query.days, &Period::ALL, today, &mut errors);
    let grouping = read_word("groupBy", query.group_by, &Grouping::ALL, Grouping::as_str, &mut errors);
    let breakdown =
        read_word("breakdownBy", query.breakdown_by, &Dimension::ALL, Dimension::as_str, &mut errors);
    let filters = read_filters("filters", query.filter.iter().copied(), query.filters, &mut errors);
    let limit = read_limit(query.limit, &mut errors);
    let buckets = days.and_then(|days| read_buckets(days, grouping, zone, &mut errors)).unwrap_or_default();
    let compared_buckets = match (days, grouping) {
        // They are as many as those of the period, which were checked, but for an hour where the clock changes.
        (Some(days), Some(grouping)) if query.compare && query.compare_series && errors.is_empty() => {
            grouping.buckets(days.before(today), zone)
        }
        _ => Vec::new(),
    };
    let (Some(days), Some(limit), true) = (days, limit, errors.is_empty()) else {
        return Err(errors);
    };
    let range = days.range(zone);
    let (counted, before) = counted(metric, days, today, now, zone);
    let compared = query.compare.then_some(before);
    Ok(MetricQuery { metric, range, counted, compared, buckets, compared_buckets, breakdown, filters, limit })
}

/// Returns the interval of the counted events, and the interval of the comparison.
fn counted(metric: Metric, days: Days, today: NaiveDate, now: DateTime<Utc>, zone: Zone) -> (Range, Range) {
    if metric == Metric::ActiveVisitors {
        let start = now - ACTIVE_FOR;
        return (Range { start, end: now }, Range { start: start - ACTIVE_FOR, end: start });
    }
    (days.range(zone), days.before(today).range(zone))
}

fn read_limit(limit: Option<i64>, errors: &mut Vec<FieldError>) -> Option<u32> {
    let limit =
        u32::try_from(limit.unwrap_or(LIMIT_DEFAULT.into())).ok().filter(|it| (1..=LIMIT_MAX).contains(it));
    if limit.is_none() {
        errors.push(FieldError::new("limit", "range", format!("limit must be from 1 to {LIMIT_MAX}")));
    }
    limit
}

fn read_buckets(
    days: Days,
    grouping: Option<Grouping>,
    zone: Zone,
    errors: &mut Vec<FieldError>,
) -> Option<Vec<Bucket>> {
    let grouping = grouping?;
    // The lower bound avoids building far too many buckets; the exact number is known only from the buckets, as days
    // differ in hours.
    let buckets = (grouping.at_least(days) <= BUCKETS_MAX).then(|| grouping.buckets(days, zone));
    let buckets = buckets.filter(|all| u64::try_from(all.len()).is_ok_and(|count| count <= BUCKETS_MAX));
    if buckets.is_none() {
        let message = format!(
            "by {} this period has more than {BUCKETS_MAX} values: ask for fewer days",
            grouping.as_str()
        );
        errors.push(FieldError::new("groupBy", "too_many", message));
    }
    buckets
}
