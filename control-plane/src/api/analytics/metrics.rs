//! Metric queries: a total, a time series, a breakdown by a dimension, and a comparison with the previous period.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::analytics::{
    self, Dimension, Grouping, LIMIT_DEFAULT, LIMIT_MAX, Metric, MetricValue, NONE, Period, RawDays,
    RawMetricQuery, change_percent, parse_metric_query,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use warehouse::SiteAnalytics;
use web::{Problem, Query, Reply};

use super::views::{resolve_query, run_query};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MetricQuery {
    /// The analytics site to query.
    site_id: Uuid,
    #[schemars(extend("enum" = Metric::ALL.map(Metric::as_str), "description" = meanings()))]
    metric: Option<String>,
    /// Whole days in the site's time zone. `7d` (the default) is today and the 6 days before; `custom` runs from
    /// `from` to `to`, both included.
    #[schemars(extend("enum" = Period::ALL.map(Period::as_str)))]
    period: Option<String>,
    /// First day of a `custom` period.
    #[schemars(extend("format" = "date"))]
    from: Option<String>,
    /// Last day of a `custom` period.
    #[schemars(extend("format" = "date"))]
    to: Option<String>,
    /// Adds `series`: one value per hour, day, week or month of the period in the site's time zone, including empty
    /// ones. Weeks start on Monday; the first and last week are cut at the ends of the period. Days on which the
    /// clock changes have 23 or 25 hours. At most 2,500 values.
    #[schemars(extend("enum" = Grouping::ALL.map(Grouping::as_str)))]
    group_by: Option<String>,
    /// Adds `breakdown`. `url`, `entry_page` and `exit_page` are paths; `referrer` is a host. Campaign, referrer and
    /// channel are those of the visit's first event and hold for the whole visit.
    #[schemars(extend("enum" = Dimension::ALL.map(Dimension::as_str)))]
    breakdown_by: Option<String>,
    /// A JSON object of dimensions and exact values; an event must match all of them. Names as in `breakdownBy`;
    /// `(none)` or an empty string matches a missing value. `filters.utm_source=…` and
    /// `filters[utm_source]=…` are other ways to write the same.
    #[schemars(extend("examples" = [r#"{"utm_source":"newsletter"}"#]))]
    filters: Option<String>,
    /// Adds `comparison` with the same number of days immediately before. Future days are left out of both periods.
    #[serde(default)]
    compare: bool,
    /// Maximum number of breakdown rows; default 10.
    #[schemars(range(min = 1, max = LIMIT_MAX), extend("default" = LIMIT_DEFAULT))]
    limit: Option<i64>,
    /// Same as `url` in `filters`.
    #[serde(rename = "filters.url")]
    url: Option<String>,
    /// Same as `referrer` in `filters`.
    #[serde(rename = "filters.referrer")]
    referrer: Option<String>,
    /// Same as `country` in `filters`.
    #[serde(rename = "filters.country")]
    country: Option<String>,
    /// Same as `city` in `filters`.
    #[serde(rename = "filters.city")]
    city: Option<String>,
    /// Same as `region` in `filters`.
    #[serde(rename = "filters.region")]
    region: Option<String>,
    /// Same as `device` in `filters`.
    #[serde(rename = "filters.device")]
    device: Option<String>,
    /// Same as `browser` in `filters`.
    #[serde(rename = "filters.browser")]
    browser: Option<String>,
    /// Same as `os` in `filters`.
    #[serde(rename = "filters.os")]
    os: Option<String>,
    /// Same as `utm_source` in `filters`.
    #[serde(rename = "filters.utm_source")]
    utm_source: Option<String>,
    /// Same as `utm_medium` in `filters`.
    #[serde(rename = "filters.utm_medium")]
    utm_medium: Option<String>,
    /// Same as `utm_campaign` in `filters`.
    #[serde(rename = "filters.utm_campaign")]
    utm_campaign: Option<String>,
    /// Same as `entry_page` in `filters`.
    #[serde(rename = "filters.entry_page")]
    entry_page: Option<String>,
    /// Same as `exit_page` in `filters`.
    #[serde(rename = "filters.exit_page")]
    exit_page: Option<String>,
    /// Same as `channel` in `filters`.
    #[serde(rename = "filters.channel")]
    channel: Option<String>,
}

/// The description of the `metric` parameter, with one line per metric.
fn meanings() -> String {
    let line = |metric: Metric| format!("\n- `{}`: {}", metric.as_str(), metric.meaning());
    let lines: String = Metric::ALL.map(line).concat();
    format!("Default `page_views`.\n{lines}")
}

impl MetricQuery {
    /// The filters given as separate `filters.…` parameters.
    fn filter(&self) -> Vec<(&str, &str)> {
        let given = |dimension: Dimension| {
            let value = match dimension {
                Dimension::Url => &self.url,
                Dimension::Referrer => &self.referrer,
                Dimension::Country => &self.country,
                Dimension::City => &self.city,
                Dimension::Region => &self.region,
                Dimension::Device => &self.device,
                Dimension::Browser => &self.browser,
                Dimension::Os => &self.os,
                Dimension::UtmSource => &self.utm_source,
                Dimension::UtmMedium => &self.utm_medium,
                Dimension::UtmCampaign => &self.utm_campaign,
                Dimension::EntryPage => &self.entry_page,
                Dimension::ExitPage => &self.exit_page,
                Dimension::Channel => &self.channel,
            };
            Some((dimension.as_str(), value.as_deref()?))
        };
        Dimension::ALL.into_iter().filter_map(given).collect()
    }

    fn raw(&self) -> RawMetricQuery<'_> {
        RawMetricQuery {
            metric: self.metric.as_deref(),
            days: RawDays::new(self.period.as_deref(), self.from.as_deref(), self.to.as_deref()),
            group_by: self.group_by.as_deref(),
            breakdown_by: self.breakdown_by.as_deref(),
            filters: self.filters.as_deref(),
            filter: self.filter(),
            limit: self.limit,
            compare: self.compare,
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
struct SeriesPoint {
    /// First day of the day, week or month; for an hour, its start with the offset from UTC.
    date: String,
    /// Value of the metric in this interval.
    value: MetricValue,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BreakdownRow {
    /// Value of the dimension; `(none)` if it is missing.
    key: String,
    /// Value of the metric for this row.
    value: MetricValue,
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
    let total = metric.figure(site.total(query, query.counted).await?);
    let mut response = MetricResponse {
        metric: metric.as_str().to_owned(),
        total,
        from: query.range.start,
        to: query.range.end,
        timezone,
        series: None,
        breakdown: None,
        comparison: None,
    };
    if !query.buckets.is_empty() {
        let sums = site.series(query).await?;
        let point = |(bucket, sums): (&analytics::Bucket, _)| SeriesPoint {
            date: bucket.date.clone(),
            value: metric.figure(sums),
        };
        response.series = Some(query.buckets.iter().zip(sums).map(point).collect());
    }
    if let Some(dimension) = query.breakdown {
        let rows = site.breakdown(query, dimension).await?;
        let key = |word: String| if word.is_empty() { NONE.to_owned() } else { word };
        let row = |(word, sums)| BreakdownRow { key: key(word), value: metric.figure(sums) };
        response.breakdown = Some(rows.into_iter().map(row).collect());
    }
    if let Some(range) = query.compared {
        let before = metric.figure(site.total(query, range).await?);
        let change_percent = change_percent(before, total);
        response.comparison =
            Some(PeriodComparison { total: before, change_percent, from: range.start, to: range.end });
    }
    Ok(response)
}
