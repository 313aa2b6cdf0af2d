//! The demo site's visitors: their networks, browsers, channels and times. Fictitious, in the proportions of a small
//! business.

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use service::Rng;

/// A visitor with a browser.
#[derive(Clone)]
pub(super) struct Visitor {
    pub(super) ip: String,
    pub(super) agent: &'static str,
    pub(super) screen_width: u32,
}

/// The source of a visit.
#[derive(Clone, Copy)]
pub(super) struct Channel {
    pub(super) referrer: &'static str,
    /// The query string of the followed link.
    pub(super) query: &'static str,
}

/// A visit.
pub(super) struct Visit {
    pub(super) visitor: Visitor,
    pub(super) at: DateTime<Utc>,
    pub(super) channel: Channel,
}

/// New visitors per weekday, from Monday.
const NEW_PER_WEEKDAY: [u32; 7] = [58, 66, 61, 64, 82, 47, 33];
/// The percentage of earlier visitors that return on a day.
const RETURN_PERCENT: u32 = 9;
/// Active visitors, in the last five minutes.
const ACTIVE_NOW: u32 = 4;
const FIRST_HOUR: i64 = 6;
const LAST_HOUR: i64 = 22;

/// Channels by weight.
const CHANNELS: [(u32, Channel); 11] = [
    (26, Channel { referrer: "", query: "" }),
    (24, Channel { referrer: "https://www.google.com/", query: "" }),
    (5, Channel { referrer: "https://duckduckgo.com/", query: "" }),
    (
        9,
        Channel {
            referrer: "https://www.google.com/",
            query: "?utm_source=google&utm_medium=cpc&utm_campaign=bread-near-me&gclid=x1",
        },
    ),
    (8, Channel { referrer: "https://www.instagram.com/", query: "" }),
    (
        5,
        Channel {
            referrer: "https://www.facebook.com/",
            query: "?utm_source=facebook&utm_medium=paid_social&utm_campaign=spring-market",
        },
    ),
    (4, Channel { referrer: "https://www.reddit.com/r/Breadit/", query: "" }),
    (3, Channel { referrer: "https://www.youtube.com/", query: "" }),
    (
        9,
        Channel { referrer: "", query: "?utm_source=newsletter&utm_medium=email&utm_campaign=friday-loaves" },
    ),
    (3, Channel { referrer: "https://chatgpt.com/", query: "?utm_source=chatgpt.com" }),
    (4, Channel { referrer: "https://www.slow-food-guide.example/bakeries", query: "" }),
];

/// Residential networks by weight. The first two bytes of the address determine the country.
const NETWORKS: [(u32, [u8; 2]); 12] = [
    (34, [84, 150]), // Germany
    (8, [91, 3]),    // Germany
    (9, [84, 112]),  // Austria
    (7, [85, 1]),    // Switzerland
    (8, [86, 140]),  // United Kingdom
    (6, [90, 60]),   // France
    (5, [84, 24]),   // Netherlands
    (12, [73, 90]),  // United States
    (3, [99, 240]),  // Canada
    (3, [126, 60]),  // Japan
    (3, [177, 32]),  // Brazil
    (2, [49, 36]),   // India
];

const BROWSERS: [(u32, u32, &str); 8] = [
    (
        24,
        1_920,
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    ),
    (
        7,
        1_536,
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
    ),
    (
        9,
        1_440,
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15",
    ),
    (
        7,
        1_512,
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    ),
    (
        24,
        390,
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1",
    ),
    (
        20,
        412,
        "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
    ),
    (
        4,
        834,
        "Mozilla/5.0 (iPad; CPU OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.7 Mobile/15E148 Safari/604.1",
    ),
    (5, 1_920, "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0"),
];

/// Returns a random number below `count`.
pub(super) fn below(rng: &Rng, count: u32) -> u32 {
    (rng.fraction() * f64::from(count)) as u32
}

/// Returns true with this probability in percent.
pub(super) fn chance(rng: &Rng, percent: u32) -> bool {
    below(rng, 100) < percent
}

