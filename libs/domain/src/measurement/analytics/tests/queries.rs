//! Tests of parsing and validating queries.

use super::*;
use crate::analytics::{
    Dimension, Filter, Metric, MetricQuery, RawFunnelQuery, RawFunnelStep, RawMetricQuery, RawRetentionQuery,
    RawVisitsQuery, parse_funnel_query, parse_metric_query, parse_retention_query, parse_visits_query,
    parse_zone,
};

fn parse(query: RawMetricQuery<'_>) -> Result<MetricQuery, Vec<FieldError>> {
    parse_metric_query(&query, now(), Zone::UTC)
}

fn custom<'a>(from: &'a str, to: &'a str) -> RawMetricQuery<'a> {
    RawMetricQuery { days: custom_days(from, to), ..RawMetricQuery::default() }
}

#[test]
fn absent_parameters_mean_page_views_of_a_week() {
    let question = parse(RawMetricQuery::default()).unwrap();
    assert_eq!((question.metric, question.limit), (Metric::PageViews, 10));
    assert_eq!(
        (question.range.start, question.range.end),
        (at("2026-11-15T00:00:00Z"), at("2026-11-22T00:00:00Z"))
    );
    assert_eq!(question.counted, question.range);
    assert!(question.buckets.is_empty() && question.filters.is_empty());
    assert_eq!((question.breakdown, question.compared), (None, None));
}

#[test]
fn every_invalid_field_is_reported_at_once() {
    let query = RawMetricQuery {
        metric: Some("clicks"),
        days: RawDays::new(Some("custom"), Some("2026-13-01"), None),
        group_by: Some("minute"),
        breakdown_by: Some("language"),
        filters: Some("[]"),
        filter: vec![("language", "de")],
        limit: Some(0),
        ..RawMetricQuery::default()
    };
    let expected = [
        ("metric", "unknown"),
        ("from", "date"),
        ("to", "required"),
        ("groupBy", "unknown"),
        ("breakdownBy", "unknown"),
        ("filters.language", "unknown"),
        ("filters", "type"),
        ("limit", "range"),
    ];
    assert_eq!(invalid(parse(query)), errors(&expected));
    let message = parse(RawMetricQuery { metric: Some(""), ..RawMetricQuery::default() }).unwrap_err()[0]
        .message
        .clone();
    assert!(Metric::ALL.iter().all(|metric| message.contains(metric.as_str())), "{message}");
    assert_eq!(
        invalid(parse(RawMetricQuery { days: recent_days("8d"), ..RawMetricQuery::default() })),
        errors(&[("period", "unknown")])
    );
    assert_eq!(
        invalid(parse(RawMetricQuery { limit: Some(1001), ..RawMetricQuery::default() })),
        errors(&[("limit", "range")])
    );
}

#[test]
fn rejects_days_out_of_order_or_out_of_range() {
    assert_eq!(invalid(parse(custom("2026-02-02", "2026-02-01"))), errors(&[("from", "after_to")]));
    for from in
        ["1969-12-31", "2200-01-01", "2026-2-1", "+2026-02-1", "2026-02-01T00:00:00Z", "", "2026-02-30"]
    {
        assert_eq!(invalid(parse(custom(from, "2026-02-01"))), errors(&[("from", "date")]), "{from}");
    }
}

#[test]
fn a_series_is_bounded() {
    let hours = |from, to| parse(RawMetricQuery { group_by: Some("hour"), ..custom(from, to) });
    assert_eq!(hours("2026-01-01", "2026-04-01").unwrap().buckets.len(), 91 * 24);
    assert_eq!(invalid(hours("2000-01-01", "2026-01-01")), errors(&[("groupBy", "too_many")]));
    assert_eq!(hours("2026-01-01", "2026-04-14").unwrap().buckets.len(), 104 * 24);
    assert_eq!(invalid(hours("2026-01-01", "2026-04-15")), errors(&[("groupBy", "too_many")]));
    assert_eq!(
        invalid(parse(RawMetricQuery { group_by: Some("day"), ..custom("1970-01-01", "2199-12-31") })).len(),
        1
    );
    let months =
        parse(RawMetricQuery { group_by: Some("month"), ..custom("1970-01-01", "2100-12-31") }).unwrap();
    assert_eq!(months.buckets.len(), 131 * 12);
}

