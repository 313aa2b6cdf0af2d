//! Identities: people as a provider vouches for them, and the accounts they hold.
//!
//! An identity is issuer and subject. Its e-mail is only shown: two providers may know the same one, and
//! whoever has it at the one need not be who has it at the other.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::{Conn, Error};

/// What a provider says of somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderIdentity {
    /// Who says it.
    pub issuer: String,
    /// Its name for them, which never changes.
    pub subject: String,
    /// To be shown, never to be recognised by.
    pub email: Option<String>,
    /// Whether the provider has seen that it is theirs.
    pub email_verified: bool,
    /// To be shown.
    pub name: Option<String>,
}

/// Somebody who has signed in.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its id.
    pub id: Uuid,
    /// Who vouches for it.
    pub issuer: String,
    /// Under which name.
    pub subject: String,
    /// To be shown.
    pub email: Option<String>,
    /// Whether the provider has seen that it is theirs.
    pub email_verified: bool,
    /// To be shown.
    pub name: Option<String>,
}

/// An account as its holder chooses it among others.
#[derive(Debug, Clone)]
pub struct OwnAccount {
    /// Its id.
    pub id: Uuid,
    /// What its owner calls it.
    pub name: Option<String>,
    /// What it pays for.
    pub plan: Plan,
    /// Its first subdomain.
    pub subdomain: Option<String>,
    /// When it became theirs.
    pub added_at: DateTime<Utc>,
}

/// Remembers somebody who has just signed in, under `id` if they are new. Gives their id.
pub async fn upsert_identity(
    conn: &mut Conn,
    id: Uuid,
    who: &ProviderIdentity,
    now: DateTime<Utc>,
) -> Result<Uuid, Error> {
    // A provider that leaves the e-mail out this time has not taken it back.
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
        who.issuer,
        who.subject,
        who.email,
        who.email_verified,
        who.name,
        now,
    )
    .fetch_one(conn)
    .await?;
    Ok(id)
}

/// Somebody by their id.
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

/// Waits until nobody else is giving this identity an account, and keeps others waiting until the end of the
/// transaction.
pub async fn lock_identity(conn: &mut Conn, identity_id: Uuid) -> Result<(), Error> {
    query!("select id from identities where id = $1 for update", identity_id).fetch_optional(conn).await?;
    Ok(())
}

/// Every account the identity holds, the newest first.
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

/// Makes the account one more of the identity's. `claim_token_hash` is of the token it was claimed with, if it was.
/// Returns an error if the account already belongs to an identity.
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

/// Whoever holds the account; none before somebody has claimed it.
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
