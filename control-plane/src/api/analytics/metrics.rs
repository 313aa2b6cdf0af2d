//! Metric queries: a total, a time series, a breakdown by a dimension, and a comparison with the previous period.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::analytics::{
    self, Bucket, Dimension, Grouping, Metric, MetricValue, NONE, RawMetricQuery, Sums, change_percent,
    parse_metric_query,
};
use schemars::JsonSchema;
use serde::Serialize;
use warehouse::{BreakdownSums, ReportQuery, SiteAnalytics};
use web::{Problem, Query, Reply};

use super::parameters::metric_parameters;
use super::views::{resolve_query, run_query};
use crate::App;
use crate::call::{Call, scope};

metric_parameters!(MetricQuery {
    #[schemars(extend("enum" = Metric::ALL.map(Metric::as_str), "description" = meanings(&Metric::ALL, Metric::PageViews)))]
    metric: Option<String>,
    /// Adds `series`: one value per hour, day, week or month of the period in the site's time zone, including empty
    /// ones. Weeks start on Monday; the first and last week are cut at the ends of the period. Days on which the
    /// clock changes have 23 or 25 hours. At most 2,500 values.
    #[schemars(extend("enum" = Grouping::ALL.map(Grouping::as_str)))]
    group_by: Option<String>,
    /// Adds `breakdown`. `url`, `entry_page` and `exit_page` are paths; `referrer` is a host. Campaign, referrer and
    /// channel are those of the visit's first event and hold for the whole visit.
    #[schemars(extend("enum" = Dimension::ALL.map(Dimension::as_str)))]
    breakdown_by: Option<String>,
});

/// The description of a `metric` parameter, with one line per metric.
pub(super) fn meanings(metrics: &[Metric], default: Metric) -> String {
    let line = |metric: &Metric| format!("\n- `{}`: {}", metric.as_str(), metric.meaning());
    let lines: String = metrics.iter().map(line).collect();
    format!("Default `{}`.\n{lines}", default.as_str())
}

impl MetricQuery {
    fn raw(&self) -> RawMetricQuery<'_> {
        RawMetricQuery {
            metric: self.metric.as_deref(),
            group_by: self.group_by.as_deref(),
            breakdown_by: self.breakdown_by.as_deref(),
            ..self.shared()
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetricResponse {
    /// The metric that was queried.
    metric: String,
    /// Value over the whole period; null if there is nothing to average.
    total: MetricValue,
    /// Start of the period, inclusive.
    from: DateTime<Utc>,
    /// End of the period, exclusive.
    to: DateTime<Utc>,
    /// IANA name of the site's time zone.
    timezone: String,
    /// One value per interval in order of time, without gaps; only with `groupBy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Vec<SeriesPoint>>,
    /// Highest counts first; for rates and averages, the values with the most visits first. Only with `breakdownBy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    breakdown: Option<Vec<BreakdownRow>>,
    /// The previous period; only with `compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<PeriodComparison>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SeriesPoint {
    /// First day of the day, week or month; for an hour, its start with the offset from UTC.
    date: String,
    /// Value of the metric in this interval.
    value: MetricValue,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BreakdownRow {
    /// Value of the dimension; `(none)` if it is missing.
    key: String,
    /// Value of the metric for this row.
    value: MetricValue,
    /// Value in the previous period, of the same key: null if there is nothing to average; only with `compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<MetricValue>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PeriodComparison {
    /// Value of the metric over the previous period.
    total: MetricValue,
    /// Change from the previous period in percent, with one decimal; null if the previous value is 0 or missing.
    change_percent: Option<f64>,
    /// Start of the previous period, inclusive.
    from: DateTime<Utc>,
    /// End of the previous period, exclusive.
    to: DateTime<Utc>,
}

pub(super) async fn query(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(query): Query<MetricQuery>,
) -> Result<Reply<MetricResponse>, Problem> {
    let (site, parsed) =
        resolve_query(&app, &call, query.site_id, |zone| parse_metric_query(&query.raw(), call.now, zone))
            .await?;
    let timezone = site.timezone;
    let response =
        run_query(&app, &call, site.id, |analytics| async move { run(&analytics, &parsed, timezone).await })
            .await?;
    Ok(call.reply(response))
}

async fn run(
    site: &SiteAnalytics<'_>,
    query: &analytics::MetricQuery,
    timezone: String,
) -> Result<MetricResponse, warehouse::Error> {
    let metric = query.metric;
    let one = std::slice::from_ref(query);
    let mut report = site
        .report(ReportQuery {
            totals: one,
            series: (!query.buckets.is_empty()).then_some(query),
            breakdowns: if query.breakdown.is_some() { one } else { &[] },
        })
        .await?;
    let sums = report.totals.pop().unwrap_or_default();
    let total = metric.figure(sums.sums);
    let comparison = query.compared.zip(sums.compared).map(|(range, sums)| {
        let before = metric.figure(sums);
        let change_percent = change_percent(before, total);
        PeriodComparison { total: before, change_percent, from: range.start, to: range.end }
    });
    let breakdown = report.breakdowns.pop();
    Ok(MetricResponse {
        metric: metric.as_str().to_owned(),
        total,
        from: query.range.start,
        to: query.range.end,
        timezone,
        series: (!query.buckets.is_empty()).then(|| series_points(metric, &query.buckets, report.series)),
        breakdown: breakdown.map(|rows| breakdown_rows(metric, rows)),
        comparison,
    })
}

/// Returns the values of a series in order of time.
pub(super) fn series_points(metric: Metric, buckets: &[Bucket], sums: Vec<Sums>) -> Vec<SeriesPoint> {
    let point =
        |(bucket, sums): (&Bucket, _)| SeriesPoint { date: bucket.date.clone(), value: metric.figure(sums) };
    buckets.iter().zip(sums).map(point).collect()
}

/// Returns the rows of a breakdown.
pub(super) fn breakdown_rows(metric: Metric, rows: Vec<BreakdownSums>) -> Vec<BreakdownRow> {
    let key = |key: String| if key.is_empty() { NONE.to_owned() } else { key };
    let row = |row: BreakdownSums| BreakdownRow {
        key: key(row.key),
        value: metric.figure(row.sums),
        previous: row.compared.map(|sums| metric.figure(sums)),
    };
    rows.into_iter().map(row).collect()
}
