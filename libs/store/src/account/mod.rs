//! Accounts: their owners, credentials and usage.

pub mod account_overview;
pub mod accounts;
pub mod claims;
pub mod credentials;
pub mod help;
pub mod identities;
pub mod key_peppers;
pub mod keys;
pub mod monthly_usage;
pub mod purge_status;
pub mod purges;
pub mod sessions;
pub mod sign_ins;
pub mod usage;
