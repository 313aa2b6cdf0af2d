//! A pooled connection for futures that may be cancelled, because the client disconnects or a timeout expires.
//!
//! The pool takes back every dropped connection and first waits for it to finish its statement. If that statement never
//! ends, the slot would stay occupied for a quarter of an hour.

use std::ops::{Deref, DerefMut};

use sqlx::Postgres;
use sqlx::pool::PoolConnection;

use crate::{Conn, Db, Error};

/// A connection that closes on drop, with its transaction, unless [`Self::release`] was called.
pub struct CancelSafeConn {
    conn: PoolConnection<Postgres>,
    is_released: bool,
}

/// Takes a connection from the pool.
pub async fn acquire_cancel_safe(db: &Db) -> Result<CancelSafeConn, Error> {
    Ok(CancelSafeConn { conn: db.acquire().await?, is_released: false })
}

impl CancelSafeConn {
    /// Returns the connection to the pool. Call it only when no statement is pending.
    pub fn release(mut self) {
        self.is_released = true;
    }
}

impl Deref for CancelSafeConn {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for CancelSafeConn {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

impl Drop for CancelSafeConn {
    fn drop(&mut self) {
        if !self.is_released {
            self.conn.close_on_drop();
        }
    }
}
