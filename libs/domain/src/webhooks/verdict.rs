//! Classifies the responses of receivers: delivered, retry, give up, or deactivate.

use std::time::Duration;

use serde_json::Value;

use super::Template;
use crate::chat::{discord, google_chat, slack, teams, telegram};

/// The part of a receiver's response that decides.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub status: u16,
    /// Parsed `Retry-After` header.
    pub retry_after: Option<Duration>,
    /// Beginning of the body.
    pub body: &'a [u8],
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    /// Retry, at the earliest after this delay.
    Retry(Option<Duration>),
    /// This delivery will never be accepted; the next event may be.
    GiveUp,
    /// The receiver no longer exists: the webhook is deactivated.
    Gone,
    /// A Telegram group has a new id: the delivery is repeated there at once.
    Moved {
        chat_id: String,
    },
}

/// Classifies `response` by the rules of the template's platform.
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
    /// Applies Standard Webhooks: 2xx is delivered, 410 is gone, anything else, redirects included, is retried.
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

    /// Returns the delay in seconds, integer or not, at this JSON pointer of the body.
    pub(crate) fn asked_in_body(&self, pointer: &str) -> Option<Duration> {
        let seconds = self.json().pointer(pointer)?.as_f64()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests;
