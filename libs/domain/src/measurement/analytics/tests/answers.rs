//! Tests of metric values computed from counts.

use super::*;
use crate::analytics::{Metric, MetricValue, Step, Sums, change_percent, fill_steps, hash, percent};

fn figure(metric: Metric, amount: u64, over: u64) -> MetricValue {
    metric.figure(Sums { amount, over })
}

#[test]
fn rates_and_means_are_rounded_half_up_and_a_mean_of_nothing_is_unknown() {
    assert_eq!(figure(Metric::BounceRate, 1, 3), MetricValue::Count(33));
    assert_eq!(figure(Metric::BounceRate, 1, 8), MetricValue::Count(13));
    assert_eq!(figure(Metric::AvgSessionDuration, 4_499, 3), MetricValue::Count(1));
    assert_eq!(figure(Metric::AvgSessionDuration, 4_500, 3), MetricValue::Count(2));
    assert_eq!(figure(Metric::ViewsPerVisit, 10, 3), MetricValue::Decimal(3.33));
    assert_eq!(figure(Metric::AvgTimeOnPage, 90_000, 2), MetricValue::Count(45));
    assert_eq!(figure(Metric::PageViews, 7, 0), MetricValue::Count(7));
    for metric in
        [Metric::BounceRate, Metric::AvgSessionDuration, Metric::ViewsPerVisit, Metric::AvgTimeOnPage]
    {
        assert_eq!(figure(metric, 0, 0), MetricValue::Unknown, "{metric:?}");
    }
    assert_eq!(figure(Metric::BounceRate, 0, 2), MetricValue::Count(0));
}

#[test]
fn a_value_serializes_as_its_number() {
    let written = |figure| serde_json::to_string(&figure).unwrap();
    assert_eq!(
        [MetricValue::Count(7), MetricValue::Decimal(2.5), MetricValue::Unknown].map(written),
        ["7", "2.5", "null"]
    );
}

#[test]
fn a_change_from_zero_is_undefined() {
    let change = |before, after| change_percent(MetricValue::Count(before), MetricValue::Count(after));
    assert_eq!(change(3, 4), Some(33.3));
    assert_eq!(change(4, 3), Some(-25.0));
    assert_eq!(change(0, 4), None);
    assert_eq!(change(0, 0), Some(0.0));
    assert_eq!(change_percent(MetricValue::Unknown, MetricValue::Count(1)), None);
    assert_eq!((percent(1, 3), percent(1, 0)), (33.3, 0.0));
}

#[test]
fn a_step_is_rated_against_the_first_and_drops_off_from_the_previous() {
    let steps = ["a", "b", "c"].map(|event| Step { event: event.to_owned(), filters: vec![] });
    let (figures, overall) = fill_steps(&steps, &[200, 50, 25]);
    let numbers: Vec<_> = figures.iter().map(|step| (step.count, step.rate, step.drop_off)).collect();
    assert_eq!(numbers, [(200, 100.0, 0.0), (50, 25.0, 75.0), (25, 12.5, 50.0)]);
    assert_eq!(overall, 12.5);
    let (figures, overall) = fill_steps(&steps, &[]);
    assert!(figures.iter().all(|step| (step.count, step.rate, step.drop_off) == (0, 0.0, 0.0)));
    assert_eq!(overall, 0.0);
}

#[test]
fn a_visits_public_id_is_unique() {
    let (site, start) = (uuid::Uuid::from_u128(1), now());
    let name = hash(site, 7, start);
    assert_eq!((name.len(), &name), (32, &hash(site, 7, start)));
    assert_ne!(name, hash(site, 8, start));
    assert_ne!(name, hash(site, 7, start + chrono::TimeDelta::milliseconds(1)));
    assert_ne!(name, hash(uuid::Uuid::from_u128(2), 7, start));
}

#[test]
fn every_metric_and_dimension_has_its_own_name() {
    use crate::analytics::Dimension;
    let metrics: std::collections::BTreeSet<_> = Metric::ALL.map(Metric::as_str).into();
    let dimensions: std::collections::BTreeSet<_> = Dimension::ALL.map(Dimension::as_str).into();
    assert_eq!((metrics.len(), dimensions.len()), (8, 14));
    assert!(Metric::ALL.iter().all(|metric| Metric::parse(metric.as_str()) == Some(*metric)));
}
