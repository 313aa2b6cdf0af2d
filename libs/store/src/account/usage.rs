//! Counters of an account's resources, exact under concurrency.
//!
//! A counter changes in the transaction of the resource it counts, with the plan's limit in the `where` clause of that
//! update: of a hundred concurrent creations at a limit of ten exactly ten succeed.

use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// How much of the plan an account uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Forms, pages, analytics sites and automations.
    pub projects: i64,
    pub webhooks: i64,
    /// Custom domains.
    pub domains: i64,
    pub subdomains: i64,
    pub storage_bytes: i64,
}

/// Returns the usage of an account, or `None` if it no longer exists.
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

/// Resources that are counted one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// Forms, pages, analytics sites and automations.
    Projects,
    Webhooks,
    /// Custom domains.
    Domains,
    Subdomains,
}

/// Locks the account's counters, so that transactions that write its pages run one after the other. Such transactions
/// update the counters anyway; with this one lock taken first, there is no lock order to get wrong.
pub async fn lock(conn: &mut Conn, account_id: Uuid) -> Result<(), Error> {
    query!("select from usage where account_id = $1 for update", account_id).fetch_optional(conn).await?;
    Ok(())
}

/// Counts one more resource, unless that exceeds `limit` (-1: unlimited). Returns whether it was counted.
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

/// Counts that many more projects, all or none, within `limit` (-1: unlimited). Returns whether they were counted.
pub async fn reserve_projects(
    conn: &mut Conn,
    account_id: Uuid,
    projects: i64,
    limit: i64,
) -> Result<bool, Error> {
    let taken = query_scalar!(
        "update usage set projects = projects + $2
         where account_id = $1 and ($2::bigint = 0 or $3::bigint = -1 or projects + $2 <= $3)
         returning account_id",
        account_id,
        projects,
        limit,
    )
    .fetch_optional(conn)
    .await?;
    Ok(taken.is_some())
}

/// Counts one resource less. Returns an error if the counter is already zero.
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

/// Reserves all or none of the bytes, within `limit` (-1: unlimited). Returns whether they were reserved.
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

/// Releases bytes. Returns an error if more would be released than is counted.
pub async fn release_bytes(conn: &mut Conn, account_id: Uuid, bytes: i64) -> Result<(), Error> {
    query!("update usage set storage_bytes = storage_bytes - $2 where account_id = $1", account_id, bytes)
        .execute(conn)
        .await?;
    Ok(())
}
