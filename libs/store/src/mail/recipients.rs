//! Recipients of an account's notifications. The owner's address, if the provider verified it, needs no row. Every
//! other address must confirm first and gets a single request to do so.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::mails::{Kind, insert_mail};
use crate::{Conn, Error};

/// A recipient to ask for confirmation.
#[derive(Debug)]
pub struct NewRecipient<'a> {
    pub id: Uuid,
    /// The address, [folded](domain::recipients::normalized).
    pub address: &'a str,
    /// SHA-256 of the link's token.
    pub token_hash: [u8; 32],
    /// The encrypted link.
    pub sealed_link: &'a [u8],
    pub asked_at: DateTime<Utc>,
}

/// Number of confirmation requests so far.
#[derive(Debug, Clone, Copy)]
pub struct ConfirmationRequests {
    /// Addresses of the account, whatever their answer.
    pub of_account: i64,
    /// Those of them that were asked since the given time.
    pub lately_by_account: i64,
    /// Requests of all accounts to this mailbox since the given time.
    pub lately_at_address: i64,
}

/// A confirmation request to mail.
#[derive(Debug)]
pub struct Confirmation {
    pub address: String,
    /// The encrypted link.
    pub sealed_link: Vec<u8>,
    pub asked_at: DateTime<Utc>,
}

/// A recipient, found by the link's token.
#[derive(Debug, Clone)]
pub struct Recipient {
    pub id: Uuid,
    /// The account that asked.
    pub account_id: Uuid,
    pub address: String,
    /// The latest answer; `None` before the first.
    pub has_agreed: Option<bool>,
}

/// Returns those of these folded addresses to which the account may send mail.
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

/// Returns whether the account has asked this address already.
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

/// Counts confirmation requests since `since` to a [mailbox](domain::recipients::mailbox), and locks the counts until the
/// end of the transaction.
pub async fn lock_confirmation_requests(
    conn: &mut Conn,
    account_id: Uuid,
    mailbox: &str,
    since: DateTime<Utc>,
) -> Result<ConfirmationRequests, Error> {
    // Always in this order, so that two transactions can't deadlock.
    query!("select pg_advisory_xact_lock(hashtextextended($1::uuid::text, 11))", account_id)
        .fetch_one(&mut *conn)
        .await?;
    query!("select pg_advisory_xact_lock(hashtextextended($1, 13))", mailbox).fetch_one(&mut *conn).await?;
    let asked = query_as!(
        ConfirmationRequests,
        r#"select (select count(*) from mail_recipients where account_id = $1) as "of_account!",
                  (select count(*) from mail_recipients where account_id = $1 and asked_at > $3)
                      as "lately_by_account!",
                  (select count(*) from mail_recipients where mailbox = $2 and asked_at > $3)
                      as "lately_at_address!""#,
        account_id,
        mailbox,
        since,
    )
    .fetch_one(conn)
    .await?;
    Ok(asked)
}

/// Inserts a recipient and its confirmation mail, unless the account has asked the address before.
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

/// Returns the confirmation request of a recipient who has not answered yet.
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

/// Returns the recipient of a link. Takes no account, because recipients have none.
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

/// Stores a recipient's answer.
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

/// Deletes up to `limit` recipients that were asked before `before` and never answered. Returns how many; fewer than
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
