//! API keys as stored: a digest of the secret, the public part, and the permissions.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::Cursor;
use domain::keys::{self, KeyKind};
use domain::peppers::Peppers;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use sqlx::types::Json;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::credentials::{read_restrictions, read_scopes};
use crate::list_filter::collect_page;
use crate::{Conn, Error, ListPage};

/// A key to store.
#[derive(Debug)]
pub struct NewKey {
    pub id: Uuid,
    pub secret: Secret,
    pub label: String,
    pub scopes: ScopeSet,
    /// Restriction to a folder or to listed resources.
    pub restrictions: Restrictions,
    pub expires_at: Option<DateTime<Utc>>,
    /// The key that creates it, if any.
    pub parent_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
}

/// The stored form of a key's secret.
#[derive(Debug, Clone)]
pub struct Secret {
    /// HMAC of the key.
    pub fingerprint: [u8; 32],
    /// The id of the pepper of the HMAC.
    pub pepper_id: String,
    /// The public part of the key.
    pub shown_prefix: String,
}

impl Secret {
    /// Returns the stored form of a new key, under the first pepper.
    pub fn new(peppers: &Peppers, kind: KeyKind, key: &str) -> Self {
        Self {
            fingerprint: peppers.fingerprint(key),
            pepper_id: peppers.first_id().to_owned(),
            shown_prefix: keys::shown_prefix(kind, key),
        }
    }
}

/// A key as its owner sees it.
#[derive(Debug, Clone)]
pub struct Key {
    pub id: Uuid,
    /// The public part of the key.
    pub shown_prefix: String,
    pub label: String,
    pub scopes: ScopeSet,
    /// Restriction to a folder or to listed resources.
    pub restrictions: Restrictions,
    pub expires_at: Option<DateTime<Utc>>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    /// HMAC of the key.
    pub fingerprint: Vec<u8>,
}

struct KeyRow {
    id: Uuid,
    shown_prefix: String,
    label: String,
    scopes: Vec<String>,
    folder_id: Option<Uuid>,
    resource_ids: Json<BTreeMap<String, BTreeSet<Uuid>>>,
    expires_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    fingerprint: Vec<u8>,
}

impl TryFrom<KeyRow> for Key {
    type Error = Error;

    fn try_from(row: KeyRow) -> Result<Self, Error> {
        Ok(Self {
            id: row.id,
            shown_prefix: row.shown_prefix,
            label: row.label,
            scopes: read_scopes(&row.scopes)?,
            restrictions: read_restrictions(row.folder_id, row.resource_ids.0)?,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            created_at: row.created_at,
            fingerprint: row.fingerprint,
        })
    }
}

