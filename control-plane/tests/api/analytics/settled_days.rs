//! Sums don't depend on which days are settled, and thus cached, when they are asked for.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::analytics::{
    Dimension, Filter, Grouping, Metric, MetricQuery, RawDays, RawMetricQuery, Zone, parse_metric_query,
};
use uuid::Uuid;
use warehouse::{QueryLimits, Report, ReportQuery};

use super::fixture::Fixture;
use super::query_helpers::random_value;
use super::traffic::{Rng, SiteTraffic};

const LIMITS: QueryLimits =
    QueryLimits { timeout: Duration::from_secs(60), max_memory_bytes: 1 << 30, max_rows: 100_000_000 };
const FIRST: &str = "2025-03-24";
const DAYS: u64 = 9;

/// Returns a random query of a metric by a dimension, with a series, compared with the period before.
fn random_query(metric: Metric, dimension: Dimension, zone: Zone, rng: &mut Rng) -> MetricQuery {
    let first: NaiveDate = FIRST.parse().unwrap();
    let days = |count: u64| TimeDelta::days(i64::try_from(count).unwrap());
    let from = first + days(rng.below(DAYS));
    let [from, to] = [from, from + days(rng.below(5))].map(|day| day.to_string());
    let group_by = rng.choose(&Grouping::ALL.map(Grouping::as_str));
    let raw = RawMetricQuery {
        metric: Some(metric.as_str()),
        days: RawDays { period: Some("custom"), from: Some(&from), to: Some(&to) },
        group_by: Some(group_by),
        breakdown_by: Some(dimension.as_str()),
        compare: true,
        compare_series: true,
        limit: Some(7),
        ..RawMetricQuery::default()
    };
    let mut query = parse_metric_query(&raw, at(30, 0), zone).unwrap();
    for _ in 0..rng.below(3) {
        let dimension = random_dimension(rng);
        if query.filters.iter().all(|filter| filter.dimension != dimension) {
            let value = random_value(dimension.as_str(), rng);
            query.filters.push(Filter { dimension, value });
        }
    }
    query
}

fn random_dimension(rng: &mut Rng) -> Dimension {
    Dimension::ALL[usize::try_from(rng.below(Dimension::ALL.len() as u64)).unwrap()]
}

/// Returns an hour of a day of the traffic.
fn at(day: u64, hour: u64) -> DateTime<Utc> {
    let first: NaiveDate = FIRST.parse().unwrap();
    let since = TimeDelta::hours(i64::try_from(24 * day + hour).unwrap());
    first.and_time(NaiveTime::MIN).and_utc() + since
}

async fn report(fixture: &Fixture, site: Uuid, query: &MetricQuery, now: DateTime<Utc>) -> Report {
    let one = std::slice::from_ref(query);
    let parts = ReportQuery { totals: one, series: Some(query), breakdowns: one };
    fixture.warehouse.analytics(site, LIMITS, now).report(parts).await.unwrap()
}

#[tokio::test]
async fn sums_are_the_same_wherever_settled_days_end() {
    let fixture = Fixture::start(&[]).await;
    let id = fixture.site("Europe/Berlin").await;
    let zone: Tz = "Europe/Berlin".parse().unwrap();
    let mut rng = Rng(31);
    let traffic = SiteTraffic { account_id: fixture.account_id, site_id: id, zone, visitors: 40 };
    let events: Vec<_> =
        traffic.days(FIRST.parse().unwrap(), DAYS, &mut rng).into_iter().map(|one| one.event).collect();
    assert!(events.len() > 4_000, "{}", events.len());
    fixture.store(&events, 5_000).await;
    let zone: Zone = "Europe/Berlin".parse().unwrap();
    let mut counted = 0;
    for metric in Metric::ALL.into_iter().filter(|metric| *metric != Metric::ActiveVisitors) {
        for _ in 0..4 {
            let dimension = random_dimension(&mut rng);
            let query = random_query(metric, dimension, zone, &mut rng);
            // Before the traffic nothing is settled, so that no range is split.
            let whole = report(&fixture, id, &query, at(0, 0) - TimeDelta::days(30)).await;
            counted += whole.totals[0].sums.amount;
            for now in
                [at(1 + rng.below(DAYS), rng.below(24)), at(1 + rng.below(DAYS), rng.below(24)), at(30, 0)]
            {
                // The second time from the cache.
                for _ in 0..2 {
                    let split = report(&fixture, id, &query, now).await;
                    assert_eq!(split, whole, "{now}: {query:?}");
                }
            }
        }
    }
    assert!(counted > 10_000, "{counted}");
}
