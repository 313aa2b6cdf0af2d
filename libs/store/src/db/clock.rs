//! Postgres' clock, the one that all services share.

use std::time::Instant;

use chrono::{DateTime, Utc};

use super::conn::Conn;
use crate::{Db, Error, acquire};

/// Returns the time that Postgres' clock shows.
pub async fn read_clock(conn: &mut Conn) -> Result<DateTime<Utc>, Error> {
    Ok(sqlx::query_scalar("select clock_timestamp()").fetch_one(conn).await?)
}

/// Returns the time by Postgres' clock when this returns, within half of the time that the statement took.
pub async fn current_time(db: &Db) -> Result<DateTime<Utc>, Error> {
    let mut conn = acquire(db).await?;
    let started = Instant::now();
    let shown = read_clock(&mut conn).await?;
    Ok(shown + started.elapsed() / 2)
}
