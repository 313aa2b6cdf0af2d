//! Applying the migrations of Postgres and ClickHouse, and listing the pending ones.

mod apply;
mod heavy_statements;
mod plan;
mod sql_statements;

pub use apply::{Applied, Progress, apply};
pub use plan::{Plan, PlannedMigration, plan};
