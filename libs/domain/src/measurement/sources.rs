//! The source of a visit: a name, and one of 19 channels.
//!
//! The rules are those of the established analytics products, evaluated in order; the first match wins. All
//! comparisons are in lower case.

use std::collections::HashSet;
use std::sync::LazyLock;

mod channels;
mod known_sources;
#[cfg(test)]
mod tests;

pub use channels::Channel;
use known_sources::{Kind, KnownSource};

/// Evidence from URLs about the source; empty where there is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clues<'a> {
    /// `utm_source`, or a parameter used in its known.
    pub source: &'a str,
    /// `utm_medium`
    pub medium: &'a str,
    /// `utm_campaign`
    pub campaign: &'a str,
    /// Name of the advertiser's click parameter: `gclid`, `msclkid`, …
    pub click: &'a str,
    /// Host of the external referrer, without `www.`.
    pub referrer_host: &'a str,
}

/// The source of a visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Name of the source if it is known, else the campaign's source, else the host; empty for direct visits.
    pub name: String,
    pub channel: Channel,
}

impl Source {
    /// Determines the source.
    pub fn of(clues: Clues<'_>) -> Self {
        let Clues { source, medium, campaign, click, referrer_host } = clues;
        if [source, medium, campaign, click, referrer_host].iter().all(|clue| clue.is_empty()) {
            return Self { name: String::new(), channel: Channel::Direct };
        }
        let lower = |text: &str| text.trim().to_lowercase();
        let (campaign_source, medium, campaign) =
            (lower(clues.source), lower(clues.medium), lower(clues.campaign));
        let found = match campaign_source.as_str() {
            "" => KnownSource::at(clues.referrer_host).map(|known| (known, false)),
            campaign_source => KnownSource::called(campaign_source),
        };
        let name = match (found, campaign_source.as_str(), clues.referrer_host, clues.click) {
            (Some((known, _)), ..) => known.name,
            (None, "", "", "gclid" | "gbraid" | "wbraid") => "Google",
            (None, "", "", "msclkid") => "Bing",
            (None, "", host, _) => host,
            _ => clues.source.trim(),
        };
        let found = found.or_else(|| KnownSource::called(&lower(name)));
        let evidence = channels::Evidence {
            kind: found.map(|(known, _)| known.kind),
            name,
            advertised: found.is_some_and(|(_, advertised)| advertised),
            campaign_source: &campaign_source,
            medium: &medium,
            campaign: &campaign,
            click: clues.click,
        };
        Self { name: name.to_owned(), channel: evidence.channel() }
    }
}

/// Returns whether the host is known for referrer spam.
pub fn is_spam(referrer_host: &str) -> bool {
    static SPAMMERS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        include_str!("sources/spammers.txt").lines().filter(|line| !line.starts_with('#')).collect()
    });
    known_sources::endings(referrer_host).any(|ending| SPAMMERS.contains(ending))
}
