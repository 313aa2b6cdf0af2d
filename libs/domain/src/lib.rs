//! Domain rules: pure functions that take values and return a decision.
//!
//! Plans and their limits, valid slugs, accepted answers, retry schedules. Nothing here does I/O, so every rule is
//! tested without a server.

mod access;
mod account;
mod collection;
mod delivery;
mod measurement;
mod primitives;
mod publishing;

pub use access::{claims, encryption, idempotency, keys, peppers, restrictions, scopes, sessions, sign_ins};
pub use account::{accounts, folders, help, months, plans, recipients};
pub use collection::{
    answers, appearance, confirmation, fields, form_files, forms, honeypot, patterns, proof_of_work, results,
    stored_fields, submissions, workflows,
};
pub use delivery::{automations, chat, concurrency, depth, retries, webhooks};
pub use measurement::{analytics, sites, sources, tracking, user_agents, visitors, visits};
pub use primitives::cursor::{Cursor, CursorOrder, Listed};
pub use primitives::field_error::{FIELD_ERRORS_MAX, FieldError};
pub use primitives::list_budget::{ListBudget, PAGE_BYTES_MAX, json_bytes};
pub use primitives::member_order::in_order;
pub use primitives::transient::Transient;
pub use primitives::{base62, parser_messages, timestamps, units};
pub use publishing::{
    addresses, certificates, deploys, domains, entries, media, pages, previews, rendering, static_sites,
    subdomains, uploads,
};

use primitives::{field_error, url_escapes};
