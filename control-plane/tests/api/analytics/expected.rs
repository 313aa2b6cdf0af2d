//! The reference model: counts event by event, without optimization. It shares nothing with the code under test
//! except the names in the API.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Timelike as _, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::traffic::VisitorEvent;

/// A visit of the reference model.
pub(super) struct Visit {
    pub(super) first: VisitorEvent,
    pub(super) ended: DateTime<Utc>,
    /// Paths and times of the page views.
    pub(super) pages: Vec<(String, DateTime<Utc>)>,
    pub(super) customs: u64,
}

/// All events of a site.
pub(super) struct ReferenceModel {
    pub(super) zone: Tz,
    /// Each event with the index of its visit.
    pub(super) events: Vec<(VisitorEvent, Option<usize>)>,
    pub(super) visits: Vec<Visit>,
}

/// The parameters of a metric query.
#[derive(Debug, Clone)]
pub(super) struct MetricQuery {
    pub(super) metric: &'static str,
    pub(super) from: NaiveDate,
    pub(super) to: NaiveDate,
    pub(super) group_by: Option<&'static str>,
    pub(super) breakdown_by: Option<&'static str>,
    pub(super) filters: Vec<(&'static str, String)>,
    pub(super) limit: usize,
}

/// Whether a time is in the range of a count.
type TimeRange<'a> = &'a dyn Fn(DateTime<Utc>) -> bool;

impl Visit {
    pub(super) fn start(&self) -> DateTime<Utc> {
        self.first.event.received_at
    }

    fn is_bounce(&self) -> bool {
        self.pages.len() < 2 && self.customs == 0
    }

    /// Whether the visit overlaps the range. No range is shorter than half an hour, so steps of a quarter meet each.
    fn is_in_progress(&self, includes: TimeRange<'_>) -> bool {
        let mut at = self.start();
        while at < self.ended {
            if includes(at) {
                return true;
            }
            at += TimeDelta::minutes(15);
        }
        includes(self.ended)
    }

    fn value(&self, dimension: &str) -> String {
        match dimension {
            "entry_page" | "url" => self.pages.first().map(|page| page.0.clone()).unwrap_or_default(),
            "exit_page" => self.pages.last().map(|page| page.0.clone()).unwrap_or_default(),
            other => event_value(&self.first, other),
        }
    }
}

/// The value of a dimension that belongs to the event itself.
fn event_value(one: &VisitorEvent, dimension: &str) -> String {
    let event = &one.event;
    match dimension {
        "url" => &event.path,
        "referrer" => &event.referrer_host,
        "country" => &event.country,
        "city" => &event.city,
        "region" => &event.region,
        "device" => &event.device,
        "browser" => &event.browser,
        "os" => &event.os,
        "utm_source" => &event.utm_source,
        "utm_medium" => &event.utm_medium,
        "utm_campaign" => &event.utm_campaign,
        "channel" => &event.channel,
        other => panic!("{other}"),
    }
    .clone()
}

impl ReferenceModel {
    pub(super) fn new(zone: Tz, events: &[VisitorEvent]) -> Self {
        let mut model = Self { zone, events: vec![], visits: vec![] };
        let visitors: BTreeSet<u64> = events.iter().map(|one| one.visitor).collect();
        for visitor in visitors {
            let mut own: Vec<&VisitorEvent> = events.iter().filter(|one| one.visitor == visitor).collect();
            own.sort_by_key(|one| (one.event.received_at, one.event.id));
            let mut open: Option<(usize, DateTime<Utc>)> = None;
            for one in own {
                let (at, name) = (one.event.received_at, one.event.name.as_str());
                let is_in_progress = open.filter(|(number, last)| {
                    at - *last <= TimeDelta::minutes(30)
                        && at - model.visits[*number].start() <= TimeDelta::hours(24)
                });
                let number = match is_in_progress {
                    Some((number, _)) => Some(number),
                    None if name == "engagement" => None,
                    None => {
                        model.visits.push(Visit { first: one.clone(), ended: at, pages: vec![], customs: 0 });
                        let number = model.visits.len() - 1;
                        // A report in the millisecond in which a visit starts belongs to that visit, regardless of the
                        // order of ids: only the time decides.
                        let same = model.events.iter_mut().rev().take_while(|before| {
                            before.0.visitor == visitor
                                && before.0.event.received_at == at
                                && before.1.is_none()
                        });
                        same.for_each(|before| before.1 = Some(number));
                        Some(number)
                    }
                };
                if let Some(number) = number {
                    let visit = &mut model.visits[number];
                    visit.ended = at;
                    match name {
                        "page_view" => visit.pages.push((one.event.path.clone(), at)),
                        "engagement" => {}
                        _ => visit.customs += 1,
                    }
                    open = Some((number, at));
                }
                model.events.push((one.clone(), number));
            }
        }
        model
    }

