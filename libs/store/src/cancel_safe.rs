//! A pool's connection for whoever may leave in the middle: a visitor hangs up, or has waited for long enough.
//!
//! The pool takes any connection back that is dropped, and waits until it has answered once more; one that nobody resets
//! would keep its place for a quarter of an hour.

use std::ops::{Deref, DerefMut};

use sqlx::Postgres;
use sqlx::pool::PoolConnection;

use crate::{Conn, Db, Error};

/// A connection that is closed when it is dropped, its transaction with it, unless it was given back before.
pub struct CancelSafeConn {
    conn: PoolConnection<Postgres>,
    is_released: bool,
}

/// A connection of the pool.
pub async fn acquire_cancel_safe(db: &Db) -> Result<CancelSafeConn, Error> {
    Ok(CancelSafeConn { conn: db.acquire().await?, is_released: false })
}

impl CancelSafeConn {
    /// Lets others use it: what it was asked was answered.
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