/// Returns a random element by weight.
fn choose<'a, T>(rng: &Rng, all: &'a [T], weight: impl Fn(&T) -> u32) -> &'a T {
    let mut remaining = below(rng, all.iter().map(&weight).sum());
    let chosen = all.iter().find(|one| {
        let is_chosen = remaining < weight(one);
        remaining = remaining.saturating_sub(weight(one));
        is_chosen
    });
    chosen.unwrap_or(&all[0])
}

/// Returns the visits of the week before `now`: each day's new visitors and some returning ones.
pub(super) fn of_a_week(now: DateTime<Utc>, rng: &Rng) -> Vec<Visit> {
    let mut known: Vec<Visitor> = Vec::new();
    let mut visits = Vec::new();
    for (days_ago, new) in
        (0..7_u64).rev().map(|days_ago| (days_ago, new_visitors_on(now - Days::new(days_ago))))
    {
        let midnight = (now - Days::new(days_ago)).date_naive().and_time(NaiveTime::MIN).and_utc();
        let returning: Vec<Visitor> = known.iter().filter(|_| chance(rng, RETURN_PERCENT)).cloned().collect();
        let fresh: Vec<Visitor> = (0..new).map(|_| visitor(rng)).collect();
        let visitors = returning.iter().map(|one| (one, true)).chain(fresh.iter().map(|one| (one, false)));
        for (visitor, is_returning) in visitors {
            let at = midnight + time_of_day(rng);
            if at < now - TimeDelta::hours(1) {
                visits.push(Visit { visitor: visitor.clone(), at, channel: channel(rng, is_returning) });
            }
        }
        known.extend(fresh);
    }
    for _ in 0..ACTIVE_NOW {
        let at = now - TimeDelta::seconds(i64::from(60 + below(rng, 120)));
        visits.push(Visit { visitor: visitor(rng), at, channel: channel(rng, false) });
    }
    visits
}

fn new_visitors_on(day: DateTime<Utc>) -> u32 {
    use chrono::Datelike as _;
    NEW_PER_WEEKDAY[day.weekday().num_days_from_monday() as usize]
}

fn visitor(rng: &Rng) -> Visitor {
    let (_, [a, b]) = choose(rng, &NETWORKS, |(weight, _)| *weight);
    let (_, screen_width, agent) = choose(rng, &BROWSERS, |(weight, ..)| *weight);
    let [c, d] = rng.bytes();
    Visitor { ip: format!("{a}.{b}.{c}.{d}"), agent, screen_width: *screen_width }
}

/// Returns a channel. Most returning visitors come directly.
fn channel(rng: &Rng, is_returning: bool) -> Channel {
    if is_returning && chance(rng, 60) {
        return CHANNELS[0].1;
    }
    choose(rng, &CHANNELS, |(weight, _)| *weight).1
}

/// Returns a time during opening hours, most often around noon.
fn time_of_day(rng: &Rng) -> TimeDelta {
    let open_seconds = ((LAST_HOUR - FIRST_HOUR) * 3_600) as f64;
    let share = f64::midpoint(rng.fraction(), rng.fraction());
    TimeDelta::hours(FIRST_HOUR) + TimeDelta::seconds((open_seconds * share) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_has_visits_on_every_day_and_returning_visitors() {
        let now = "2026-11-21T15:00:00Z".parse().unwrap();
        let visits = of_a_week(now, &Rng::system());
        let days: std::collections::BTreeSet<_> = visits.iter().map(|visit| visit.at.date_naive()).collect();
        assert_eq!(days.len(), 7);
        assert!(visits.iter().all(|visit| visit.at < now));
        let addresses: std::collections::HashSet<_> = visits.iter().map(|visit| &visit.visitor.ip).collect();
        assert!(addresses.len() < visits.len());
        let recent = visits.iter().filter(|visit| now - visit.at < TimeDelta::minutes(5)).count();
        assert_eq!(recent, 4);
    }

    #[test]
    fn a_week_has_visits_even_just_after_midnight() {
        let now = "2026-11-21T00:00:30Z".parse().unwrap();
        assert!(of_a_week(now, &Rng::system()).len() > 200);
    }
}
