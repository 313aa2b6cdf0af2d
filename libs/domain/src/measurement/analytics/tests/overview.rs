//! Tests of overviews.

use super::*;
use crate::analytics::{
    Dimension, Grouping, Metric, OVERVIEW_METRICS, RawMetricQuery, RawOverviewQuery, parse_metric_query,
    parse_overview_query,
};

#[test]
fn an_overview_consists_of_metric_queries() {
    let query = RawMetricQuery {
        days: recent_days("30d"),
        filter: vec![("country", "DE")],
        compare: true,
        ..RawMetricQuery::default()
    };
    let raw = RawOverviewQuery { query: query.clone(), dimensions: [None, Some("exit_page"), None, None] };
    let overview = parse_overview_query(&raw, now(), Zone::UTC).unwrap();
    for (figure, metric) in overview.figures.iter().zip(OVERVIEW_METRICS) {
        let alone = RawMetricQuery { metric: Some(metric.as_str()), ..query.clone() };
        assert_eq!(figure, &parse_metric_query(&alone, now(), Zone::UTC).unwrap());
    }
    let by_day = RawMetricQuery {
        metric: Some("unique_visitors"),
        group_by: Some("day"),
        compare_series: true,
        ..query
    };
    assert_eq!(overview.series, parse_metric_query(&by_day, now(), Zone::UTC).unwrap());
    assert_eq!(overview.grouping, Grouping::Day);
    let dimensions: Vec<_> = overview.panels.iter().filter_map(|panel| panel.breakdown).collect();
    let expected = [Dimension::Referrer, Dimension::ExitPage, Dimension::Country, Dimension::Device];
    assert_eq!(dimensions, expected);
    assert!(overview.panels.iter().all(|panel| panel.metric == Metric::UniqueVisitors));
}

#[test]
fn the_previous_series_covers_the_days_before() {
    let query = RawMetricQuery { days: recent_days("7d"), compare: true, ..RawMetricQuery::default() };
    let raw = RawOverviewQuery { query, ..RawOverviewQuery::default() };
    let series = parse_overview_query(&raw, now(), Zone::UTC).unwrap().series;
    let dates: Vec<_> = series.compared_buckets.iter().map(|bucket| bucket.date.as_str()).collect();
    assert_eq!((dates.len(), dates[0], dates[6]), (7, "2026-11-08", "2026-11-14"));
    let alone = RawOverviewQuery {
        query: RawMetricQuery { days: recent_days("7d"), ..RawMetricQuery::default() },
        ..RawOverviewQuery::default()
    };
    assert_eq!(parse_overview_query(&alone, now(), Zone::UTC).unwrap().series.compared_buckets, []);
}

#[test]
fn every_invalid_field_of_an_overview_is_reported() {
    let raw = RawOverviewQuery {
        query: RawMetricQuery {
            metric: Some("active_visitors"),
            group_by: Some("minute"),
            limit: Some(0),
            ..RawMetricQuery::default()
        },
        dimensions: [Some("url"), None, None, Some("screen")],
    };
    let expected = [
        ("metric", "unknown"),
        ("groupBy", "unknown"),
        ("sources", "unknown"),
        ("devices", "unknown"),
        ("limit", "range"),
    ];
    assert_eq!(invalid(parse_overview_query(&raw, now(), Zone::UTC)), errors(&expected));
}
