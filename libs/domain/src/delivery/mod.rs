//! Webhook deliveries: events, formats, responses and retries.

pub mod chat;
pub mod concurrency;
pub mod retries;
pub mod webhooks;
