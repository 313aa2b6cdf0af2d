//! Webhook deliveries: events, formats, responses and retries.

pub mod chat;
pub mod concurrency;
pub mod depth;
pub mod retries;
pub mod webhooks;
