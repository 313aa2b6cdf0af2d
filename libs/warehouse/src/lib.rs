//! All access to ClickHouse: every statement of the system is in this crate.
//!
//! Events are inserted in batches with a deduplication token, so that a batch sent twice is counted once. The queries
//! about one site are methods of [`SiteAnalytics`].

mod analytics;
mod backups;
mod client;
mod config;
mod deletion;
mod error;
mod events;
mod migrations;
mod retention;
mod servers;
mod sessions;
mod shards;
mod tls;

pub use analytics::funnel::DropOff;
pub use analytics::report::{BreakdownSums, ComparedSums, Report, ReportQuery};
pub use analytics::site_analytics::{QueryLimits, SiteAnalytics};
pub use analytics::visits::{ViewedPage, VisitList, VisitSummary};
pub use backups::{BackupPlace, BackupState, StoredSite};
pub use client::{Warehouse, connect};
pub use config::Config;
pub use error::{Error, ExceededLimit};
pub use migrations::{Migration, MigrationState, SchemaMismatch};
pub use shards::Shards;
