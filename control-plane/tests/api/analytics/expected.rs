//! The reference model: counts event by event, without optimization. It shares nothing with the code under test
//! except the names in the API.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Timelike as _, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use super::traffic::Happened;

/// A visit.
pub(super) struct Visit {
    pub(super) first: Happened,
    pub(super) ended: DateTime<Utc>,
    /// Paths and times of the page views.
    pub(super) pages: Vec<(String, DateTime<Utc>)>,
    pub(super) customs: u64,
}

/// All events of a site.
pub(super) struct Past {
    pub(super) zone: Tz,
    /// Each event with the index of its visit.
    pub(super) events: Vec<(Happened, Option<usize>)>,
    pub(super) visits: Vec<Visit>,
}

/// A query.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) metric: &'static str,
    pub(super) from: NaiveDate,
    pub(super) to: NaiveDate,
    pub(super) group_by: Option<&'static str>,
    pub(super) breakdown_by: Option<&'static str>,
    pub(super) filters: Vec<(&'static str, String)>,
    pub(super) limit: usize,
}

/// The time range of a count.
type Within<'a> = &'a dyn Fn(DateTime<Utc>) -> bool;

impl Visit {
    pub(super) fn start(&self) -> DateTime<Utc> {
        self.first.event.received_at
    }

    fn is_bounce(&self) -> bool {
        self.pages.len() < 2 && self.customs == 0
    }

