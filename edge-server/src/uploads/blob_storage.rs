//! Moves received bytes to their place in the object store, in one transaction with the row that refers to them.

use std::time::Duration;

use blobs::Received;
use chrono::{DateTime, TimeDelta, Utc};
use store::Conn;
use store::blobs::NewBlob;
use uuid::Uuid;
use web::Problem;

use crate::state::EdgeState;

/// Time for which bytes without a reference are not deleted: the transaction that will refer to them may be in progress.
const ANNOUNCED_FOR: TimeDelta = TimeDelta::hours(1);
/// Timeout for moving received bytes to their place.
const STORE_TIMEOUT: Duration = Duration::from_mins(2);

/// Stores received bytes. `prepare` runs before anything is stored; `before` in the transaction before its blob row is
/// locked; `refer` last, with the blob's id, and makes the row refer to the blob. No object store is awaited after `refer`,
/// as other requests may wait for its locks.
pub(super) async fn store_blob(
    state: &EdgeState,
    account_id: Uuid,
    received: &Received,
    now: DateTime<Utc>,
    prepare: impl AsyncFnOnce(&mut Conn) -> Result<(), Problem>,
    before: impl AsyncFnOnce(&mut Conn) -> Result<(), Problem>,
    refer: impl AsyncFnOnce(&mut Conn, Uuid) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let size_bytes = i64::try_from(received.size()).unwrap_or(i64::MAX);
    let blob = NewBlob { id: state.rng.uuid_v7(now), sha256: received.name().sha256, size_bytes };
    let announce = async |conn: &mut Conn| {
        prepare(conn).await?;
        store::blobs::insert_unreferenced(conn, account_id, &[blob], now + ANNOUNCED_FOR).await?;
        Ok(())
    };
    state.db.query(announce).await?;
    let store = async |conn: &mut Conn| {
        let settle = async {
            before(conn).await?;
            Ok(store::blobs::reference_blobs(conn, account_id, &[blob]).await?)
        };
        let settled = state.db.with_timeout(settle).await?;
        // The lock on the blob's row keeps its bytes from being deleted.
        state.blobs.store(received).await?;
        // One blob was given, so one is returned.
        let settled = settled.first().ok_or_else(Problem::nothing_changed)?;
        state.db.with_timeout(refer(conn, settled.id)).await
    };
    state.db.transaction(STORE_TIMEOUT, store).await
}