    /// The value of the dimension for an event or its visit.
    pub(super) fn value(&self, one: &VisitorEvent, visit: usize, dimension: &str) -> String {
        let own = ["url", "country", "city", "region", "device", "browser", "os"];
        if own.contains(&dimension) {
            event_value(one, dimension)
        } else {
            self.visits[visit].value(dimension)
        }
    }

    pub(super) fn day(&self, at: DateTime<Utc>) -> NaiveDate {
        at.with_timezone(&self.zone).date_naive()
    }

    /// The time bucket of a timestamp.
    fn bucket(&self, query: &MetricQuery, grouping: &str, at: DateTime<Utc>) -> (NaiveDate, u32, String) {
        let local = at.with_timezone(&self.zone);
        let day = local.date_naive();
        match grouping {
            "hour" => (day, local.hour(), local.format("%:z").to_string()),
            "day" => (day, 0, String::new()),
            "week" => {
                let monday = day - TimeDelta::days(day.weekday().num_days_from_monday().into());
                (monday.max(query.from), 0, String::new())
            }
            "month" => (day.with_day(1).unwrap().max(query.from), 0, String::new()),
            other => panic!("{other}"),
        }
    }

    /// The expected response: total, series, breakdown, and the total of the previous period.
    pub(super) fn response(&self, query: &MetricQuery) -> Value {
        let in_range = |at: DateTime<Utc>| (query.from..=query.to).contains(&self.day(at));
        let days = query.to - query.from + TimeDelta::days(1);
        let before = |at: DateTime<Utc>| (query.from - days..query.from).contains(&self.day(at));
        let total = |includes: TimeRange<'_>| -> Value {
            self.sums(query, None, includes)
                .remove("")
                .map_or(metric_value(query.metric, 0, 0), |(a, o)| metric_value(query.metric, a, o))
        };
        let mut response = json!({"total": total(&in_range), "before": total(&before)});
        if let Some(grouping) = query.group_by {
            let mut at = query.from.and_time(chrono::NaiveTime::MIN).and_utc() - TimeDelta::days(2);
            let end = at + days + TimeDelta::days(4);
            let mut series = Vec::new();
            let mut seen = BTreeSet::new();
            while at < end {
                let bucket = self.bucket(query, grouping, at);
                if in_range(at) && seen.insert(bucket.clone()) {
                    let value =
                        total(&|other| in_range(other) && self.bucket(query, grouping, other) == bucket);
                    let date = match grouping {
                        "hour" => at.with_timezone(&self.zone).to_rfc3339(),
                        _ => bucket.0.to_string(),
                    };
                    series.push(json!({"date": date, "value": value}));
                }
                at += TimeDelta::minutes(15);
            }
            response["series"] = series.into();
        }
        if let Some(dimension) = query.breakdown_by {
            let mut rows: Vec<_> = self.sums(query, Some(dimension), &in_range).into_iter().collect();
            let mean = ["bounce_rate", "avg_session_duration", "views_per_visit", "avg_time_on_page"];
            let weight = |sums: (u64, u64)| if mean.contains(&query.metric) { sums.1 } else { sums.0 };
            rows.sort_by(|a, b| weight(b.1).cmp(&weight(a.1)).then(a.0.cmp(&b.0)));
            let previous = self.sums(query, Some(dimension), &before);
            let row = |(key, (amount, over)): (String, (u64, u64))| {
                let (amount_before, over_before) = previous.get(&key).copied().unwrap_or_default();
                let key = if key.is_empty() { "(none)".to_owned() } else { key };
                json!({
                    "key": key,
                    "value": metric_value(query.metric, amount, over),
                    "previous": metric_value(query.metric, amount_before, over_before),
                })
            };
            response["breakdown"] = rows.into_iter().take(query.limit).map(row).collect::<Vec<_>>().into();
        }
        response
    }

