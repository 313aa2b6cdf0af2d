//! More than 50,000 events of four sites in four time zones, including daylight saving changes: every response
//! agrees with the reference count.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use domain::analytics::{Range, VisitsQuery};
use futures::future::join_all;
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;
use warehouse::QueryLimits;

use super::expected::{MetricQuery, ReferenceModel};
use super::fixture::Fixture;
use super::query_helpers::random_value;
use super::traffic::{Rng, SiteTraffic, VisitorEvent};

const METRICS: [&str; 7] = [
    "page_views",
    "unique_visitors",
    "visits",
    "bounce_rate",
    "avg_session_duration",
    "views_per_visit",
    "avg_time_on_page",
];
const DIMENSIONS: [&str; 14] = [
    "url",
    "referrer",
    "country",
    "city",
    "region",
    "device",
    "browser",
    "os",
    "utm_source",
    "utm_medium",
    "utm_campaign",
    "entry_page",
    "exit_page",
    "channel",
];
const GROUPINGS: [&str; 4] = ["day", "week", "month", "hour"];

/// Time zones, each with the start of ten days around its two clock changes.
const TIME_ZONES: [(&str, &str, &str); 4] = [
    ("Europe/Berlin", "2025-03-25", "2025-10-21"),
    ("Australia/Lord_Howe", "2025-04-01", "2025-09-30"),
    ("America/Sao_Paulo", "2018-10-30", "2019-02-12"),
    ("Asia/Kathmandu", "2025-05-28", "2025-12-28"),
];

/// A site, its events and the reference model of them.
struct Site {
    id: Uuid,
    firsts: [NaiveDate; 2],
    events: Vec<VisitorEvent>,
    model: ReferenceModel,
}

async fn sites(fixture: &Fixture, rng: &mut Rng) -> Vec<Site> {
    let mut sites = Vec::new();
    for (zone, spring, autumn) in TIME_ZONES {
        let (id, zone): (_, Tz) = (fixture.site(zone).await, zone.parse().unwrap());
        let firsts: [NaiveDate; 2] = [spring, autumn].map(|first| first.parse().unwrap());
        let traffic = SiteTraffic { account_id: fixture.account_id, site_id: id, zone, visitors: 55 };
        let events: Vec<_> = firsts.iter().flat_map(|first| traffic.days(*first, 10, rng)).collect();
        let model = ReferenceModel::new(zone, &events);
        sites.push(Site { id, firsts, events, model });
    }
    // Events arrive up to a minute late and thus out of order; some arrive hours late.
    let mut arriving: Vec<_> = sites
        .iter()
        .flat_map(|site| &site.events)
        .map(|one| {
            let late = if rng.below(50) == 0 { rng.below(20_000_000) } else { rng.below(60_000) };
            (one.event.received_at + TimeDelta::milliseconds(i64::try_from(late).unwrap()), one.event.clone())
        })
        .collect();
    assert!(arriving.len() >= 50_000, "{}", arriving.len());
    arriving.sort_by_key(|(arrival, event)| (*arrival, event.id));
    let arriving: Vec<_> = arriving.into_iter().map(|(_, event)| event).collect();
    fixture.store(&arriving, 3_000).await;
    sites
}

impl Site {
    /// A random range of days, which often cuts through the traffic.
    fn days(&self, most: u64, rng: &mut Rng) -> (NaiveDate, NaiveDate) {
        let first = self.firsts[usize::try_from(rng.below(2)).unwrap()];
        let days = |count: u64| TimeDelta::days(i64::try_from(count).unwrap());
        let from = first + days(rng.below(9));
        (from, from + days(rng.below(most)))
    }

    fn random_query(
        &self,
        metric: &'static str,
        breakdown: Option<&'static str>,
        rng: &mut Rng,
    ) -> MetricQuery {
        let group_by = (rng.below(2) == 0).then(|| rng.choose(&GROUPINGS));
        let (from, to) = self.days(if group_by == Some("hour") { 2 } else { 12 }, rng);
        let mut filters: BTreeMap<&'static str, String> = BTreeMap::new();
        for _ in 0..rng.below(3) {
            let dimension = rng.choose(&DIMENSIONS);
            filters.insert(dimension, random_value(dimension, rng));
        }
        let limit = 1 + usize::try_from(rng.below(12)).unwrap();
        MetricQuery {
            metric,
            from,
            to,
            group_by,
            breakdown_by: breakdown,
            filters: filters.into_iter().collect(),
            limit,
        }
    }
}

