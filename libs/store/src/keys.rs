//! API keys at rest, and the one look-up behind every authenticated call.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use domain::scopes::ScopeSet;
use sqlx::query;
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::usage::Usage;
use crate::{Conn, Error};

/// A key about to be stored.
#[derive(Debug)]
pub struct NewKey {
    /// Its id.
    pub id: Uuid,
    /// HMAC of the key.
    pub fingerprint: [u8; 32],
    /// The part of the key that may be shown.
    pub shown_prefix: String,
    /// What its owner calls it.
    pub label: String,
    /// What it may do.
    pub scopes: ScopeSet,
    /// When it stops working.
    pub expires_at: Option<DateTime<Utc>>,
    /// Now.
    pub created_at: DateTime<Utc>,
}

/// Who calls with a key: everything a call needs to know, from one indexed read.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key.
    pub key_id: Uuid,
    /// Whose it is.
    pub account_id: Uuid,
    /// What the account pays for.
    pub plan: Plan,
    /// Whether the account belongs to somebody.
    pub claimed: bool,
    /// Whether the operator has suspended it.
    pub suspended: bool,
    /// What the key may do.
    pub scopes: ScopeSet,
    /// When the key stops working.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was last seen, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    /// How much of the plan is used.
    pub usage: Usage,
}

/// Stores a key.
///
/// # Errors
/// The database's.
pub async fn insert_key(conn: &mut Conn, account_id: Uuid, key: &NewKey) -> Result<(), Error> {
    query!(
        "insert into api_keys (id, account_id, fingerprint, shown_prefix, label, scopes, expires_at, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        key.id,
        account_id,
        &key.fingerprint,
        key.shown_prefix,
        key.label,
        &key.scopes.words(),
        key.expires_at,
        key.created_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The caller behind a key's fingerprint; none if there is no such key or it was revoked.
///
/// The one look-up that begins without an account: it is how the account becomes known.
///
/// # Errors
/// The database's.
pub async fn find_caller(conn: &mut Conn, fingerprint: &[u8; 32]) -> Result<Option<Caller>, Error> {
    let row = query!(
        r#"select k.id, k.account_id, k.scopes, k.expires_at, k.last_used_at, a.plan,
                  a.claimed_at is not null as "claimed!", a.suspended_at is not null as "suspended!",
                  u.projects, u.webhooks, u.domains, u.subdomains, u.storage_bytes
           from api_keys k
           join accounts a on a.id = k.account_id
           join usage u on u.account_id = k.account_id
           where k.fingerprint = $1 and k.revoked_at is null"#,
        fingerprint,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        let scopes = ScopeSet::parse(row.scopes.iter().map(String::as_str)).map_err(|word| {
            Error::Unreadable { table: "api_keys", column: "scopes", value: word.to_owned() }
        })?;
        Ok(Caller {
            key_id: row.id,
            account_id: row.account_id,
            plan: read_plan(&row.plan)?,
            claimed: row.claimed,
            suspended: row.suspended,
            scopes,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            usage: Usage {
                projects: row.projects,
                webhooks: row.webhooks,
                domains: row.domains,
                subdomains: row.subdomains,
                storage_bytes: row.storage_bytes,
            },
        })
    })
    .transpose()
}

/// Remembers that a key was used, at most once a minute.
///
/// # Errors
/// The database's.
pub async fn update_last_used(conn: &mut Conn, key_id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    query!(
        "update api_keys set last_used_at = $2
         where id = $1 and (last_used_at is null or last_used_at < $2::timestamptz - interval '1 minute')",
        key_id,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}
