//! Who comes to the demonstration's site: from where, with what, and how often on which day. Made up, but in the
//! proportions of a small business.

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use service::Rng;

/// Somebody with a browser.
#[derive(Clone)]
pub(super) struct Person {
    pub(super) ip: String,
    pub(super) agent: &'static str,
    pub(super) screen_width: u32,
}

/// How somebody got here.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) referrer: &'static str,
    /// What the link that was followed carried.
    pub(super) query: &'static str,
}

/// One time somebody comes.
pub(super) struct Coming {
    pub(super) who: Person,
    pub(super) at: DateTime<Utc>,
    pub(super) way: Way,
}

/// New people of a day, Monday first: the weekend is for the market, not for the office.
const NEW_OF_DAY: [u32; 7] = [58, 66, 61, 64, 82, 47, 33];
/// Of those that were here before, so many of a hundred come again on a day.
const COME_AGAIN_PERCENT: u32 = 9;
/// So many are looking right now, in the sense of the last five minutes.
const LOOKING_NOW: u32 = 4;
const FIRST_HOUR: i64 = 6;
const LAST_HOUR: i64 = 22;

/// Whoever takes one out of so many at random, by weight.
const WAYS: [(u32, Way); 11] = [
    (26, Way { referrer: "", query: "" }),
    (24, Way { referrer: "https://www.google.com/", query: "" }),
    (5, Way { referrer: "https://duckduckgo.com/", query: "" }),
    (
        9,
        Way {
            referrer: "https://www.google.com/",
            query: "?utm_source=google&utm_medium=cpc&utm_campaign=bread-near-me&gclid=x1",
        },
    ),
    (8, Way { referrer: "https://www.instagram.com/", query: "" }),
    (
        5,
        Way {
            referrer: "https://www.facebook.com/",
            query: "?utm_source=facebook&utm_medium=paid_social&utm_campaign=spring-market",
        },
    ),
    (4, Way { referrer: "https://www.reddit.com/r/Breadit/", query: "" }),
    (3, Way { referrer: "https://www.youtube.com/", query: "" }),
    (9, Way { referrer: "", query: "?utm_source=newsletter&utm_medium=email&utm_campaign=friday-loaves" }),
    (3, Way { referrer: "https://chatgpt.com/", query: "?utm_source=chatgpt.com" }),
    (4, Way { referrer: "https://www.slow-food-guide.example/bakeries", query: "" }),
];

/// Networks of people's homes, by where they are: two bytes, the others are anybody's.
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

/// A number below `count`.
pub(super) fn below(rng: &Rng, count: u32) -> u32 {
    (rng.fraction() * f64::from(count)) as u32
}

/// Whether something happens that does in so many of a hundred cases.
pub(super) fn in_percent(rng: &Rng, percent: u32) -> bool {
    below(rng, 100) < percent
}

/// One of these by its weight.
fn weighed<'a, T>(rng: &Rng, all: &'a [T], weight: impl Fn(&T) -> u32) -> &'a T {
    let mut left = below(rng, all.iter().map(&weight).sum());
    let chosen = all.iter().find(|one| {
        let is_it = left < weight(one);
        left = left.saturating_sub(weight(one));
        is_it
    });
    chosen.unwrap_or(&all[0])
}

/// Everybody who came in the week up to now: new people of each day, and some of those who were here before.
pub(super) fn of_a_week(now: DateTime<Utc>, rng: &Rng) -> Vec<Coming> {
    let mut known: Vec<Person> = Vec::new();
    let mut comings = Vec::new();
    for (days_ago, new) in (0..7_u64).rev().map(|days_ago| (days_ago, new_of(now - Days::new(days_ago)))) {
        let midnight = (now - Days::new(days_ago)).date_naive().and_time(NaiveTime::MIN).and_utc();
        let again: Vec<Person> =
            known.iter().filter(|_| in_percent(rng, COME_AGAIN_PERCENT)).cloned().collect();
        let fresh: Vec<Person> = (0..new).map(|_| somebody(rng)).collect();
        let came = again.iter().map(|who| (who, true)).chain(fresh.iter().map(|who| (who, false)));
        for (who, was_here) in came {
            let at = midnight + time_of_day(rng);
            if at < now - TimeDelta::hours(1) {
                comings.push(Coming { who: who.clone(), at, way: way(rng, was_here) });
            }
        }
        known.extend(fresh);
    }
    for _ in 0..LOOKING_NOW {
        let at = now - TimeDelta::seconds(i64::from(60 + below(rng, 120)));
        comings.push(Coming { who: somebody(rng), at, way: way(rng, false) });
    }
    comings
}

fn new_of(day: DateTime<Utc>) -> u32 {
    use chrono::Datelike as _;
    NEW_OF_DAY[day.weekday().num_days_from_monday() as usize]
}

fn somebody(rng: &Rng) -> Person {
    let (_, [a, b]) = weighed(rng, &NETWORKS, |(weight, _)| *weight);
    let (_, screen_width, agent) = weighed(rng, &BROWSERS, |(weight, ..)| *weight);
    let [c, d] = rng.bytes();
    Person { ip: format!("{a}.{b}.{c}.{d}"), agent, screen_width: *screen_width }
}

/// Who was here before knows the way, or got the newsletter.
fn way(rng: &Rng, was_here: bool) -> Way {
    if was_here && in_percent(rng, 60) {
        return WAYS[0].1;
    }
    weighed(rng, &WAYS, |(weight, _)| *weight).1
}

/// Most come around noon; nobody while the ovens are cold.
fn time_of_day(rng: &Rng) -> TimeDelta {
    let open_seconds = ((LAST_HOUR - FIRST_HOUR) * 3_600) as f64;
    let share = f64::midpoint(rng.fraction(), rng.fraction());
    TimeDelta::hours(FIRST_HOUR) + TimeDelta::seconds((open_seconds * share) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_has_people_on_every_day_and_some_who_return() {
        let now = "2026-11-21T15:00:00Z".parse().unwrap();
        let comings = of_a_week(now, &Rng::system());
        let days: std::collections::BTreeSet<_> =
            comings.iter().map(|coming| coming.at.date_naive()).collect();
        assert_eq!(days.len(), 7);
        assert!(comings.iter().all(|coming| coming.at < now));
        let people: std::collections::HashSet<_> = comings.iter().map(|coming| &coming.who.ip).collect();
        assert!(people.len() < comings.len());
        let recent = comings.iter().filter(|coming| now - coming.at < TimeDelta::minutes(5)).count();
        assert_eq!(recent, 4);
    }

    #[test]
    fn a_week_has_people_also_just_after_midnight() {
        let now = "2026-11-21T00:00:30Z".parse().unwrap();
        assert!(of_a_week(now, &Rng::system()).len() > 200);
    }
}
