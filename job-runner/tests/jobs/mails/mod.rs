//! Emails, over a real SMTP connection.

mod help;
mod notifications;
mod webhook_deactivated;
