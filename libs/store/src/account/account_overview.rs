//! The view of an account that an operator needs to help its owner. It contains no secrets and nothing that visitors
//! submitted.

use chrono::{DateTime, Utc};
use sqlx::{query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// How an operator looks up an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountLookup {
    Id(Uuid),
    /// The public part of one of its keys. Several accounts may share it.
    KeyPrefix(String),
    /// A current or former subdomain, or a custom domain.
    Name(String),
    /// The e-mail of its owner. An owner may hold several accounts, and several identities may claim one address.
    Email(String),
}

/// Whether an account is suspended.
#[derive(Debug, Clone)]
pub struct SuspensionStatus {
    /// As the operator wrote it.
    pub suspension_reason: Option<String>,
    pub suspended_at: Option<DateTime<Utc>>,
}

/// A subdomain with its number of pages.
#[derive(Debug, Clone)]
pub struct Subdomain {
    pub name: String,
    /// Published or not.
    pub pages: i64,
    /// Until when a former name stays reserved; `None` for a name in use.
    pub kept_until: Option<DateTime<Utc>>,
}

/// A custom domain.
#[derive(Debug, Clone)]
pub struct Domain {
    pub domain: String,
    /// `pending`, `active` or `failed`.
    pub status: String,
    pub error: Option<String>,
}

/// An API key without its secret.
#[derive(Debug, Clone)]
pub struct Key {
    /// The public part.
    pub shown_prefix: String,
    pub label: String,
    pub created_at: DateTime<Utc>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// Number of resources of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceCounts {
    /// Includes keys that no longer work.
    pub keys: i64,
    pub pages: i64,
    pub forms: i64,
    pub submissions: i64,
    pub webhooks: i64,
    pub pending_deliveries: i64,
    pub failed_deliveries: i64,
    pub analytics_sites: i64,
    pub folders: i64,
    pub help_requests: i64,
}

/// Returns up to ten matching accounts, newest first.
pub async fn find_accounts(conn: &mut Conn, lookup: &AccountLookup) -> Result<Vec<Uuid>, Error> {
    let (mut id, mut prefix, mut name, mut email) = (None, None, None, None);
    match lookup {
        AccountLookup::Id(value) => id = Some(*value),
        AccountLookup::KeyPrefix(value) => prefix = Some(value.as_str()),
        AccountLookup::Name(value) => name = Some(value.as_str()),
        AccountLookup::Email(value) => email = Some(value.as_str()),
    }
    let found = query_scalar!(
        "select id from accounts where id = $1
            or id in (select account_id from api_keys where shown_prefix = $2)
            or id in (select account_id from subdomains where name = $3)
            or id in (select account_id from former_names where name = $3)
            or id in (select account_id from domains where domain = $3)
            or id in (select own.account_id from identity_accounts own
                      join identities i on i.id = own.identity_id where lower(i.email) = lower($4))
         order by created_at desc limit 10",
        id,
        prefix,
        name,
        email,
    )
    .fetch_all(conn)
    .await?;
    Ok(found)
}

/// Returns whether and why an account is suspended.
pub async fn find_suspension_status(
    conn: &mut Conn,
    account_id: Uuid,
) -> Result<Option<SuspensionStatus>, Error> {
    let standing = query_as!(
        SuspensionStatus,
        "select suspension_reason, suspended_at from accounts where id = $1",
        account_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(standing)
}

/// Returns up to `limit` current and former names, those in use first.
pub async fn list_subdomains(conn: &mut Conn, account_id: Uuid, limit: i64) -> Result<Vec<Subdomain>, Error> {
    let subdomains = query_as!(
        Subdomain,
        r#"select name as "name!", pages as "pages!", kept_until from (
             select s.name, (select count(*) from pages p where p.subdomain_id = s.id) as pages,
                    null::timestamptz as kept_until, s.created_at as since
             from subdomains s where s.account_id = $1
             union all
             select name, 0, kept_until, renamed_at from former_names where account_id = $1) as names
           order by kept_until nulls first, since limit $2"#,
        account_id,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(subdomains)
}

/// Returns up to `limit` custom domains, oldest first.
pub async fn list_domains(conn: &mut Conn, account_id: Uuid, limit: i64) -> Result<Vec<Domain>, Error> {
    let domains = query_as!(
        Domain,
        "select domain, status, error from domains where account_id = $1 order by created_at limit $2",
        account_id,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(domains)
}

/// Returns up to `limit` keys, last used first.
pub async fn list_keys(conn: &mut Conn, account_id: Uuid, limit: i64) -> Result<Vec<Key>, Error> {
    let keys = query_as!(
        Key,
        "select shown_prefix, label, created_at, last_used_at, expires_at, revoked_at from api_keys
         where account_id = $1 order by last_used_at desc nulls last, created_at desc limit $2",
        account_id,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(keys)
}

/// Returns the number of resources of an account.
pub async fn get_counts(conn: &mut Conn, account_id: Uuid) -> Result<ResourceCounts, Error> {
    let counts = query_as!(
        ResourceCounts,
        r#"select (select count(*) from api_keys where account_id = $1) as "keys!",
                  (select count(*) from pages where account_id = $1) as "pages!",
                  (select count(*) from forms where account_id = $1) as "forms!",
                  (select count(*) from submissions where account_id = $1) as "submissions!",
                  (select count(*) from webhooks where account_id = $1) as "webhooks!",
                  (select count(*) from deliveries where account_id = $1 and state = 'pending')
                      as "pending_deliveries!",
                  (select count(*) from deliveries where account_id = $1 and state = 'failed')
                      as "failed_deliveries!",
                  (select count(*) from analytics_sites where account_id = $1) as "analytics_sites!",
                  (select count(*) from folders where account_id = $1) as "folders!",
                  (select count(*) from help_requests where account_id = $1) as "help_requests!""#,
        account_id,
    )
    .fetch_one(conn)
    .await?;
    Ok(counts)
}
