//! Migrations and administrative statements.

use sqlx::{ConnectOptions as _, Connection as _};

use super::conn::acquire;
use super::migrations::MIGRATOR;
use super::pool::Db;
use crate::Error;

/// Applies all pending migrations, without time limits. Safe to run from several processes at once.
///
/// # Errors
///
/// Postgres is unavailable, or the file of an applied migration was edited.
pub async fn migrate(db: &Db) -> Result<(), Error> {
    let unlimited =
        ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"].map(|name| (name, "0"));
    let options = db.pool().connect_options().as_ref().clone().options(unlimited);
    let mut conn = options.connect().await?;
    MIGRATOR.run(&mut conn).await?;
    conn.close().await?;
    Ok(())
}

/// Checks that Postgres answers.
pub async fn ping(db: &Db) -> Result<(), Error> {
    sqlx::query("select 1").execute(db).await?;
    Ok(())
}

/// Runs one administrative statement unchecked. For sandboxes, which create and drop databases.
pub async fn execute_raw(db: &Db, statement: &str) -> Result<(), Error> {
    let mut conn = acquire(db).await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut *conn).await?;
    Ok(())
}
