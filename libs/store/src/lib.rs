//! All access to Postgres: every SQL statement of the system is in this crate.
//!
//! Functions take the connection first and the account second. A row of another account is not found, exactly like a
//! missing one. Handlers and jobs begin and commit transactions, because they know the order of steps.

mod account;
pub mod activity;
mod analytics;
pub mod automations;
pub mod backups;
pub mod blobs;
mod content;
mod db;
pub mod deliveries;
mod error;
pub mod form_files;
mod form_locks;
pub mod forms;
mod hosting;
pub mod idempotency;
mod list_filter;
mod listed;
mod mail;
pub mod metrics;
pub mod operator_actions;
pub mod outbox;
pub mod overview;
pub mod queue_backlog;
pub mod read_pool;
pub mod resealing;
pub mod submissions;
pub mod webhooks;
mod write_context;

/// Statement timeout of deletions that take a form or webhook with everything in it.
const DELETION_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(600);

pub use account::{
    account_overview, accounts, claims, credentials, help, identities, key_peppers, keys, monthly_usage,
    purge_status, purges, sessions, sign_ins, usage,
};
pub use analytics::{dropped_events, retention_salts, salts, sites};
pub use content::{archives, entries, folders, pages, resources, sitemaps, versions, views};
pub use db::{
    CancelSafeConn, Config, Conn, Db, ExportDb, Migration, MigrationLock, MigrationState, PooledConn,
    SCHEMA_RELEASE, SchemaMismatch, SchemaRelease, ServerStatus, Tx, TxOn, acquire, acquire_cancel_safe,
    acquire_detached, begin, begin_snapshot, begin_with_timeout, commit, connect, connect_generic_plans,
    connect_with_lock_timeout, current_time, execute_raw, find_schema_mismatch, list_migrations,
    list_schema_releases, migrate, ping, read_clock, read_server_status, rollback, try_connect,
    try_lock_migrations,
};
pub use error::Error;
pub use hosting::{
    acme, assets, certificates, deploys, domains, renewal_info, served_files, site_addresses,
    subdomain_names, subdomains, tls_certificates, uploads,
};
pub use list_filter::{ListFilter, ListPage};
pub use mail::{mails, notifications, recipients};
