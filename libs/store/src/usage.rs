//! Counters of what an account has, exact under concurrency.
//!
//! A counter changes in the transaction of the resource it counts, and the plan's limit stands in the
//! `where` of that change: a hundred creates at once at a limit of ten give exactly ten.

use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// How much of the plan an account uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Forms, pages, analytics sites and automations.
    pub projects: i64,
    /// Webhooks.
    pub webhooks: i64,
    /// Custom domains.
    pub domains: i64,
    /// Subdomains.
    pub subdomains: i64,
    /// Bytes stored.
    pub storage_bytes: i64,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Forms, pages, analytics sites and automations.
    Projects,
    /// Webhooks.
    Webhooks,
    /// Subdomains.
    Subdomains,
}

/// Counts one more, unless that passes `limit` (-1: no limit). Gives whether it was counted.
///
/// # Errors
/// The database's.
pub async fn take(conn: &mut Conn, account_id: Uuid, counter: Counter, limit: i64) -> Result<bool, Error> {
    let taken = query_scalar!(
        "update usage set projects = projects + $2, webhooks = webhooks + $3, subdomains = subdomains + $4
         where account_id = $1 and ($5::bigint = -1 or projects * $2 + webhooks * $3 + subdomains * $4 < $5)
         returning account_id",
        account_id,
        i64::from(counter == Counter::Projects),
        i64::from(counter == Counter::Webhooks),
        i64::from(counter == Counter::Subdomains),
        limit,
    )
    .fetch_optional(conn)
    .await?;
    Ok(taken.is_some())
}

/// Counts one less.
///
/// # Errors
/// The database's.
pub async fn give_back(conn: &mut Conn, account_id: Uuid, counter: Counter) -> Result<(), Error> {
    query!(
        "update usage set projects = projects - $2, webhooks = webhooks - $3, subdomains = subdomains - $4
         where account_id = $1",
        account_id,
        i64::from(counter == Counter::Projects),
        i64::from(counter == Counter::Webhooks),
        i64::from(counter == Counter::Subdomains),
    )
    .execute(conn)
    .await?;
    Ok(())
}
