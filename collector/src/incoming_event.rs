//! An event as it arrives from a visitor's browser, before the pipeline.

use std::net::IpAddr;

use axum::body::Bytes;
use chrono::{DateTime, Utc};

/// The tracker's request, as far as the steps need it.
#[derive(Debug)]
pub(crate) struct IncomingEvent {
    pub(crate) body: Bytes,
    /// The visitor's address. It is used by the steps and never stored.
    pub(crate) ip: IpAddr,
    /// The `user-agent` header. It is used by the steps and never stored.
    pub(crate) user_agent: String,
    /// The browser's client hints say that it runs headless.
    pub(crate) headless: bool,
    /// The visitor sent `DNT: 1` or `Sec-GPC: 1`.
    pub(crate) do_not_track: bool,
    /// The depth of the chain of deliveries that sent it; 0 for a visitor.
    pub(crate) depth: i16,
    pub(crate) occurred_at: DateTime<Utc>,
    /// Equals `occurred_at` unless events of the past are loaded.
    pub(crate) arrived_at: DateTime<Utc>,
}

#[cfg(test)]
impl Default for IncomingEvent {
    fn default() -> Self {
        Self {
            body: Bytes::new(),
            ip: [127, 0, 0, 1].into(),
            user_agent: String::new(),
            headless: false,
            do_not_track: false,
            depth: 0,
            occurred_at: DateTime::default(),
            arrived_at: DateTime::default(),
        }
    }
}