/// Inserts a key.
pub async fn insert_key(conn: &mut Conn, account_id: Uuid, key: &NewKey) -> Result<(), Error> {
    let ids: BTreeMap<&str, &BTreeSet<Uuid>> =
        key.restrictions.ids.iter().map(|(resource, ids)| (resource.as_str(), ids)).collect();
    query!(
        "insert into api_keys (id, account_id, fingerprint, shown_prefix, label, scopes, folder_id, resource_ids,
                               expires_at, parent_id, created_at, pepper_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        key.id,
        account_id,
        &key.secret.fingerprint,
        key.secret.shown_prefix,
        key.label,
        &key.scopes.words(),
        key.restrictions.folder_id,
        Json(ids) as _,
        key.expires_at,
        key.parent_id,
        key.created_at,
        key.secret.pepper_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks the account's set of keys against creation and revocation until the end of the transaction. Otherwise a
/// revocation could miss the child that a revoked key is just creating.
///
/// Take this lock before any lock of the account's rows, because creation and revocation lock those in different
/// orders.
pub async fn lock_keys(conn: &mut Conn, account_id: Uuid) -> Result<(), Error> {
    // Locks of subdomain names share this key space; names have no colon.
    let name = format!("keys:{account_id}");
    query!("select pg_advisory_xact_lock(hashtextextended($1, 0))", name).execute(conn).await?;
    Ok(())
}

/// Returns the number of keys of the account that are not revoked. The caller must hold [`lock_keys`].
pub async fn count_keys(conn: &mut Conn, account_id: Uuid) -> Result<i64, Error> {
    let count = query_scalar!(
        r#"select count(*) as "count!" from api_keys where account_id = $1 and revoked_at is null"#,
        account_id,
    )
    .fetch_one(conn)
    .await?;
    Ok(count)
}

/// Returns whether keys that work remain. The caller must hold [`lock_keys`].
pub async fn has_working(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<bool, Error> {
    let remains = query_scalar!(
        r#"select exists (select from api_keys where account_id = $1 and revoked_at is null
                          and (expires_at is null or expires_at > $2)) as "remains!""#,
        account_id,
        now,
    )
    .fetch_one(conn)
    .await?;
    Ok(remains)
}

/// Returns whether a key was made by no other key. An unclaimed trial has one such key, its own.
pub async fn has_no_parent(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    let parent =
        query_scalar!("select parent_id from api_keys where account_id = $1 and id = $2", account_id, id)
            .fetch_optional(conn)
            .await?;
    Ok(parent == Some(None))
}

/// Returns a working key of the account and locks it against rotation and revocation.
pub async fn lock_key(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Key>, Error> {
    let row = query_as!(
        KeyRow,
        r#"select id, shown_prefix, label, scopes, folder_id,
                  resource_ids as "resource_ids: Json<BTreeMap<String, BTreeSet<Uuid>>>",
                  expires_at, last_used_at, created_at, fingerprint
           from api_keys where account_id = $1 and id = $2 and revoked_at is null for update"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(Key::try_from).transpose()
}

/// Bytes of an id in a list of resources.
const ID_BYTES: usize = 39;

/// Returns the approximate size of a key in a list.
pub fn listed_bytes(key: &Key) -> usize {
    ID_BYTES * key.restrictions.ids.values().map(BTreeSet::len).sum::<usize>()
}

/// Returns a page of up to `limit` working keys after `after`, oldest or newest first.
pub async fn list_keys(
    conn: &mut Conn,
    account_id: Uuid,
    after: Option<Cursor>,
    newest_first: bool,
    limit: i64,
) -> Result<ListPage<Key>, Error> {
    let rows = query_as!(
        KeyRow,
        r#"select id, shown_prefix, label, scopes, folder_id,
                  resource_ids as "resource_ids: Json<BTreeMap<String, BTreeSet<Uuid>>>",
                  expires_at, last_used_at, created_at, fingerprint
           from api_keys
           where account_id = $1 and revoked_at is null
             and ($2::timestamptz is null
                  or case when $5 then (created_at, id) < ($2, $3) else (created_at, id) > ($2, $3) end)
           order by case when $5 then created_at end desc, case when $5 then id end desc, created_at, id limit $4"#,
        account_id,
        after.map(|after| after.created_at),
        after.map(|after| after.id).unwrap_or_default(),
        limit.saturating_add(1),
        newest_first,
    )
    .fetch(conn);
    let bytes_of = |row: &KeyRow| ID_BYTES * row.resource_ids.values().map(BTreeSet::len).sum::<usize>();
    let page = collect_page(rows, limit, bytes_of).await?;
    let rows = page.rows.into_iter().map(Key::try_from).collect::<Result<_, _>>()?;
    Ok(ListPage { rows, has_more: page.has_more })
}

/// Replaces the secret of a key in one step; everything else about the key stays.
pub async fn update_secret(
    conn: &mut Conn,
    account_id: Uuid,
    key: &Key,
    secret: &Secret,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update api_keys set fingerprint = $4, shown_prefix = $5, rotated_at = $6, pepper_id = $7
         where account_id = $1 and id = $2 and fingerprint = $3 and revoked_at is null",
        account_id,
        key.id,
        key.fingerprint,
        &secret.fingerprint,
        secret.shown_prefix,
        now,
        secret.pepper_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Revokes the account's keys among `ids` with all their descendants. Returns the fingerprints that stop working. The
/// caller must hold [`lock_keys`].
pub async fn revoke_keys(
    conn: &mut Conn,
    account_id: Uuid,
    ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<Vec<Vec<u8>>, Error> {
    let revoked = query!(
        "with recursive line as (
            select id from api_keys where account_id = $1 and id = any($2)
            union
            select child.id from api_keys child join line on child.parent_id = line.id
         )
         update api_keys set revoked_at = $3
         from line where api_keys.id = line.id and revoked_at is null returning fingerprint",
        account_id,
        ids,
        now,
    )
    .fetch_all(conn)
    .await?;
    Ok(revoked.into_iter().map(|row| row.fingerprint).collect())
}

/// Revokes the keys restricted to a folder that is about to be deleted. Returns the fingerprints that stop working. The
/// caller must hold [`lock_keys`].
pub async fn revoke_keys_of_folder(
    conn: &mut Conn,
    account_id: Uuid,
    folder_id: Uuid,
    now: DateTime<Utc>,
) -> Result<Vec<Vec<u8>>, Error> {
    let revoked = query!(
        "update api_keys set revoked_at = $3 where account_id = $1 and folder_id = $2 and revoked_at is null
         returning fingerprint",
        account_id,
        folder_id,
        now,
    )
    .fetch_all(conn)
    .await?;
    Ok(revoked.into_iter().map(|row| row.fingerprint).collect())
}

/// Records the use of a key, at most once a minute, and stores it under the first pepper. `stored` is the fingerprint under
/// which it was found: a secret that was rotated meanwhile stays as it is.
pub async fn update_used(
    conn: &mut Conn,
    key_id: Uuid,
    stored: &[u8; 32],
    secret: &Secret,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update api_keys set last_used_at = $3, fingerprint = $4, pepper_id = $5
         where id = $1 and fingerprint = $2
           and (last_used_at is null or last_used_at < $3::timestamptz - interval '1 minute')",
        key_id,
        stored,
        now,
        &secret.fingerprint,
        secret.pepper_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}
