//! The response of a receiver, and its classification: delivered, retry, give up, or deactivate.

use std::time::Duration;

use serde_json::Value;

/// The part of a receiver's response that decides.
#[derive(Debug, Clone, Copy)]
pub struct ReceiverResponse<'a> {
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

impl ReceiverResponse<'_> {
    /// Applies Standard Webhooks: 2xx is delivered, 410 is gone, anything else, redirects included, is retried.
    pub(crate) fn classify_by_status(&self) -> Verdict {
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
    pub(crate) fn delay_in_body(&self, pointer: &str) -> Option<Duration> {
        let seconds = self.json().pointer(pointer)?.as_f64()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}
