//! The pending migrations of both databases.

use std::fmt;

use anyhow::{Context as _, Result};
use serde::Serialize;
use store::Db;
use warehouse::Warehouse;

use super::heavy_statements::heavy_statements;

/// What applying the migrations would do.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plan {
    /// Pending ones of Postgres, in order.
    pub postgres: Vec<PlannedMigration>,
    /// Pending ones of ClickHouse, in order.
    pub clickhouse: Vec<PlannedMigration>,
    /// Applied migrations that this program does not know.
    pub unknown: Vec<String>,
    /// Applied migrations with another text than this program's.
    pub edited: Vec<String>,
}

/// A pending migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedMigration {
    /// Its file's name without `.sql`.
    pub name: String,
    /// What takes as long as a table is large.
    pub heavy: Vec<String>,
}

impl PlannedMigration {
    /// The tables of a new installation are empty, so nothing is heavy there.
    fn new(name: &str, sql: &str, is_new: bool) -> Self {
        let heavy = if is_new { Vec::new() } else { heavy_statements(sql) };
        Self { name: name.trim_end_matches(".sql").to_owned(), heavy }
    }
}

impl Plan {
    /// Whether both schemas are those of this program.
    #[must_use]
    pub fn is_up_to_date(&self) -> bool {
        self.postgres.is_empty() && self.clickhouse.is_empty()
    }

    /// Whether a newer release has migrated the databases.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        !self.unknown.is_empty()
    }
}

/// Compares the migrations of this program with the databases, which may be empty.
pub async fn plan(db: &Db, warehouse: &Warehouse) -> Result<Plan> {
    let mut conn = store::acquire(db).await.context("connecting to Postgres")?;
    let postgres = store::list_migrations(&mut conn).await?;
    let clickhouse = warehouse.list_migrations().await.context("asking ClickHouse")?;
    let (is_new, is_new_warehouse) = (postgres.applied.is_empty(), clickhouse.applied.is_empty());
    let of_postgres = postgres.pending.iter();
    let of_clickhouse = clickhouse.pending.iter();
    Ok(Plan {
        postgres: of_postgres.map(|one| PlannedMigration::new(&one.name, one.sql, is_new)).collect(),
        clickhouse: of_clickhouse
            .map(|one| PlannedMigration::new(one.name, one.sql, is_new_warehouse))
            .collect(),
        unknown: postgres
            .unknown
            .iter()
            .map(|version| format!("Postgres {version:04}"))
            .chain(clickhouse.unknown.iter().map(|name| format!("ClickHouse {name}")))
            .collect(),
        edited: postgres.edited,
    })
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_newer() {
            let unknown = self.unknown.join(", ");
            writeln!(
                f,
                "A newer release has migrated these databases: this program does not know {unknown}."
            )?;
        }
        if !self.edited.is_empty() {
            let edited = self.edited.join(", ");
            writeln!(f, "Applied with another text than this program's: {edited}.")?;
        }
        if self.is_up_to_date() {
            return f.write_str("No migration is pending: the schema is that of this program.");
        }
        let mut heavy = 0;
        for (store, migrations) in [("Postgres", &self.postgres), ("ClickHouse", &self.clickhouse)] {
            if migrations.is_empty() {
                continue;
            }
            writeln!(f, "{store}: {} pending", migrations.len())?;
            for migration in migrations {
                writeln!(f, "  {}", migration.name)?;
                for line in &migration.heavy {
                    heavy += 1;
                    writeln!(f, "      heavy: {line}")?;
                }
            }
        }
        match heavy {
            0 => f.write_str("None takes long on large tables."),
            _ => f.write_str(
                "Heavy statements take as long as their table is large: apply these at a quiet hour, with a fresh backup.",
            ),
        }
    }
}