#[tokio::test]
async fn every_metric_agrees_with_the_reference_count() {
    let fixture = Fixture::start(&["analytics.max_concurrent_per_account=8"]).await;
    let sites = sites(&fixture, &mut Rng(7)).await;
    for site in &sites {
        check_stored(&fixture, site).await;
    }
    let checks = sites.iter().enumerate().map(|(number, site)| {
        let fixture = &fixture;
        async move {
            let mut rng = Rng(100 + number as u64);
            for metric in METRICS {
                for dimension in DIMENSIONS.map(Some).into_iter().chain([None; 6]) {
                    let query = site.random_query(metric, dimension, &mut rng);
                    fixture.check(site.id, &site.model, &query, &mut rng).await;
                }
            }
            for _ in 0..12 {
                check_list(fixture, site, &mut rng).await;
                check_funnel(fixture, site, &mut rng).await;
                check_retention(fixture, site, &mut rng).await;
            }
        }
    });
    join_all(checks).await;
}

/// Compares the stored visits with the reference.
async fn check_stored(fixture: &Fixture, site: &Site) {
    let limits =
        QueryLimits { timeout: Duration::from_secs(60), max_memory_bytes: 1 << 30, max_rows: 10_000_000 };
    let analytics = fixture.warehouse.analytics(site.id, limits, Clock::system().now());
    for first in site.firsts {
        let start = first.and_time(chrono::NaiveTime::MIN).and_utc() - TimeDelta::days(1);
        let range = Range { start, end: start + TimeDelta::days(14) };
        let all = VisitsQuery { range, min_pages: 0, limit: 1_000_000, offset: 0, filters: vec![] };
        let stored = analytics.visits(&all).await.unwrap();
        let stored: BTreeSet<_> = stored
            .visits
            .iter()
            .map(|visit| (visit.start, visit.ended, visit.visitor, u64::from(visit.page_views)))
            .collect();
        let expected = site
            .model
            .visits
            .iter()
            .filter(|visit| visit.start() >= range.start && visit.start() < range.end);
        let expected: BTreeSet<_> = expected
            .map(|visit| (visit.start(), visit.ended, visit.first.event.visitor, visit.pages.len() as u64))
            .collect();
        let wrong: Vec<_> =
            stored.symmetric_difference(&expected).map(|one| (expected.contains(one), one)).collect();
        assert!(wrong.is_empty(), "{}: {} stored, {wrong:#?}", site.model.zone, stored.len());
    }
}