    /// Sums by key.
    fn sums(
        &self,
        query: &MetricQuery,
        by: Option<&str>,
        includes: TimeRange<'_>,
    ) -> BTreeMap<String, (u64, u64)> {
        let url = by == Some("url") || query.filters.iter().any(|filter| filter.0 == "url");
        let of_event = |one: &VisitorEvent, visit: Option<usize>, dimension: &str| {
            self.value(one, visit.unwrap(), dimension)
        };
        let events = |names: &[&str]| -> Vec<(String, &VisitorEvent, usize)> {
            let matches = |(one, visit): &&(VisitorEvent, Option<usize>)| {
                visit.is_some()
                    && names.contains(&one.event.name.as_str())
                    && includes(one.event.received_at)
                    && query
                        .filters
                        .iter()
                        .all(|(dimension, value)| of_event(one, *visit, dimension) == *value)
            };
            let with_key = |(one, visit): &'_ (VisitorEvent, Option<usize>)| {
                by.map(|by| of_event(one, *visit, by)).unwrap_or_default()
            };
            self.events
                .iter()
                .filter(matches)
                .map(|pair| (with_key(pair), &pair.0, pair.1.unwrap()))
                .collect()
        };
        let visits = || -> Vec<(String, &Visit)> {
            let matches = |visit: &&Visit| {
                query.filters.iter().all(|(dimension, value)| visit.value(dimension) == *value)
                    && visit.is_in_progress(includes)
            };
            let with_key = |visit| (by.map(|by| Visit::value(visit, by)).unwrap_or_default(), visit);
            self.visits.iter().filter(matches).map(with_key).collect()
        };
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut add = |key: String, amount: u64, over: u64| {
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + amount, sum.1 + over);
        };
        match query.metric {
            "page_views" => events(&["page_view"]).into_iter().for_each(|(key, ..)| add(key, 1, 0)),
            "unique_visitors" if url => {
                let first_id = |visit: usize| self.visits[visit].first.event.visitor;
                let ids = events(&["page_view"]).into_iter().map(|(key, _, visit)| (key, first_id(visit)));
                ids.collect::<BTreeSet<_>>().into_iter().for_each(|(key, _)| add(key, 1, 0));
            }
            "unique_visitors" => {
                let ids = visits().into_iter().map(|(key, visit)| (key, visit.first.event.visitor));
                ids.collect::<BTreeSet<_>>().into_iter().for_each(|(key, _)| add(key, 1, 0));
            }
            "visits" if url => {
                let ids = events(&["page_view"]).into_iter().map(|(key, _, visit)| (key, visit));
                ids.collect::<BTreeSet<_>>().into_iter().for_each(|(key, _)| add(key, 1, 0));
            }
            "avg_time_on_page" => {
                let mut pages: BTreeMap<(String, usize, String), u64> = BTreeMap::new();
                for (key, one, visit) in events(&["engagement"]) {
                    if one.event.engagement_ms > 0 {
                        *pages.entry((key, visit, one.event.path.clone())).or_default() +=
                            u64::from(one.event.engagement_ms);
                    }
                }
                pages.into_iter().for_each(|((key, ..), spent)| add(key, spent, 1));
            }
            metric => {
                for (key, visit) in visits() {
                    let millis = u64::try_from((visit.ended - visit.start()).num_milliseconds()).unwrap();
                    match metric {
                        "visits" => add(key, 1, 0),
                        "bounce_rate" => add(key, u64::from(visit.is_bounce()), 1),
                        "avg_session_duration" => add(key, millis, 1),
                        "views_per_visit" => add(key, visit.pages.len() as u64, 1),
                        other => panic!("{other}"),
                    }
                }
            }
        }
        sums
    }
}

/// The metric as the API formats it.
fn metric_value(metric: &str, amount: u64, over: u64) -> Value {
    let rounded_ratio = |amount: u64, over: u64| if over == 0 { 0 } else { (2 * amount + over) / (2 * over) };
    match metric {
        "bounce_rate" | "avg_session_duration" | "views_per_visit" if over == 0 => Value::Null,
        "bounce_rate" => json!(rounded_ratio(100 * amount, over)),
        "avg_session_duration" => json!(rounded_ratio(amount, 1000 * over)),
        "views_per_visit" => json!(rounded_ratio(100 * amount, over) as f64 / 100.0),
        "avg_time_on_page" if over == 0 => Value::Null,
        "avg_time_on_page" => json!(rounded_ratio(amount, 1000 * over)),
        _ => json!(amount),
    }
}
