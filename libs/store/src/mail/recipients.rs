//! Whom an account may have mailed of its submissions. Its owner's own address, if their provider vouches for it, needs
//! no row; anybody else is asked once, and mailed nothing until they agree.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::mails::{Kind, insert_mail};
use crate::{Conn, Error};

/// Somebody who is to be asked.
#[derive(Debug)]
pub struct NewRecipient<'a> {
    /// Its id.
    pub id: Uuid,
    /// The address, [folded](domain::recipients::folded).
    pub address: &'a str,
    /// SHA-256 of the link's token.
    pub token_hash: [u8; 32],
    /// The link, sealed.
    pub sealed_link: &'a [u8],
    /// Now.
    pub asked_at: DateTime<Utc>,
}

/// How often people were asked.
#[derive(Debug, Clone, Copy)]
pub struct ConfirmationRequests {
    /// Addresses that the account has, whatever they answered.
    pub of_account: i64,
    /// Those of them that were asked lately.
    pub lately_by_account: i64,
    /// Accounts that have asked this address lately.
    pub lately_at_address: i64,
}

/// A question that is to be mailed.
#[derive(Debug)]
pub struct Confirmation {
    /// Who is asked.
    pub address: String,
    /// The link, sealed.
    pub sealed_link: Vec<u8>,
    /// When it was ordered.
    pub asked_at: DateTime<Utc>,
}

/// Somebody who looks at their link.
#[derive(Debug, Clone)]
pub struct Recipient {
    /// Its id.
    pub id: Uuid,
    /// Who asked.
    pub account_id: Uuid,
    /// Their address.
    pub address: String,
    /// What they said last.
    pub has_agreed: Option<bool>,
}

/// Those of these addresses that the account may have mailed. Addresses are folded.
pub async fn list_confirmed(
    conn: &mut Conn,
    account_id: Uuid,
    addresses: &[String],
) -> Result<Vec<String>, Error> {
    let confirmed = query_scalar!(
        r#"select address as "address!" from mail_recipients
           where account_id = $1 and address = any($2) and has_agreed
           union
           select lower(i.email) from identity_accounts own join identities i on i.id = own.identity_id
           where own.account_id = $1 and i.email_verified and lower(i.email) = any($2)"#,
        account_id,
        addresses,
    )
    .fetch_all(conn)
    .await?;
    Ok(confirmed)
}

/// Whether the account has asked an address already, whatever came of it.
pub async fn has_recipient(conn: &mut Conn, account_id: Uuid, address: &str) -> Result<bool, Error> {
    let known = query_scalar!(
        r#"select exists (select from mail_recipients where account_id = $1 and address = $2) as "known!""#,
        account_id,
        address,
    )
    .fetch_one(conn)
    .await?;
    Ok(known)
}

/// How often people were asked since `since`. Others who want to know wait until the transaction ends.
pub async fn lock_confirmation_requests(
    conn: &mut Conn,
    account_id: Uuid,
    address: &str,
    since: DateTime<Utc>,
) -> Result<ConfirmationRequests, Error> {
    // Always in this order, so that no two wait for each other.
    query!("select pg_advisory_xact_lock(hashtextextended($1::uuid::text, 11))", account_id)
        .fetch_one(&mut *conn)
        .await?;
    query!("select pg_advisory_xact_lock(hashtextextended($1, 13))", address).fetch_one(&mut *conn).await?;
    let asked = query_as!(
        ConfirmationRequests,
        r#"select (select count(*) from mail_recipients where account_id = $1) as "of_account!",
                  (select count(*) from mail_recipients where account_id = $1 and asked_at > $3)
                      as "lately_by_account!",
                  (select count(*) from mail_recipients where address = $2 and asked_at > $3)
                      as "lately_at_address!""#,
        account_id,
        address,
        since,
    )
    .fetch_one(conn)
    .await?;
    Ok(asked)
}

/// Has an address asked, if the account has not done so before, in the caller's transaction.
pub async fn insert_recipient(
    conn: &mut Conn,
    account_id: Uuid,
    new: &NewRecipient<'_>,
) -> Result<(), Error> {
    let inserted = query!(
        "insert into mail_recipients (id, account_id, address, token_hash, sealed_link, asked_at)
         values ($1, $2, $3, $4, $5, $6) on conflict (account_id, address) do nothing",
        new.id,
        account_id,
        new.address,
        &new.token_hash,
        new.sealed_link,
        new.asked_at,
    )
    .execute(&mut *conn)
    .await?;
    if inserted.rows_affected() > 0 {
        insert_mail(conn, account_id, Kind::Confirmation, new.id, new.asked_at).await?;
    }
    Ok(())
}

/// What somebody is asked, as long as they have not answered.
pub async fn find_confirmation(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<Confirmation>, Error> {
    let question = query_as!(
        Confirmation,
        "select address, sealed_link, asked_at from mail_recipients
         where account_id = $1 and id = $2 and has_agreed is null",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(question)
}

/// Whose link that is: they have no account.
pub async fn find_by_token(conn: &mut Conn, token_hash: &[u8; 32]) -> Result<Option<Recipient>, Error> {
    let recipient = query_as!(
        Recipient,
        "select id, account_id, address, has_agreed from mail_recipients where token_hash = $1",
        token_hash,
    )
    .fetch_optional(conn)
    .await?;
    Ok(recipient)
}

/// Writes down what they say.
pub async fn update_agreed(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    has_agreed: bool,
) -> Result<(), Error> {
    query!(
        "update mail_recipients set has_agreed = $3 where account_id = $1 and id = $2",
        account_id,
        id,
        has_agreed,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets up to `limit` addresses that were asked before `before` and never answered; gives how many. Fewer than
/// `limit` means that none are left.
pub async fn delete_unanswered(conn: &mut Conn, before: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = query!(
        "delete from mail_recipients where id in (
           select id from mail_recipients where has_agreed is null and asked_at < $1 order by asked_at limit $2
           for update skip locked)",
        before,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(deleted.rows_affected())
}
