//! The migration files, and how the database records them.

use clickhouse::Row;
use serde::{Deserialize, Serialize};

/// All files, in order.
pub(super) const FILES: &[(&str, &str)] = &[
    ("0001_events.sql", include_str!("../../../../migrations/clickhouse/0001_events.sql")),
    ("0002_visits.sql", include_str!("../../../../migrations/clickhouse/0002_visits.sql")),
    ("0003_visit_times.sql", include_str!("../../../../migrations/clickhouse/0003_visit_times.sql")),
    ("0004_tallies.sql", include_str!("../../../../migrations/clickhouse/0004_tallies.sql")),
];

/// A row of `schema_migrations`.
#[derive(Row, Serialize, Deserialize)]
pub(super) struct Applied {
    pub(super) name: String,
}
