//! Webhook events as messages of chat platforms. Each platform has its own format, limits and markup to escape.
//!
//! Lengths are counted in UTF-16 units, which is never less than a platform's own count.

pub mod discord;
mod fit;
pub mod google_chat;
mod message;
pub mod notice;
pub mod slack;
pub mod teams;
pub mod telegram;
mod truncate;

pub use message::{body, request_url};

#[cfg(test)]
mod tests;
