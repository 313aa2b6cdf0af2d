//! Reproducible pseudo-random traffic: each visitor keeps one device, browser and country; visits that pause, cross
//! midnight or last longer than a day; events that arrive late and out of order.

use chrono::{DateTime, Datelike as _, NaiveDate, TimeDelta, Utc};
use chrono_tz::Tz;
use contract::events::{Event, Returner};
use uuid::Uuid;

/// A pseudo-random number generator.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub(super) fn choose<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// An event, and the number of its visitor, which the collector never sees.
#[derive(Clone)]
pub(super) struct VisitorEvent {
    pub(super) event: Event,
    pub(super) visitor: u64,
}

pub(super) const PATHS: &[&str] = &["/", "/pricing", "/blog/1", "/blog/2", "/docs", "/über", "/checkout"];
const COUNTRIES: &[&str] = &["DE", "US", "NP", "BR", ""];
const CITIES: &[&str] = &["Berlin", "São Paulo", "Kathmandu", ""];
const DEVICES: &[&str] = &["desktop", "mobile", "tablet"];
const BROWSERS: &[&str] = &["Chrome", "Firefox", "Safari"];
/// Host, utm_source, utm_medium, utm_campaign, channel.
const ORIGINS: &[(&str, &str, &str, &str, &str)] = &[
    ("", "", "", "", "Direct"),
    ("google.com", "", "", "", "Organic Search"),
    ("news.example", "", "", "", "Referral"),
    ("", "newsletter", "email", "autumn", "Email"),
    ("t.co", "twitter", "social", "autumn", "Organic Social"),
];

/// A generator of the events of a site.
pub(super) struct SiteTraffic {
    pub(super) account_id: Uuid,
    pub(super) site_id: Uuid,
    pub(super) zone: Tz,
    pub(super) visitors: u64,
}

impl SiteTraffic {
    /// The events of `days` days from `first` on, in order of time.
    pub(super) fn days(&self, first: NaiveDate, days: u64, rng: &mut Rng) -> Vec<VisitorEvent> {
        let start = first.and_time(chrono::NaiveTime::MIN).and_utc();
        let mut all = Vec::new();
        for visitor in 0..self.visitors {
            let mut at = start + TimeDelta::milliseconds(i64::try_from(rng.below(86_400_000)).unwrap());
            let end = start + TimeDelta::days(i64::try_from(days).unwrap());
            while at < end {
                at = self.visit(visitor, at, rng, &mut all);
                at += TimeDelta::milliseconds(1_800_001 + i64::try_from(rng.below(80_000_000)).unwrap());
            }
        }
        all.sort_by_key(|one| (one.event.received_at, one.event.id));
        all
    }

    /// Adds one visit and returns its end. Some last longer than a day, some pause for about half an hour.
    fn visit(
        &self,
        visitor: u64,
        start: DateTime<Utc>,
        rng: &mut Rng,
        all: &mut Vec<VisitorEvent>,
    ) -> DateTime<Utc> {
        let origin = ORIGINS[usize::try_from(rng.below(5)).unwrap()];
        let (events, pause) = match rng.below(100) {
            0 => (110, 1_000_000),
            1..=45 => (1, 60_000),
            _ => (2 + rng.below(7), 240_000),
        };
        let mut at = start;
        for number in 0..events {
            let path = rng.choose(PATHS);
            let name = if rng.chance(12) { rng.choose(&["sign up", "buy"]) } else { "page_view" };
            let mut event = self.event(visitor, at, name, path, rng);
            if number == 0 {
                event.referrer_host = origin.0.into();
                event.utm_source = origin.1.into();
                event.utm_medium = origin.2.into();
                event.utm_campaign = origin.3.into();
                event.channel = origin.4.into();
            } else {
                event.channel = "Direct".into();
            }
            all.push(VisitorEvent { event, visitor });
            if rng.chance(60) {
                let most = if rng.chance(3) { 2_500_000 } else { 90_000 };
                let spent = 1 + rng.below(most);
                at += TimeDelta::milliseconds(i64::try_from(spent).unwrap());
                let mut report = self.event(visitor, at, "engagement", path, rng);
                report.engagement_ms = u32::try_from(spent).unwrap();
                all.push(VisitorEvent { event: report, visitor });
            }
            at += TimeDelta::milliseconds(match rng.below(40) {
                0 => 1_800_000,
                1 => 1_800_001,
                2 => 0,
                _ => i64::try_from(rng.below(pause)).unwrap(),
            });
        }
        at
    }

    fn event(&self, visitor: u64, at: DateTime<Utc>, name: &str, path: &str, rng: &mut Rng) -> Event {
        let fixed = |salt: u64, of: &[&str]| {
            of[usize::try_from(visitor.wrapping_mul(2_654_435_761).wrapping_add(salt * 97) / 7).unwrap()
                % of.len()]
            .to_owned()
        };
        let soon_after_midnight = at.timestamp_millis().rem_euclid(86_400_000) < 1_800_000;
        let day = at.with_timezone(&self.zone).date_naive();
        let epoch = day.with_day(1).unwrap();
        Event {
            id: Uuid::from_u128(u128::from(rng.below(1 << 31)) << 64 | u128::from(rng.below(1 << 31))),
            account_id: self.account_id,
            site_id: self.site_id,
            received_at: at,
            name: name.into(),
            host: "shop.example".into(),
            path: path.into(),
            visitor: self.id_of(visitor, at.date_naive()),
            previous: if soon_after_midnight {
                self.id_of(visitor, at.date_naive().pred_opt().unwrap())
            } else {
                0
            },
            returner: Some(Returner { id: self.id_of(visitor, epoch) / 3, day, epoch }),
            country: fixed(1, COUNTRIES),
            region: fixed(2, COUNTRIES),
            city: fixed(3, CITIES),
            device: fixed(4, DEVICES),
            browser: fixed(5, BROWSERS),
            os: fixed(6, &["Linux", "iOS"]),
            ..Event::default()
        }
    }
}

impl SiteTraffic {
    /// A visitor's id on a day, unique across sites and days.
    fn id_of(&self, visitor: u64, day: NaiveDate) -> u64 {
        let day = u64::try_from(day.num_days_from_ce()).unwrap();
        let site = self.site_id.as_u64_pair().1;
        let id = (visitor + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(day.wrapping_mul(0xc2b2_ae3d_27d4_eb4f));
        id.wrapping_add(site) | 1
    }
}
