//! Drops events of bots and events with a spam referrer, which would distort a site's figures.

mod patterns;

use cache::Memo;
use domain::sources::is_spam;
use domain::tracking::{Dropped, Hit};

use crate::incoming_event::IncomingEvent;
use patterns::Patterns;

/// A busy site sees a few hundred user agents a day.
const MAX_CACHED_USER_AGENTS: u64 = 20_000;

/// Detects bots by their user agent, and headless browsers by their client hints. An empty user agent is a bot's.
pub(crate) struct DropBots {
    patterns: Patterns,
    verdicts: Memo<String, bool>,
}

impl DropBots {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self { patterns: Patterns::new()?, verdicts: Memo::new(MAX_CACHED_USER_AGENTS) })
    }

    pub(crate) fn step(&self, event: &IncomingEvent, hit: &Hit) -> Result<(), Dropped> {
        let user_agent = event.user_agent.as_str();
        if event.headless || self.verdicts.get_or(user_agent, || self.patterns.is_bot(user_agent)) {
            return Err(Dropped::Bot);
        }
        if !hit.referrer_host.is_empty() && is_spam(&hit.referrer_host) {
            return Err(Dropped::ReferrerSpam);
        }
        Ok(())
    }
}
