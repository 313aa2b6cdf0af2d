//! What a receiver's answer means: done, later, never, or never again.

use std::time::Duration;

use serde_json::Value;

use super::Template;
use crate::chat::{discord, google_chat, slack, teams, telegram};

/// A receiver's answer as far as it decides anything.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// Its `Retry-After`, read.
    pub retry_after: Option<Duration>,
    /// The beginning of its body.
    pub body: &'a [u8],
}

/// What follows from an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was taken.
    Delivered,
    /// It may be taken later, not before that has passed.
    Retry(Option<Duration>),
    /// This will never be taken; the next event may be.
    GiveUp,
    /// There is nobody at this address any more: the webhook is switched off.
    Gone,
    /// A Telegram group has another id from now on: it is sent there at once.
    Moved {
        /// That id.
        chat_id: String,
    },
}

/// What follows from `answer`, which each platform gives in its own way.
pub fn judge(template: Template, answer: &Answer<'_>) -> Verdict {
    match template {
        Template::Default => answer.plain(),
        Template::Slack => slack::judge(answer),
        Template::Discord => discord::judge(answer),
        Template::Telegram => telegram::judge(answer),
        Template::Teams => teams::judge(answer),
        Template::GoogleChat => google_chat::judge(answer),
    }
}

impl Answer<'_> {
    /// Standard Webhooks: 2xx is taken, 410 is gone, a redirect like all else is tried again.
    pub(crate) fn plain(&self) -> Verdict {
        match self.status {
            200..300 => Verdict::Delivered,
            410 => Verdict::Gone,
            _ => Verdict::Retry(self.retry_after),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(self.body).unwrap_or_default()
    }

    /// A pause in seconds, whole or not, at this place of the body.
    pub(crate) fn asked_in_body(&self, pointer: &str) -> Option<Duration> {
        let seconds = self.json().pointer(pointer)?.as_f64()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests;
