//! Which pepper the fingerprints of keys are under, for operators who replace it.
//!
//! Over all accounts, for maintenance. Keys that are revoked or expired don't count, because no pepper makes them work.

use chrono::{DateTime, Utc};
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// The keys that are stored under one pepper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PepperUse {
    /// `None` for keys that were not used since a release without ids: one of the configured peppers.
    pub pepper_id: Option<String>,
    pub keys: i64,
    /// To the minute; `None` if none was ever used.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A key that stops working when its pepper is removed from the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOnPepper {
    pub id: Uuid,
    pub account_id: Uuid,
    /// The public part of the key.
    pub shown_prefix: String,
    pub label: String,
    pub pepper_id: Option<String>,
    pub created_at: DateTime<Utc>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// Returns how many working keys are stored under each pepper.
pub async fn list_pepper_uses(conn: &mut Conn, now: DateTime<Utc>) -> Result<Vec<PepperUse>, Error> {
    let uses = query_as!(
        PepperUse,
        r#"select pepper_id, count(*) as "keys!", max(last_used_at) as last_used_at from api_keys
           where revoked_at is null and (expires_at is null or expires_at > $1)
           group by pepper_id order by pepper_id"#,
        now,
    )
    .fetch_all(conn)
    .await?;
    Ok(uses)
}

/// Returns up to `limit` working keys after the id `after` that are not stored under the pepper `pepper_id`, in the order of
/// their ids. Each is stored under the first pepper at its next use.
pub async fn list_keys_on_other_peppers(
    conn: &mut Conn,
    pepper_id: &str,
    after: Uuid,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Vec<KeyOnPepper>, Error> {
    let keys = query_as!(
        KeyOnPepper,
        "select id, account_id, shown_prefix, label, pepper_id, created_at, last_used_at from api_keys
         where pepper_id is distinct from $1 and id > $2 and revoked_at is null
           and (expires_at is null or expires_at > $4)
         order by id limit $3",
        pepper_id,
        after,
        limit,
        now,
    )
    .fetch_all(conn)
    .await?;
    Ok(keys)
}