#[test]
fn filters_are_json_or_single_parameters() {
    let json = r#"{"utm_source":"news","country":"(none)"}"#;
    let question = parse(RawMetricQuery {
        filters: Some(json),
        filter: vec![("url", "/a")],
        ..RawMetricQuery::default()
    })
    .unwrap();
    let filter = |dimension, value: &str| Filter { dimension, value: value.to_owned() };
    let expected =
        [filter(Dimension::Url, "/a"), filter(Dimension::Country, ""), filter(Dimension::UtmSource, "news")];
    assert_eq!(question.filters, expected);

    let refused = |filters: &str, filter| {
        invalid(parse(RawMetricQuery { filters: Some(filters), filter, ..RawMetricQuery::default() }))
    };
    for text in ["", "{", "null", "\"x\"", "[\"utm_source\"]", "{\"a\":1"] {
        assert_eq!(refused(text, vec![]), errors(&[("filters", "type")]), "{text}");
    }
    assert_eq!(refused(r#"{"os":1}"#, vec![]), errors(&[("filters.os", "type")]));
    assert_eq!(refused(r#"{"os":"a"}"#, vec![("os", "a")]), errors(&[("filters.os", "duplicate")]));
    assert_eq!(refused("{\"os\":\"\\u0000\"}", vec![]), errors(&[("filters.os", "nul")]));
    assert_eq!(
        refused(&format!(r#"{{"os":"{}"}}"#, "x".repeat(1025)), vec![]),
        errors(&[("filters.os", "too_long")])
    );
}

#[test]
fn invalid_filters_get_short_errors() {
    let many: String = (0..20_000).map(|number| format!(r#""f{number}":"x","#)).collect();
    let many = format!("{{{}}}", many.trim_end_matches(','));
    let refused = parse(RawMetricQuery { filters: Some(&many), ..RawMetricQuery::default() }).unwrap_err();
    assert_eq!(refused[0].message, "filters: there are 14 filters, each to be given once, not 20000");
    assert_eq!(invalid(Err::<(), _>(refused)), errors(&[("filters", "too_many")]));
    let words: Vec<String> = (0..15).map(|number| format!("f{number}")).collect();
    let filter = |count: usize| words[..count].iter().map(|word| (word.as_str(), "x")).collect();
    let of =
        |count| parse(RawMetricQuery { filter: filter(count), ..RawMetricQuery::default() }).unwrap_err();
    assert_eq!((of(14).len(), of(15).len()), (14, 1));

    let long = format!(r#"{{"{}":"x"}}"#, "\u{fc}".repeat(100_000));
    let refused = parse(RawMetricQuery { filters: Some(&long), ..RawMetricQuery::default() }).unwrap_err();
    assert!(refused[0].field.chars().count() < 80 && refused[0].message.len() < 500);
}

#[test]
fn active_visitors_are_of_the_last_five_minutes_whatever_the_period() {
    let query = RawMetricQuery {
        metric: Some("active_visitors"),
        compare: true,
        ..custom("2020-01-01", "2020-01-02")
    };
    let question = parse(query).unwrap();
    assert_eq!((question.counted.start, question.counted.end), (at("2026-11-21T09:55:00Z"), now()));
    let before = question.compared.unwrap();
    assert_eq!((before.start, before.end), (at("2026-11-21T09:50:00Z"), at("2026-11-21T09:55:00Z")));
}

#[test]
fn a_list_of_visits_covers_at_most_a_week() {
    let parse = |query: RawVisitsQuery<'_>| parse_visits_query(&query, now(), Zone::UTC);
    let of = |days| RawVisitsQuery { days, ..RawVisitsQuery::default() };
    let usual = parse(RawVisitsQuery::default()).unwrap();
    assert_eq!((usual.min_pages, usual.limit, usual.offset), (2, 50, 0));
    assert!(parse(of(custom_days("2026-01-01", "2026-01-07"))).is_ok());
    let eight = parse(of(custom_days("2026-01-01", "2026-01-08")));
    assert_eq!(invalid(eight), errors(&[("to", "too_long")]));
    assert_eq!(invalid(parse(of(recent_days("30d")))), errors(&[("period", "unknown")]));
    let numbers = RawVisitsQuery {
        min_pages: Some(-1),
        limit: Some(101),
        offset: Some(-1),
        filters: vec![("country", "DE")],
        ..RawVisitsQuery::default()
    };
    assert_eq!(
        invalid(parse(numbers)),
        errors(&[("minPages", "range"), ("limit", "range"), ("offset", "range")])
    );
}

#[test]
fn a_funnel_has_two_to_five_steps_of_valid_events() {
    let parse = |events: &[&str]| {
        let steps = events.iter().map(|event| RawFunnelStep { event, filters: vec![("url", "/")] }).collect();
        parse_funnel_query(&RawFunnelQuery { steps, days: RawDays::default() }, now(), Zone::UTC)
    };
    assert_eq!(parse(&["page_view"; 5]).unwrap().steps.len(), 5);
    for count in [0, 1, 6, 1_000] {
        assert_eq!(invalid(parse(&vec!["page_view"; count])), errors(&[("steps", "count")]), "{count}");
    }
    let long = "x".repeat(65);
    let expected =
        [("steps[0].event", "required"), ("steps[1].event", "reserved"), ("steps[2].event", "too_long")];
    assert_eq!(invalid(parse(&["", "engagement", &long])), errors(&expected));
    let step = RawFunnelStep { event: "a", filters: vec![("colour", "red")] };
    let query = RawFunnelQuery { steps: vec![step.clone(), step], days: recent_days("1d") };
    let expected = [
        ("steps[0].filters.colour", "unknown"),
        ("steps[1].filters.colour", "unknown"),
        ("period", "unknown"),
    ];
    assert_eq!(invalid(parse_funnel_query(&query, now(), Zone::UTC)), errors(&expected));
}

#[test]
fn retention_has_at_most_a_hundred_cohorts() {
    let parse = |from, to, granularity| {
        let query = RawRetentionQuery {
            days: custom_days(from, to),
            granularity: Some(granularity),
            ..RawRetentionQuery::default()
        };
        parse_retention_query(&query, now(), Zone::UTC)
    };
    assert_eq!(parse("2026-01-01", "2026-04-10", "day").unwrap().periods.len(), 100);
    assert_eq!(invalid(parse("2026-01-01", "2026-04-11", "day")), errors(&[("granularity", "too_many")]));
    assert_eq!(invalid(parse("1970-01-01", "2199-04-11", "month")), errors(&[("granularity", "too_many")]));
    let query = RawRetentionQuery {
        granularity: Some("year"),
        first_event: Some(""),
        ..RawRetentionQuery::default()
    };
    let expected = [("firstEvent", "required"), ("granularity", "unknown")];
    assert_eq!(invalid(parse_retention_query(&query, now(), Zone::UTC)), errors(&expected));
}

#[test]
fn a_time_zone_must_exist() {
    assert_eq!(parse_zone("Asia/Kathmandu").unwrap(), zone("Asia/Kathmandu"));
    for name in ["", "Berlin", "+01:00", "Europe/Berlin "] {
        assert_eq!(parse_zone(name).unwrap_err().field, "timezone", "{name}");
    }
}
