//! Counters of what an account has, exact under concurrency.
//!
//! A counter changes in the transaction of the resource it counts, and the plan's limit stands in the
//! `where` of that change: a hundred creates at once at a limit of ten give exactly ten.

use sqlx::{query, query_as, query_scalar};
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

/// What the account uses; none if it is gone.
pub async fn find_usage(conn: &mut Conn, account_id: Uuid) -> Result<Option<Usage>, Error> {
    let usage = query_as!(
        Usage,
        "select projects, webhooks, domains, subdomains, storage_bytes from usage where account_id = $1",
        account_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(usage)
}

/// What is counted one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Forms, pages, analytics sites and automations.
    Projects,
    /// Webhooks.
    Webhooks,
    /// Custom domains.
    Domains,
    /// Subdomains.
    Subdomains,
}

/// Takes the account's publishing for this transaction: two calls that write its pages at once do so one after the
/// other. It is the row of its counters, which they write as well: with one lock, taken first, there is no order of
/// locks to get wrong.
pub async fn lock(conn: &mut Conn, account_id: Uuid) -> Result<(), Error> {
    query!("select from usage where account_id = $1 for update", account_id).fetch_optional(conn).await?;
    Ok(())
}

/// Counts one more, unless that passes `limit` (-1: no limit). Gives whether it was counted.
pub async fn reserve(conn: &mut Conn, account_id: Uuid, counter: Counter, limit: i64) -> Result<bool, Error> {
    let taken = query_scalar!(
        "update usage set projects = projects + $2, webhooks = webhooks + $3, domains = domains + $4,
                          subdomains = subdomains + $5
         where account_id = $1
           and ($6::bigint = -1 or projects * $2 + webhooks * $3 + domains * $4 + subdomains * $5 < $6)
         returning account_id",
        account_id,
        i64::from(counter == Counter::Projects),
        i64::from(counter == Counter::Webhooks),
        i64::from(counter == Counter::Domains),
        i64::from(counter == Counter::Subdomains),
        limit,
    )
    .fetch_optional(conn)
    .await?;
    Ok(taken.is_some())
}

/// Counts one less.
/// Returns an error if the counter is already zero.
pub async fn release(conn: &mut Conn, account_id: Uuid, counter: Counter) -> Result<(), Error> {
    query!(
        "update usage set projects = projects - $2, webhooks = webhooks - $3, domains = domains - $4,
                          subdomains = subdomains - $5
         where account_id = $1",
        account_id,
        i64::from(counter == Counter::Projects),
        i64::from(counter == Counter::Webhooks),
        i64::from(counter == Counter::Domains),
        i64::from(counter == Counter::Subdomains),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Counts so many bytes more, all or none, unless that passes `limit` (-1: no limit). Gives whether they were
/// counted.
pub async fn reserve_bytes(conn: &mut Conn, account_id: Uuid, bytes: i64, limit: i64) -> Result<bool, Error> {
    let taken = query_scalar!(
        "update usage set storage_bytes = storage_bytes + $2
         where account_id = $1 and $2::bigint >= 0 and ($3::bigint = -1 or $2 <= $3 - storage_bytes)
         returning account_id",
        account_id,
        bytes,
        limit,
    )
    .fetch_optional(conn)
    .await?;
    Ok(taken.is_some())
}

/// Counts so many bytes less.
/// Returns an error if more would be released than is counted.
pub async fn release_bytes(conn: &mut Conn, account_id: Uuid, bytes: i64) -> Result<(), Error> {
    query!("update usage set storage_bytes = storage_bytes - $2 where account_id = $1", account_id, bytes)
        .execute(conn)
        .await?;
    Ok(())
}
