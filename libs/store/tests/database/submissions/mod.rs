//! Submissions, stored one by one and in batches.

mod group_insert;
mod single_insert;

use chrono::{DateTime, Utc};
use sandbox::test::{TestDatabase, trial};
use service::Rng;
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

fn now() -> DateTime<Utc> {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn new_id() -> Uuid {
    Rng::system().uuid_v7(now())
}

/// A database with both accounts.
async fn database() -> TestDatabase {
    let database = sandbox::test::database().await;
    trial(&database, ACCOUNT, now()).await;
    trial(&database, OTHER, now()).await;
    database
}
