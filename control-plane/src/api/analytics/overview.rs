//! The overview of a site: what a page of statistics shows, in one call and three statements of ClickHouse.

use std::collections::BTreeMap;

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::analytics::{
    self, Dimension, Grouping, Metric, MetricValue, OVERVIEW_METRICS, OVERVIEW_PANELS, Range, RawMetricQuery,
    RawOverviewQuery, change_percent, parse_overview_query,
};
use schemars::JsonSchema;
use serde::Serialize;
use warehouse::{BreakdownSums, ComparedSums, ReportQuery, SiteAnalytics};
use web::{Problem, Query, Reply};

use super::metrics::{BreakdownRow, SeriesPoint, breakdown_rows, meanings, series_points};
use super::parameters::metric_parameters;
use super::views::{find_drops, resolve_query, run_query};
use crate::App;
use crate::call::{Call, scope};

metric_parameters!(AnalyticsOverviewQuery {
    #[schemars(extend("enum" = OVERVIEW_METRICS.map(Metric::as_str), "description" = series_meaning()))]
    metric: Option<String>,
    /// Interval of the series; default `day`. See analytics.query.
    #[schemars(extend("enum" = Grouping::ALL.map(Grouping::as_str), "default" = Grouping::Day.as_str()))]
    group_by: Option<String>,
    /// Dimension of the panel `sources`; default `referrer`.
    #[schemars(extend("enum" = dimensions(0)))]
    sources: Option<String>,
    /// Dimension of the panel `pages`; default `url`.
    #[schemars(extend("enum" = dimensions(1)))]
    pages: Option<String>,
    /// Dimension of the panel `places`; default `country`.
    #[schemars(extend("enum" = dimensions(2)))]
    places: Option<String>,
    /// Dimension of the panel `devices`; default `device`.
    #[schemars(extend("enum" = dimensions(3)))]
    devices: Option<String>,
});

/// The description of the parameter `metric`.
fn series_meaning() -> String {
    format!("The metric of the series. {}", meanings(&OVERVIEW_METRICS, OVERVIEW_METRICS[0]))
}

/// The names of a panel's dimensions.
fn dimensions(panel: usize) -> Vec<&'static str> {
    OVERVIEW_PANELS[panel].dimensions.iter().map(|dimension| dimension.as_str()).collect()
}

impl AnalyticsOverviewQuery {
    fn raw(&self) -> RawOverviewQuery<'_> {
        let query = RawMetricQuery {
            metric: self.metric.as_deref(),
            group_by: self.group_by.as_deref(),
            ..self.shared()
        };
        let dimensions = [&self.sources, &self.pages, &self.places, &self.devices];
        RawOverviewQuery { query, dimensions: dimensions.map(Option::as_deref) }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AnalyticsOverviewResponse {
    /// Start of the period, inclusive.
    from: DateTime<Utc>,
    /// End of the period, exclusive.
    to: DateTime<Utc>,
    /// IANA name of the site's time zone.
    timezone: String,
    /// The previous period; only with `compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<ComparedPeriod>,
    /// `unique_visitors`, `visits`, `page_views`, `views_per_visit`, `bounce_rate` and `avg_session_duration`.
    figures: Vec<OverviewFigure>,
    /// One metric over time.
    series: OverviewSeries,
    /// The top values of four dimensions, by `unique_visitors`.
    panels: OverviewPanels,
    /// Events that were not counted in the last 24 hours, by reason: `bot`, `quota`, …
    dropped: BTreeMap<String, i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ComparedPeriod {
    /// Start of the previous period, inclusive.
    from: DateTime<Utc>,
    /// End of the previous period, exclusive.
    to: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OverviewFigure {
    /// The metric.
    metric: String,
    /// Value over the whole period; null if there is nothing to average.
    total: MetricValue,
    /// Value over the previous period: null if there is nothing to average; only with `compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<MetricValue>,
    /// Change from the previous period in percent, with one decimal; null without a comparison, and if the previous value
    /// is 0 or missing.
    change_percent: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OverviewSeries {
    /// The metric of the series.
    metric: String,
    /// Interval of its values.
    group_by: String,
    /// One value per interval in order of time, without gaps.
    current: Vec<SeriesPoint>,
    /// Those of the previous period; only with `compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<Vec<SeriesPoint>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OverviewPanels {
    /// Where visits came from.
    sources: OverviewPanel,
    /// Pages that were viewed.
    pages: OverviewPanel,
    /// Where visitors are.
    places: OverviewPanel,
    /// What visitors use.
    devices: OverviewPanel,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct OverviewPanel {
    /// The dimension of the rows.
    dimension: String,
    /// Highest counts first.
    rows: Vec<BreakdownRow>,
}

pub(super) async fn overview(
    call: Call<scope::AnalyticsRead>,
    State(app): State<App>,
    Query(query): Query<AnalyticsOverviewQuery>,
) -> Result<Reply<AnalyticsOverviewResponse>, Problem> {
    let (site, parsed) =
        resolve_query(&app, &call, query.site_id, |zone| parse_overview_query(&query.raw(), call.now, zone))
            .await?;
    let dropped = find_drops(&app, &call, site.id).await?;
    let timezone = site.timezone;
    let run = |analytics| async move { run(&analytics, &parsed, timezone, dropped).await };
    let response = run_query(&app, &call, site.id, run).await?;
    Ok(call.reply(response))
}

async fn run(
    site: &SiteAnalytics<'_>,
    query: &analytics::OverviewQuery,
    timezone: String,
    dropped: BTreeMap<String, i64>,
) -> Result<AnalyticsOverviewResponse, warehouse::Error> {
    let report = site
        .report(ReportQuery {
            totals: &query.figures,
            series: Some(&query.series),
            breakdowns: &query.panels,
        })
        .await?;
    let panel = |(question, rows): (&analytics::MetricQuery, Vec<BreakdownSums>)| OverviewPanel {
        dimension: question.breakdown.map(Dimension::as_str).unwrap_or_default().to_owned(),
        rows: breakdown_rows(question.metric, rows),
    };
    let panels: Vec<_> = query.panels.iter().zip(report.breakdowns).map(panel).collect();
    let [sources, pages, places, devices] = <[OverviewPanel; 4]>::try_from(panels).unwrap_or_default();
    let series = &query.series;
    let period = |range: Range| ComparedPeriod { from: range.start, to: range.end };
    Ok(AnalyticsOverviewResponse {
        from: series.range.start,
        to: series.range.end,
        timezone,
        compared: series.compared.map(period),
        figures: query
            .figures
            .iter()
            .zip(report.totals)
            .map(|(question, sums)| figure(question.metric, sums))
            .collect(),
        series: OverviewSeries {
            metric: series.metric.as_str().to_owned(),
            group_by: query.grouping.as_str().to_owned(),
            current: series_points(series.metric, &series.buckets, report.series),
            previous: series
                .compared
                .map(|_| series_points(series.metric, &series.compared_buckets, report.compared_series)),
        },
        panels: OverviewPanels { sources, pages, places, devices },
        dropped,
    })
}

fn figure(metric: Metric, sums: ComparedSums) -> OverviewFigure {
    let total = metric.figure(sums.sums);
    let previous = sums.compared.map(|sums| metric.figure(sums));
    OverviewFigure {
        metric: metric.as_str().to_owned(),
        total,
        previous,
        change_percent: previous.and_then(|before| change_percent(before, total)),
    }
}
