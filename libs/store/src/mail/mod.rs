//! Mails that wait to be sent, their recipients and their limits.

pub mod mails;
pub mod notifications;
pub mod recipients;
