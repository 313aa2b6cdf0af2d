//! Transactions, on a connection of the pool or on a borrowed one.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _, raw_sql};

use super::conn::{Conn, PooledConn, acquire};
use super::pool::Db;
use crate::Error;

/// A transaction that owns its connection. Rolled back on drop unless [`commit`] is called.
pub type Tx = TxOn<'static>;

/// A transaction on a connection. Rolled back on drop unless [`commit`] is called; a borrowed connection is closed then.
#[derive(Debug)]
pub struct TxOn<'conn> {
    conn: TxConn<'conn>,
}

#[derive(Debug)]
enum TxConn<'conn> {
    Owned(PooledConn),
    Borrowed(&'conn mut Conn),
}

impl Deref for TxOn<'_> {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        match &self.conn {
            TxConn::Owned(conn) => conn,
            TxConn::Borrowed(conn) => conn,
        }
    }
}

impl DerefMut for TxOn<'_> {
    fn deref_mut(&mut self) -> &mut Conn {
        match &mut self.conn {
            TxConn::Owned(conn) => conn,
            TxConn::Borrowed(conn) => conn,
        }
    }
}

impl Drop for TxOn<'_> {
    fn drop(&mut self) {
        // An owned connection rolls back when it returns to the pool.
        if let TxConn::Borrowed(conn) = &mut self.conn
            && conn.state().in_transaction
        {
            conn.close_on_drop();
        }
    }
}

/// Begins a transaction on a connection of the pool.
pub async fn begin(db: &Db) -> Result<Tx, Error> {
    let mut conn = acquire(db).await?;
    start(&mut conn, "begin".to_owned()).await?;
    Ok(TxOn { conn: TxConn::Owned(conn) })
}

/// Begins a transaction in which all reads see one state of the database, and that can't write.
pub async fn begin_snapshot(db: &Db) -> Result<Tx, Error> {
    let mut conn = acquire(db).await?;
    start(&mut conn, "begin isolation level repeatable read read only".to_owned()).await?;
    Ok(TxOn { conn: TxConn::Owned(conn) })
}

/// Begins a transaction on a [`crate::CancelSafeConn`]. Postgres, which may not notice a lost client, ends the
/// transaction and its locks when it is idle for `idle_timeout`.
pub async fn begin_with_timeout(conn: &mut Conn, idle_timeout: Duration) -> Result<TxOn<'_>, Error> {
    let begin =
        format!("begin; set local idle_in_transaction_session_timeout = {}", idle_timeout.as_millis());
    start(conn, begin).await?;
    Ok(TxOn { conn: TxConn::Borrowed(conn) })
}

async fn start(conn: &mut Conn, begin: String) -> Result<(), Error> {
    conn.state().in_transaction = true;
    conn.execute(raw_sql(AssertSqlSafe(begin))).await?;
    Ok(())
}

/// Commits a transaction.
///
/// # Errors
///
/// The commit failed, or its reply was lost; then the outcome is unknown.
pub async fn commit(tx: TxOn<'_>) -> Result<(), Error> {
    end(tx, "commit").await
}

/// Rolls a transaction back at once. Dropping it does the same a little later, so its locks would be held longer.
/// Nothing is committed even if this returns an error.
pub async fn rollback(tx: TxOn<'_>) -> Result<(), Error> {
    end(tx, "rollback").await
}

async fn end(mut tx: TxOn<'_>, statement: &'static str) -> Result<(), Error> {
    tx.execute(raw_sql(statement)).await?;
    tx.state().in_transaction = false;
    Ok(())
}
