//! Nouns and rules: functions that take values and give a decision.
//!
//! What a plan allows, what a slug may look like, which answers a form accepts, when a webhook is tried
//! again. Everything here is pure, so every rule can be tested without a server and read without one.

pub mod accounts;
pub mod addresses;
pub mod analytics;
pub mod answers;
pub mod base62;
pub mod chat;
pub mod claims;
pub mod concurrency;
mod cursor;
pub mod deploys;
pub mod domains;
pub mod encryption;
pub mod entries;
mod field_error;
pub mod fields;
pub mod folders;
pub mod form_files;
pub mod forms;
pub mod help;
pub mod honeypot;
pub mod idempotency;
pub mod keys;
pub mod media;
pub mod months;
pub mod pages;
pub mod patterns;
pub mod plans;
pub mod proof_of_work;
pub mod recipients;
pub mod rendering;
pub mod restrictions;
pub mod results;
pub mod retries;
pub mod scopes;
pub mod sessions;
pub mod sign_ins;
pub mod sites;
pub mod sources;
pub mod subdomains;
pub mod submissions;
pub mod timestamps;
pub mod tracking;
mod transient;
pub mod uploads;
pub mod user_agents;
pub mod visitors;
pub mod visits;
pub mod webhooks;
pub mod workflows;

pub use cursor::Cursor;
pub use field_error::FieldError;
pub use transient::Transient;
