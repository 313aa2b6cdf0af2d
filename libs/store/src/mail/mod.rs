//! Mails: the queue, the recipients and their consent, and the quota of notifications.

pub mod mails;
pub mod notifications;
pub mod recipients;
