//! What follows from an event: webhook deliveries with their formats, responses and retries, and automations.

pub mod automations;
pub mod chat;
pub mod concurrency;
pub mod depth;
pub mod retries;
pub mod webhooks;
