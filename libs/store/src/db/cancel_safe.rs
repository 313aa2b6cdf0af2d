//! A pooled connection that is closed unless its work completed, with its transaction and its locks.

use std::ops::{Deref, DerefMut};

use super::conn::{Conn, PooledConn, acquire};
use super::pool::Db;
use crate::Error;

/// A connection that closes on drop, with its transaction, unless [`Self::release`] was called.
pub struct CancelSafeConn {
    conn: PooledConn,
    is_released: bool,
}

/// Takes a connection from the pool.
pub async fn acquire_cancel_safe(db: &Db) -> Result<CancelSafeConn, Error> {
    Ok(CancelSafeConn { conn: acquire(db).await?, is_released: false })
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