async fn check_list(fixture: &Fixture, site: &Site, rng: &mut Rng) {
    let (from, to) = site.days(7, rng);
    let (min_pages, limit, offset) = (rng.below(4), 1 + rng.below(60), rng.below(3) * 10);
    let country = random_value("country", rng);
    let model = &site.model;
    let in_range = |at: DateTime<Utc>| (from..=to).contains(&model.day(at));
    let mut visits: Vec<_> = model
        .visits
        .iter()
        .filter(|visit| visit.pages.len() as u64 >= min_pages && visit.first.event.country == country)
        .filter(|visit| {
            model.day(visit.start()) <= to
                && model.day(visit.ended) >= from
                && (in_range(visit.start()) || in_range(visit.ended) || model.day(visit.start()) < from)
        })
        .collect();
    visits.sort_by_key(|visit| (std::cmp::Reverse(visit.start()), visit.first.event.visitor));
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let expected: Vec<Value> = visits
        .iter()
        .skip(usize::try_from(offset).unwrap())
        .take(usize::try_from(limit).unwrap())
        .map(|visit| {
            let event = &visit.first.event;
            let page = |at: usize| visit.pages.get(at).map(|page| page.0.clone());
            json!({
                "pages": visit.pages.iter().map(|(url, _)| url).collect::<BTreeSet<_>>(),
                "times": visit.pages.iter().map(|(_, at)| at.timestamp_millis()).collect::<Vec<_>>(),
                "pageCount": visit.pages.len(),
                "duration": (visit.ended - visit.start()).num_seconds(),
                "country": known(&event.country), "city": known(&event.city),
                "region": known(&event.region), "device": known(&event.device),
                "referrer": known(&event.referrer_host), "channel": known(&event.channel),
                "startedAt": visit.start(),
                "entryPage": page(0), "exitPage": visit.pages.last().map(|page| &page.0),
            })
        })
        .collect();
    let more = offset + (expected.len() as u64) < visits.len() as u64 && !expected.is_empty();

    let country = if country.is_empty() { "(none)" } else { &country };
    let path = format!(
        "/api/analytics/sessions?siteId={}&period=custom&from={from}&to={to}&minPages={min_pages}&limit={limit}\
         &offset={offset}&filter.country={country}",
        site.id
    );
    let response = fixture.get(&path).await;
    let sessions = response["sessions"].as_array().unwrap();
    let hashes: BTreeSet<_> = sessions.iter().map(|one| one["sessionHash"].as_str().unwrap()).collect();
    assert_eq!(hashes.len(), sessions.len());
    let found: Vec<Value> = sessions
        .iter()
        .map(|one| {
            let mut one = one.clone();
            let pages = one["pages"].as_array().unwrap().clone();
            let at = |page: &Value| page["timestamp"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
            one.as_object_mut().unwrap().remove("sessionHash");
            one["times"] = pages.iter().map(|page| json!(at(page).timestamp_millis())).collect();
            one["pages"] =
                json!(pages.iter().map(|page| page["url"].as_str().unwrap()).collect::<BTreeSet<_>>());
            one
        })
        .collect();
    assert_eq!(found, expected, "{path}");
    assert_eq!((&response["total"], &response["hasMore"]), (&json!(visits.len()), &json!(more)), "{path}");
}

async fn check_funnel(fixture: &Fixture, site: &Site, rng: &mut Rng) {
    let (from, to) = site.days(12, rng);
    let steps: Vec<(&str, Vec<(&str, String)>)> = (0..2 + rng.below(4))
        .map(|_| {
            let event = rng.choose(&["page_view", "page_view", "sign up", "buy"]);
            let filters = (0..rng.below(2)).map(|_| {
                let dimension = rng.choose(&["url", "url", "channel", "device", "entry_page"]);
                (dimension, random_value(dimension, rng))
            });
            let filters = filters.collect();
            (event, filters)
        })
        .collect();
    let model = &site.model;
    let fits = |one: &VisitorEvent, visit: usize, (name, filters): &(&str, Vec<(&str, String)>)| {
        let holds = |(dimension, value): &(&str, String)| model.value(one, visit, dimension) == *value;
        one.event.name == *name && filters.iter().all(holds)
    };
    let mut reached = vec![0_u64; steps.len()];
    let left_out = 1 + usize::try_from(rng.below(steps.len() as u64 - 1)).unwrap();
    let mut next_pages: BTreeMap<String, u64> = BTreeMap::new();
    for visit in 0..model.visits.len() {
        let own: Vec<&VisitorEvent> = model
            .events
            .iter()
            .filter(|(one, of)| *of == Some(visit) && (from..=to).contains(&model.day(one.event.received_at)))
            .map(|(one, _)| one)
            .collect();
        let level = max_steps(&own, &|one, step: usize| fits(one, visit, &steps[step]), steps.len());
        reached.iter_mut().take(level).for_each(|count| *count += 1);
        if level == left_out {
            let done = completed_at(&own, &|one, step: usize| fits(one, visit, &steps[step]), level);
            let later =
                own.iter().filter(|one| one.event.name == "page_view" && one.event.received_at > done);
            let next = later.map(|one| (one.event.received_at, model.value(one, visit, "url"))).min();
            *next_pages.entry(next.map(|(_, page)| page).unwrap_or_default()).or_default() += 1;
        }
    }
    let mut body = json!({
        "siteId": site.id, "period": "custom", "from": from, "to": to,
        "steps": steps.iter().map(|(event, filters)| {
            let filters: serde_json::Map<String, Value> =
                filters.iter().map(|(word, value)| ((*word).to_owned(), json!(value))).collect();
            json!({"event": event, "filters": filters})
        }).collect::<Vec<_>>(),
    });
    let response = fixture.post("/api/analytics/funnel", &body).await;
    let counts: Vec<_> =
        response["steps"].as_array().unwrap().iter().map(|step| step["count"].as_u64().unwrap()).collect();
    assert_eq!(counts, reached, "{}: {body}", model.zone);

    let limit = 1 + usize::try_from(rng.below(6)).unwrap();
    body["step"] = json!(left_out + 1);
    body["limit"] = json!(limit);
    let response = fixture.post("/api/analytics/funnel/drop-off", &body).await;
    assert_eq!(response["visits"], reached[left_out - 1] - reached[left_out], "{}: {body}", model.zone);
    assert_eq!(response["ended"], next_pages.remove("").unwrap_or_default(), "{}: {body}", model.zone);
    let mut expected: Vec<_> = next_pages.into_iter().map(|(page, visits)| (Reverse(visits), page)).collect();
    expected.sort();
    expected.truncate(limit);
    let received: Vec<_> = response["nextPages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (Reverse(row["visits"].as_u64().unwrap()), row["page"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(received, expected, "{}: {body}", model.zone);
}

/// The time at which so many steps were completed, if each event is taken for the next step that it matches.
fn completed_at(
    events: &[&VisitorEvent],
    fits: &dyn Fn(&VisitorEvent, usize) -> bool,
    steps: usize,
) -> DateTime<Utc> {
    let matched = |one: &&VisitorEvent| (0..steps).filter(|step| fits(one, *step)).collect::<Vec<_>>();
    let bits = |one: &&VisitorEvent| matched(one).into_iter().map(|step| 1 << step).sum::<u32>();
    let mut events = events.to_vec();
    events.sort_by_key(|one| (one.event.received_at, bits(one)));
    let mut done = (0, DateTime::UNIX_EPOCH);
    for one in events {
        if done.0 < steps && fits(one, done.0) {
            done = (done.0 + 1, one.event.received_at);
        }
    }
    done.1
}

/// The maximum number of funnel steps that match distinct events in order of time, by exhaustive search.
fn max_steps(events: &[&VisitorEvent], fits: &dyn Fn(&VisitorEvent, usize) -> bool, steps: usize) -> usize {
    fn search(
        events: &[&VisitorEvent],
        used: &mut Vec<usize>,
        fits: &dyn Fn(&VisitorEvent, usize) -> bool,
        steps: usize,
    ) -> usize {
        let step = used.len();
        if step == steps {
            return step;
        }
        let earliest = used.last().map(|last| events[*last].event.received_at);
        // The earliest match is as good as any later one.
        let mut best = step;
        let mut moment = None;
        for (number, one) in events.iter().enumerate() {
            let at = one.event.received_at;
            if used.contains(&number) || earliest.is_some_and(|earliest| at < earliest) || !fits(one, step) {
                continue;
            }
            if moment.is_some_and(|moment| at > moment) {
                break;
            }
            moment = Some(at);
            used.push(number);
            best = best.max(search(events, used, fits, steps));
            used.pop();
        }
        best
    }
    search(events, &mut Vec::new(), fits, steps)
}

async fn check_retention(fixture: &Fixture, site: &Site, rng: &mut Rng) {
    let (from, to) = site.days(12, rng);
    let granularity = rng.choose(&["day", "week", "month"]);
    let (first_event, return_event) =
        (rng.choose(&["page_view", "sign up"]), rng.choose(&["page_view", "buy"]));
    let begin = |day: NaiveDate| match granularity {
        "day" => day,
        "week" => day - TimeDelta::days(day.weekday().num_days_from_monday().into()),
        _ => day.with_day(1).unwrap(),
    };
    let periods: BTreeSet<NaiveDate> = from.iter_days().take_while(|day| *day <= to).map(begin).collect();
    // The days of activity per visitor.
    let mut ids: BTreeMap<u64, BTreeSet<(NaiveDate, &str)>> = BTreeMap::new();
    for one in &site.events {
        let returner = one.event.returner.unwrap();
        if one.event.name != "engagement" {
            ids.entry(returner.id).or_default().insert((returner.day, one.event.name.as_str()));
        }
    }
    let first =
        |did: &BTreeSet<(NaiveDate, &str)>| did.iter().find(|one| one.1 == first_event).map(|one| one.0);
    let all: Vec<NaiveDate> = periods
        .first()
        .unwrap()
        .iter_days()
        .take(500)
        .map(begin)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let cohorts: Vec<Value> = periods
        .iter()
        .enumerate()
        .map(|(number, period)| {
            let start = (*period).max(from);
            let members: Vec<_> = ids
                .values()
                .filter(|did| {
                    first(did).is_some_and(|day| begin(day) == *period && (from..=to).contains(&day))
                })
                .collect();
            let cell = |later: usize| {
                let (current, next) = (all[number + later], all[number + later + 1]);
                let cut = start.iter_days().skip(1).take_while(|day| *day < next).any(|day| day.day() == 1);
                if later > 0 && cut {
                    return Value::Null;
                }
                let is_active = |did: &BTreeSet<(NaiveDate, &str)>| {
                    did.iter().any(|one| one.1 == return_event && begin(one.0) == current)
                };
                let count = members.iter().filter(|did| later == 0 || is_active(did)).count();
                let percent =
                    if members.is_empty() { 0.0 } else { 100.0 * count as f64 / members.len() as f64 };
                json!((percent * 10.0).round() / 10.0)
            };
            let retention: Vec<_> = (0..periods.len()).map(cell).collect();
            json!({"period": start, "total": members.len(), "retention": retention})
        })
        .collect();
    let body = json!({
        "siteId": site.id, "period": "custom", "from": from, "to": to, "granularity": granularity,
        "firstEvent": first_event, "returnEvent": return_event,
    });
    let response = fixture.post("/api/analytics/retention", &body).await;
    assert_eq!(response["cohorts"], json!(cohorts), "{}: {body}", site.model.zone);
    assert_eq!(response["visitorIdLifetime"], "month");
    assert_eq!(response["hint"].is_string(), granularity == "month", "{response}");
}
