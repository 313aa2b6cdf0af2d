//! Renewal information of certificates: when an authority wants them renewed. It is read again and again, because an authority
//! that has to revoke certificates moves it to now.
//!
//! No function takes an account: certificates belong to hosts, and the job-runner orders them for all accounts.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};

use crate::{Conn, Error};

/// A certificate with renewal information that is due to be read.
#[derive(Debug, Clone)]
pub struct DueRenewalInfo {
    pub name: String,
    /// PEM, the host's own certificate first.
    pub chain: String,
    /// The directory of the authority that issued it.
    pub issuer_directory: String,
    pub not_before: DateTime<Utc>,
    pub not_after: DateTime<Utc>,
}

/// Renewal information that was read.
#[derive(Debug, Clone, Copy)]
pub struct RenewalInfo<'a> {
    pub name: &'a str,
    /// The certificate that it is about. It is ignored if that was renewed meanwhile.
    pub chain: &'a str,
    /// When to renew; `None` leaves that as it is.
    pub renew_at: Option<DateTime<Utc>>,
    /// When to read it again; `None` if the authority offers none.
    pub due_at: Option<DateTime<Utc>>,
}

/// Claims up to `limit` certificates with due renewal information. It is due again at `again_at` unless it is stored before.
pub async fn claim_due(
    conn: &mut Conn,
    now: DateTime<Utc>,
    again_at: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<DueRenewalInfo>, Error> {
    let due = query_as!(
        DueRenewalInfo,
        r#"update certificates set renewal_info_due_at = $2
           where name in (select name from certificates
                          where renewal_info_due_at <= $1 and chain is not null and issuer_directory is not null
                          order by renewal_info_due_at limit $3 for update skip locked)
           returning name, chain as "chain!", issuer_directory as "issuer_directory!", not_before as "not_before!",
                     not_after as "not_after!""#,
        now,
        again_at,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(due)
}

/// Stores renewal information. A renewal that was postponed or failed keeps the time of its next attempt.
pub async fn update_renewal_info(conn: &mut Conn, info: &RenewalInfo<'_>) -> Result<(), Error> {
    query!(
        "update certificates set renewal_info_due_at = $4, renew_at = coalesce($3, renew_at),
             next_attempt_at = case when next_attempt_at = renew_at then coalesce($3, next_attempt_at)
                                    else next_attempt_at end
         where name = $1 and chain = $2",
        info.name,
        info.chain,
        info.renew_at,
        info.due_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}
