//! Pseudonymous visitor ids.
//!
//! A visitor's id is a keyed hash under a salt that is used for one day and then destroyed. Within the day, one
//! browser on one site is one visitor; visitors can't be linked across days or sites, and without the salt an id
//! can't be reversed.

use std::net::IpAddr;

use chrono::{Datelike as _, Days, Months, NaiveDate};
use hmac::{Hmac, KeyInit, Mac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Random bytes of a salt.
pub const SALT_BYTES: usize = 32;

/// Lifetime of the id that recognizes a returning visitor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "VisitorIdLifetime")]
pub enum Lifetime {
    /// A calendar day.
    Day,
    /// A week that begins on Monday.
    Week,
    /// A calendar month.
    #[default]
    Month,
    /// Three calendar months.
    Quarter,
}

impl Lifetime {
    /// Every lifetime, the shortest first.
    pub const ALL: [Self; 4] = [Self::Day, Self::Week, Self::Month, Self::Quarter];

    /// Returns the lifetime's name in the API and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
        }
    }

    /// Parses the result of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lifetime| lifetime.as_str() == text)
    }

    /// Returns the epoch that contains `day`: its first day, and the first day after it.
    pub fn epoch(self, day: NaiveDate) -> (NaiveDate, NaiveDate) {
        let months =
            |first: NaiveDate, count| (first, first.checked_add_months(Months::new(count)).unwrap_or(first));
        let of_month = |month| day.with_day(1).and_then(|first| first.with_month(month)).unwrap_or(day);
        match self {
            Self::Day => (day, day + Days::new(1)),
            Self::Week => {
                let monday = day - Days::new(day.weekday().num_days_from_monday().into());
                (monday, monday + Days::new(7))
            }
            Self::Month => months(of_month(day.month()), 1),
            Self::Quarter => months(of_month(day.month0() / 3 * 3 + 1), 3),
        }
    }
}

/// Returns the id of an address and user agent on one site, under this salt. The site is identified by its token,
/// which every event carries, so that the id doesn't depend on a lookup of the site.
pub fn visitor_id(salt: &[u8; SALT_BYTES], site_token: &str, ip: IpAddr, user_agent: &str) -> u64 {
    // Parts of fixed length, and a length before the free text, make the input unambiguous.
    let ip = match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    // HMAC pads a short key with zeros to the block size anyway, and a key of that size can't fail.
    let mut key = [0; 64];
    key[..SALT_BYTES].copy_from_slice(salt);
    let mac = Hmac::<Sha256>::new(&key.into()).chain_update(ip.octets());
    let mac = mac.chain_update((site_token.len() as u64).to_be_bytes()).chain_update(site_token);
    let tag = mac.chain_update(user_agent).finalize();
    tag.into_bytes().iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: [u8; SALT_BYTES] = [7; SALT_BYTES];
    const SITE: &str = "site_a";

    fn id(ip: &str, user_agent: &str) -> u64 {
        visitor_id(&SALT, SITE, ip.parse().unwrap(), user_agent)
    }

    #[test]
    fn the_same_browser_is_one_visitor_and_any_difference_another() {
        let here = id("203.0.113.9", "Firefox");
        assert_eq!(here, id("203.0.113.9", "Firefox"));
        assert_eq!(here, id("::ffff:203.0.113.9", "Firefox"));
        let others = [
            id("203.0.113.8", "Firefox"),
            id("203.0.113.9", "Chrome"),
            visitor_id(&SALT, "site_b", "203.0.113.9".parse().unwrap(), "Firefox"),
            visitor_id(&[8; SALT_BYTES], SITE, "203.0.113.9".parse().unwrap(), "Firefox"),
        ];
        assert!(others.iter().all(|other| *other != here));
    }

    #[test]
    fn an_epoch_is_the_calendar_period_that_contains_the_day() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        let epochs = [
            (Lifetime::Day, "2026-11-21", "2026-11-22"),
            (Lifetime::Week, "2026-11-16", "2026-11-23"),
            (Lifetime::Month, "2026-11-01", "2026-12-01"),
            (Lifetime::Quarter, "2026-10-01", "2027-01-01"),
        ];
        for (lifetime, first, after) in epochs {
            for within in [day("2026-11-21"), day(first), day(after).pred_opt().unwrap()] {
                assert_eq!(lifetime.epoch(within), (day(first), day(after)), "{lifetime:?} {within}");
            }
        }
        assert_eq!(Lifetime::Quarter.epoch(day("2026-08-31")).0, day("2026-07-01"));
    }

    #[test]
    fn the_id_is_the_first_eight_bytes_of_the_hmac() {
        // Computed independently: HMAC-SHA256(07×32, ::ffff:203.0.113.9 ‖ 00…06 ‖ "site_a" ‖ "Firefox").
        assert_eq!(id("203.0.113.9", "Firefox"), 0xe21b_0746_3e38_79d5);
    }
}
