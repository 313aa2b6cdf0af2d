//! Identities that a provider confirmed, and the accounts they own.
//!
//! An identity is a pair of issuer and subject. Its e-mail is for display only: two providers may report the same
//! address for different people.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::{Conn, Error};

/// An identity as a provider reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderIdentity {
    pub issuer: String,
    /// The provider's stable id for the person.
    pub subject: String,
    /// For display only, never for matching.
    pub email: Option<String>,
    /// Whether the provider verified the address.
    pub email_verified: bool,
    /// For display only.
    pub name: Option<String>,
}

/// An identity that has signed in.
#[derive(Debug, Clone)]
pub struct Identity {
    pub id: Uuid,
    pub issuer: String,
    /// The provider's stable id for the person.
    pub subject: String,
    /// For display only.
    pub email: Option<String>,
    /// Whether the provider verified the address.
    pub email_verified: bool,
    /// For display only.
    pub name: Option<String>,
}

/// An account in its owner's list.
#[derive(Debug, Clone)]
pub struct OwnAccount {
    pub id: Uuid,
    pub name: Option<String>,
    pub plan: Plan,
    /// Its oldest subdomain.
    pub subdomain: Option<String>,
    pub added_at: DateTime<Utc>,
}

/// Inserts or updates an identity that just signed in, under `id` if it is new. Returns its id.
pub async fn upsert_identity(
    conn: &mut Conn,
    id: Uuid,
    identity: &ProviderIdentity,
    now: DateTime<Utc>,
) -> Result<Uuid, Error> {
    // A provider that omits the e-mail this time has not withdrawn it.
    let id = query_scalar!(
        "insert into identities as known (id, issuer, subject, email, email_verified, name, created_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (issuer, subject) do update
         set email = coalesce(excluded.email, known.email),
             email_verified = case when excluded.email is null then known.email_verified
                                   else excluded.email_verified end,
             name = coalesce(excluded.name, known.name)
         returning id",
        id,
        identity.issuer,
        identity.subject,
        identity.email,
        identity.email_verified,
        identity.name,
        now,
    )
    .fetch_one(conn)
    .await?;
    Ok(id)
}

/// Returns an identity by its id.
pub async fn find_identity(conn: &mut Conn, identity_id: Uuid) -> Result<Option<Identity>, Error> {
    let found = query_as!(
        Identity,
        "select id, issuer, subject, email, email_verified, name from identities where id = $1",
        identity_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

/// Locks an identity, so that only one transaction at a time adds accounts to it.
pub async fn lock_identity(conn: &mut Conn, identity_id: Uuid) -> Result<(), Error> {
    query!("select id from identities where id = $1 for update", identity_id).fetch_optional(conn).await?;
    Ok(())
}

/// Returns every account of the identity, newest first.
pub async fn list_accounts(conn: &mut Conn, identity_id: Uuid) -> Result<Vec<OwnAccount>, Error> {
    let rows = query!(
        r#"select a.id, a.name, a.plan, own.added_at,
                  (select s.name from subdomains s where s.account_id = a.id
                   order by s.created_at, s.id limit 1) as subdomain
           from identity_accounts own join accounts a on a.id = own.account_id
           where own.identity_id = $1 order by own.added_at desc, a.id desc"#,
        identity_id,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let plan = read_plan(&row.plan)?;
            Ok(OwnAccount {
                id: row.id,
                name: row.name,
                plan,
                subdomain: row.subdomain,
                added_at: row.added_at,
            })
        })
        .collect()
}

/// Adds an account to an identity. `claim_token_hash` is the hash of the token it was claimed with, if any. Returns an
/// error if the account already belongs to an identity.
pub async fn insert_account(
    conn: &mut Conn,
    account_id: Uuid,
    identity_id: Uuid,
    claim_token_hash: Option<&[u8; 32]>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into identity_accounts (account_id, identity_id, claim_token_hash, added_at)
         values ($1, $2, $3, $4)",
        account_id,
        identity_id,
        claim_token_hash.map(<[u8; 32]>::as_slice),
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the owner of an account, or `None` if it is unclaimed.
pub async fn find_holder(conn: &mut Conn, account_id: Uuid) -> Result<Option<Identity>, Error> {
    let holder = query_as!(
        Identity,
        "select i.id, i.issuer, i.subject, i.email, i.email_verified, i.name
         from identity_accounts own join identities i on i.id = own.identity_id where own.account_id = $1",
        account_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(holder)
}
