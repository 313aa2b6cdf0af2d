//! What a Postgres server says about itself, for its operator.

use std::time::Duration;

use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::timeout;

use super::conn::Conn;
use super::last_timeout::no_answer;
use super::pool::Db;
use crate::Error;

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A Postgres server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// As the server shows it, such as `18.1 (Debian 18.1-1)`.
    pub version: String,
    pub major_version: i32,
    /// Whether it accepts no writes, as a replica.
    pub is_read_only: bool,
    /// Connections that users other than superusers may open in all.
    pub max_connections: i64,
    /// Connections that are open.
    pub open_connections: i64,
    /// How the connection's text is encoded in this database.
    pub encoding: String,
}

/// Returns the status of the server.
pub async fn read_server_status(conn: &mut Conn) -> Result<ServerStatus, Error> {
    let (version, number, is_read_only, max_connections, open_connections, encoding) =
        sqlx::query_as::<_, (String, i32, bool, i64, i64, String)>(
            "select current_setting('server_version'), current_setting('server_version_num')::int,
                    pg_is_in_recovery() or current_setting('transaction_read_only')::bool,
                    current_setting('max_connections')::bigint
                        - current_setting('superuser_reserved_connections')::bigint,
                    (select sum(numbackends)::bigint from pg_stat_database),
                    current_setting('server_encoding')",
        )
        .fetch_one(conn)
        .await?;
    Ok(ServerStatus {
        version,
        major_version: number / 10_000,
        is_read_only,
        max_connections,
        open_connections,
        encoding,
    })
}

/// Opens a connection outside the pool and closes it. Unlike the pool, which tries again until its timeout, it returns the
/// first error as it is: refused, a wrong password, a missing database.
pub async fn try_connect(db: &Db) -> Result<(), Error> {
    let options = db.pool().connect_options();
    let conn = timeout(CONNECT_TIMEOUT, options.connect()).await;
    conn.unwrap_or_else(|_elapsed| Err(no_answer()))?.close().await?;
    Ok(())
}
