//! Accounts: settings, plans, quota periods, folders, help requests and mail recipients.

pub mod accounts;
pub mod folders;
pub mod help;
pub mod months;
pub mod plans;
pub mod recipients;
