//! The overview of a site: six figures, the series of one of them, and four breakdowns.
//!
//! It consists of metric queries with the same period and filters, so its values are those that each query alone would
//! return.

use chrono::{DateTime, Utc};

use super::filters::read_word;
use super::metric_query::{MetricQuery, RawMetricQuery, parse_metric_query};
use super::{Dimension, Grouping, Metric, Zone};
use crate::FieldError;

/// The metrics of the figures, in the order of the response.
pub const OVERVIEW_METRICS: [Metric; 6] = [
    Metric::UniqueVisitors,
    Metric::Visits,
    Metric::PageViews,
    Metric::ViewsPerVisit,
    Metric::BounceRate,
    Metric::AvgSessionDuration,
];
/// The metric of the breakdowns.
const PANEL_METRIC: Metric = Metric::UniqueVisitors;

/// A breakdown of the overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverviewPanel {
    /// Its name in the API, which is also the parameter that selects its dimension.
    pub name: &'static str,
    /// The dimensions it can show; the first is the default.
    pub dimensions: &'static [Dimension],
}

/// The breakdowns, in the order of the response.
pub const OVERVIEW_PANELS: [OverviewPanel; 4] = [
    OverviewPanel {
        name: "sources",
        dimensions: &[
            Dimension::Referrer,
            Dimension::Channel,
            Dimension::UtmCampaign,
            Dimension::UtmSource,
            Dimension::UtmMedium,
        ],
    },
    OverviewPanel { name: "pages", dimensions: &[Dimension::Url, Dimension::EntryPage, Dimension::ExitPage] },
    OverviewPanel { name: "places", dimensions: &[Dimension::Country, Dimension::Region, Dimension::City] },
    OverviewPanel { name: "devices", dimensions: &[Dimension::Device, Dimension::Browser, Dimension::Os] },
];

/// The unparsed parameters of an overview.
#[derive(Debug, Clone, Default)]
pub struct RawOverviewQuery<'a> {
    /// The parameters that it shares with a metric query. The metric and the grouping are those of the series; there is no
    /// breakdown.
    pub query: RawMetricQuery<'a>,
    /// The dimension of each panel, in the order of [`OVERVIEW_PANELS`].
    pub dimensions: [Option<&'a str>; 4],
}

/// A validated overview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverviewQuery {
    /// The totals of [`OVERVIEW_METRICS`].
    pub figures: Vec<MetricQuery>,
    /// The series.
    pub series: MetricQuery,
    /// How the series is grouped.
    pub grouping: Grouping,
    /// The breakdowns, in the order of [`OVERVIEW_PANELS`].
    pub panels: Vec<MetricQuery>,
}

/// Parses and validates an overview. Returns the errors of all fields.
pub fn parse_overview_query(
    query: &RawOverviewQuery<'_>,
    now: DateTime<Utc>,
    zone: Zone,
) -> Result<OverviewQuery, Vec<FieldError>> {
    let mut errors = Vec::new();
    let metric = read_word("metric", query.query.metric, &OVERVIEW_METRICS, Metric::as_str, &mut errors)
        .unwrap_or(PANEL_METRIC);
    let grouping = read_word("groupBy", query.query.group_by, &Grouping::ALL, Grouping::as_str, &mut errors)
        .unwrap_or(Grouping::Day);
    let dimensions: Vec<_> = OVERVIEW_PANELS
        .into_iter()
        .zip(query.dimensions)
        .map(|(OverviewPanel { name, dimensions }, asked)| {
            read_word(name, asked, dimensions, Dimension::as_str, &mut errors).unwrap_or(dimensions[0])
        })
        .collect();
    let raw = RawMetricQuery {
        metric: Some(metric.as_str()),
        group_by: Some(grouping.as_str()),
        breakdown_by: None,
        compare_series: true,
        ..query.query.clone()
    };
    let series = parse_metric_query(&raw, now, zone);
    let series = match series {
        Ok(series) if errors.is_empty() => series,
        Ok(_) => return Err(errors),
        Err(further) => {
            errors.extend(further);
            return Err(errors);
        }
    };
    let whole = MetricQuery { buckets: Vec::new(), compared_buckets: Vec::new(), ..series.clone() };
    let figure = |metric| MetricQuery { metric, ..whole.clone() };
    let panel = |dimension| MetricQuery { breakdown: Some(dimension), ..figure(PANEL_METRIC) };
    Ok(OverviewQuery {
        figures: OVERVIEW_METRICS.map(figure).into(),
        panels: dimensions.into_iter().map(panel).collect(),
        series,
        grouping,
    })
}
