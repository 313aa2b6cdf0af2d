//! Automations and their runs.

mod claims;
mod deletion;
mod locks;
mod versions;

use chrono::{DateTime, Utc};
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);

fn now() -> DateTime<Utc> {
    "2026-11-23T12:00:00Z".parse().unwrap()
}
