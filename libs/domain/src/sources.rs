//! Where a visit came from: the place's name, and by which of 19 channels.
//!
//! The rules are the ones marketing people know from the big counters, asked in order; the first that holds wins.
//! Everything is compared in lower case.

use std::collections::HashSet;
use std::sync::LazyLock;

mod channels;
mod places;
#[cfg(test)]
mod tests;

pub use channels::Channel;
use places::{Kind, Place};

/// What an address says about how it was reached; empty where it says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clues<'a> {
    /// `utm_source`, or what is used in its place.
    pub source: &'a str,
    /// `utm_medium`
    pub medium: &'a str,
    /// `utm_campaign`
    pub campaign: &'a str,
    /// The advertiser's click parameter, by name: `gclid`, `msclkid`, …
    pub click: &'a str,
    /// Host of the foreign page, without `www.`.
    pub referrer_host: &'a str,
}

/// Where a visit came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The place by its name if it is known, else what the campaign says, else the host; empty for nowhere.
    pub name: String,
    /// The channel.
    pub channel: Channel,
}

impl Source {
    /// Judges by the clues.
    pub fn of(clues: Clues<'_>) -> Self {
        let lower = |text: &str| text.trim().to_lowercase();
        let (said, medium, campaign) = (lower(clues.source), lower(clues.medium), lower(clues.campaign));
        let meant = match said.as_str() {
            "" => Place::at(clues.referrer_host).map(|place| (place, false)),
            said => Place::called(said),
        };
        let name = match (meant, said.as_str(), clues.referrer_host, clues.click) {
            (Some((place, _)), ..) => place.name,
            (None, "", "", "gclid" | "gbraid" | "wbraid") => "Google",
            (None, "", "", "msclkid") => "Bing",
            (None, "", host, _) => host,
            _ => clues.source.trim(),
        };
        let meant = meant.or_else(|| Place::called(&lower(name)));
        let evidence = channels::Evidence {
            kind: meant.map(|(place, _)| place.kind),
            name,
            advertised: meant.is_some_and(|(_, advertised)| advertised),
            said: &said,
            medium: &medium,
            campaign: &campaign,
            click: clues.click,
        };
        Self { name: name.to_owned(), channel: evidence.channel() }
    }
}

/// Whether the host is one of those that visit pages only to stand in their owners' figures.
pub fn is_spam(referrer_host: &str) -> bool {
    static SPAMMERS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        include_str!("sources/spammers.txt").lines().filter(|line| !line.starts_with('#')).collect()
    });
    places::endings(referrer_host).any(|ending| SPAMMERS.contains(ending))
}
