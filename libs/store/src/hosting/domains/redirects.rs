//! Redirects between the domains of an account, and the mail to an owner about records that are gone.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// Returns the account's domains with the one that each redirects to. Locks them, so that two calls can't form a loop
/// together.
pub async fn list_redirects(conn: &mut Conn, account_id: Uuid) -> Result<HashMap<Uuid, Option<Uuid>>, Error> {
    let rows = query!(
        "select id, redirect_to from domains where account_id = $1 order by id for update",
        account_id,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.redirect_to)).collect())
}

/// The content of the mail.
#[derive(Debug, Clone)]
pub struct RecordsGone {
    /// The owner's verified address.
    pub to: String,
    /// The host.
    pub domain: String,
    /// A sentence that says what to change.
    pub error: Option<String>,
    /// When everything last stood; `None` if another account holds the domain now.
    pub verified_at: Option<DateTime<Utc>>,
    /// When the records were found to be gone.
    pub noticed_at: DateTime<Utc>,
}

/// Returns the content of the mail. `None` if the records stand again, the domain is deleted, or the account is a trial,
/// which has no owner.
pub async fn find_records_gone(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<RecordsGone>, Error> {
    let gone = query_as!(
        RecordsGone,
        r#"select i.email as "to!", d.domain, d.error, d.verified_at, d.records_gone_mailed_at as "noticed_at!"
           from domains d join identity_accounts own on own.account_id = d.account_id
           join identities i on i.id = own.identity_id
           where d.account_id = $1 and d.id = $2 and d.records_gone_mailed_at is not null
             and i.email_verified and i.email is not null"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(gone)
}
