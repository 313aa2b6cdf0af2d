//! Programs read pages too, and a site's owner doesn't want to know how often. Nor about pages that send nobody, but
//! pose as referrers to stand in figures.

mod patterns;

use cache::Memo;
use domain::sources::is_spam;
use domain::tracking::{Dropped, Hit};

use crate::pipeline::IncomingEvent;
use patterns::Patterns;

/// User agents whose verdict is kept: a busy site sees some hundred a day.
const REMEMBERED: u64 = 20_000;

/// Drops events of known programs, of browsers without a person before them, and of those without a user agent.
pub(crate) struct DropBots {
    patterns: Patterns,
    verdicts: Memo<String, bool>,
}

impl DropBots {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self { patterns: Patterns::new()?, verdicts: Memo::new(REMEMBERED) })
    }

    pub(crate) fn step(&self, arrival: &IncomingEvent, hit: &Hit) -> Result<(), Dropped> {
        let agent = arrival.user_agent.as_str();
        if arrival.headless || self.verdicts.get_or(agent, || self.patterns.is_bot(agent)) {
            return Err(Dropped::Bot);
        }
        if !hit.referrer_host.is_empty() && is_spam(&hit.referrer_host) {
            return Err(Dropped::ReferrerSpam);
        }
        Ok(())
    }
}