    /// Whether the visit overlaps the range, in steps of a minute.
    fn is_in_progress(&self, within: Within<'_>) -> bool {
        let mut at = self.start();
        while at < self.ended {
            if within(at) {
                return true;
            }
            at += TimeDelta::minutes(1);
        }
        within(self.ended)
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
fn event_value(one: &Happened, dimension: &str) -> String {
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

impl Past {
    pub(super) fn new(zone: Tz, happened: &[Happened]) -> Self {
        let mut past = Self { zone, events: vec![], visits: vec![] };
        let people: BTreeSet<u64> = happened.iter().map(|one| one.person).collect();
        for person in people {
            let mut own: Vec<&Happened> = happened.iter().filter(|one| one.person == person).collect();
            own.sort_by_key(|one| (one.event.received_at, one.event.id));
            let mut open: Option<(usize, DateTime<Utc>)> = None;
            for one in own {
                let (at, name) = (one.event.received_at, one.event.name.as_str());
                let is_in_progress = open.filter(|(number, last)| {
                    at - *last <= TimeDelta::minutes(30)
                        && at - past.visits[*number].start() <= TimeDelta::hours(24)
                });
                let number = match is_in_progress {
                    Some((number, _)) => Some(number),
                    None if name == "engagement" => None,
                    None => {
                        past.visits.push(Visit { first: one.clone(), ended: at, pages: vec![], customs: 0 });
                        let number = past.visits.len() - 1;
                        // A report in the millisecond in which a visit starts belongs to that visit, regardless of the
                        // order of ids: only the time decides.
                        let same = past.events.iter_mut().rev().take_while(|before| {
                            before.0.person == person
                                && before.0.event.received_at == at
                                && before.1.is_none()
                        });
                        same.for_each(|before| before.1 = Some(number));
                        Some(number)
                    }
                };
                if let Some(number) = number {
                    let visit = &mut past.visits[number];
                    visit.ended = at;
                    match name {
                        "page_view" => visit.pages.push((one.event.path.clone(), at)),
                        "engagement" => {}
                        _ => visit.customs += 1,
                    }
                    open = Some((number, at));
                }
                past.events.push((one.clone(), number));
            }
        }
        past
    }

    /// The value of the dimension for an event or its visit.
    pub(super) fn value(&self, one: &Happened, visit: usize, dimension: &str) -> String {
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
    fn bucket(&self, ask: &Ask, grouping: &str, at: DateTime<Utc>) -> (NaiveDate, u32, String) {
        let local = at.with_timezone(&self.zone);
        let day = local.date_naive();
        match grouping {
            "hour" => (day, local.hour(), local.format("%:z").to_string()),
            "day" => (day, 0, String::new()),
            "week" => {
                let monday = day - TimeDelta::days(day.weekday().num_days_from_monday().into());
                (monday.max(ask.from), 0, String::new())
            }
            "month" => (day.with_day(1).unwrap().max(ask.from), 0, String::new()),
            other => panic!("{other}"),
        }
    }

    /// The expected response: total, series, breakdown, and the total of the previous period.
    pub(super) fn response(&self, ask: &Ask) -> Value {
        let in_range = |at: DateTime<Utc>| (ask.from..=ask.to).contains(&self.day(at));
        let days = ask.to - ask.from + TimeDelta::days(1);
        let before = |at: DateTime<Utc>| (ask.from - days..ask.from).contains(&self.day(at));
        let total = |within: Within<'_>| -> Value {
            self.sums(ask, None, within)
                .remove("")
                .map_or(figure(ask.metric, 0, 0), |(a, o)| figure(ask.metric, a, o))
        };
        let mut response = json!({"total": total(&in_range), "before": total(&before)});
        if let Some(grouping) = ask.group_by {
            let mut at = ask.from.and_time(chrono::NaiveTime::MIN).and_utc() - TimeDelta::days(2);
            let end = at + days + TimeDelta::days(4);
            let mut series = Vec::new();
            let mut seen = BTreeSet::new();
            while at < end {
                let bucket = self.bucket(ask, grouping, at);
                if in_range(at) && seen.insert(bucket.clone()) {
                    let value =
                        total(&|other| in_range(other) && self.bucket(ask, grouping, other) == bucket);
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
        if let Some(dimension) = ask.breakdown_by {
            let mut rows: Vec<_> = self.sums(ask, Some(dimension), &in_range).into_iter().collect();
            let mean = ["bounce_rate", "avg_session_duration", "views_per_visit", "avg_time_on_page"];
            let weight = |sums: (u64, u64)| if mean.contains(&ask.metric) { sums.1 } else { sums.0 };
            rows.sort_by(|a, b| weight(b.1).cmp(&weight(a.1)).then(a.0.cmp(&b.0)));
            let row = |(key, (amount, over)): (String, (u64, u64))| {
                let key = if key.is_empty() { "(none)".to_owned() } else { key };
                json!({"key": key, "value": figure(ask.metric, amount, over)})
            };
            response["breakdown"] = rows.into_iter().take(ask.limit).map(row).collect::<Vec<_>>().into();
        }
        response
    }

    /// Sums by key.
    fn sums(&self, ask: &Ask, by: Option<&str>, within: Within<'_>) -> BTreeMap<String, (u64, u64)> {
        let url = by == Some("url") || ask.filters.iter().any(|filter| filter.0 == "url");
        let of_event = |one: &Happened, visit: Option<usize>, dimension: &str| {
            self.value(one, visit.unwrap(), dimension)
        };
        let events = |names: &[&str]| -> Vec<(String, &Happened, usize)> {
            let matches = |(one, visit): &&(Happened, Option<usize>)| {
                visit.is_some()
                    && names.contains(&one.event.name.as_str())
                    && within(one.event.received_at)
                    && ask.filters.iter().all(|(dimension, value)| of_event(one, *visit, dimension) == *value)
            };
            let keyed = |(one, visit): &'_ (Happened, Option<usize>)| {
                by.map(|by| of_event(one, *visit, by)).unwrap_or_default()
            };
            self.events.iter().filter(matches).map(|pair| (keyed(pair), &pair.0, pair.1.unwrap())).collect()
        };
        let visits = || -> Vec<(String, &Visit)> {
            let matches = |visit: &&Visit| {
                ask.filters.iter().all(|(dimension, value)| visit.value(dimension) == *value)
                    && visit.is_in_progress(within)
            };
            let keyed = |visit| (by.map(|by| Visit::value(visit, by)).unwrap_or_default(), visit);
            self.visits.iter().filter(matches).map(keyed).collect()
        };
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut add = |key: String, amount: u64, over: u64| {
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + amount, sum.1 + over);
        };
        match ask.metric {
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
fn figure(metric: &str, amount: u64, over: u64) -> Value {
    let half_up = |amount: u64, over: u64| if over == 0 { 0 } else { (2 * amount + over) / (2 * over) };
    match metric {
        "bounce_rate" => json!(half_up(100 * amount, over)),
        "avg_session_duration" => json!(half_up(amount, 1000 * over)),
        "views_per_visit" => json!(half_up(100 * amount, over) as f64 / 100.0),
        "avg_time_on_page" if over == 0 => Value::Null,
        "avg_time_on_page" => json!(half_up(amount, 1000 * over)),
        _ => json!(amount),
    }
}
