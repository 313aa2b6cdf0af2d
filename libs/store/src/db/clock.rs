//! Postgres' clock, the one that all services share.

use chrono::{DateTime, Utc};

use super::conn::Conn;
use crate::Error;

/// Returns the time that Postgres' clock shows.
pub async fn read_clock(conn: &mut Conn) -> Result<DateTime<Utc>, Error> {
    Ok(sqlx::query_scalar("select clock_timestamp()").fetch_one(conn).await?)
}
