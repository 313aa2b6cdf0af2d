//! Claims of checks that are due or requested. A check that was claimed by a killed process is claimed again after its lease.

use chrono::{DateTime, Utc};
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// A claimed check.
#[derive(Debug, Clone)]
pub struct LeasedCheck {
    /// The domain's id.
    pub id: Uuid,
    /// The host.
    pub domain: String,
    /// The name of the subdomain that it shows.
    pub subdomain: String,
    /// The value that the owner publishes in DNS.
    pub challenge: String,
}

/// Claims up to `limit` due checks, at most `max_per_account` of one account at a time, and first of the accounts that have
/// the fewest under way. Skips locked rows, so that concurrent runners never claim the same one.
pub async fn lease_due_checks(
    conn: &mut Conn,
    now: DateTime<Utc>,
    leased_until: DateTime<Utc>,
    limit: i64,
    max_per_account: i64,
) -> Result<Vec<LeasedCheck>, Error> {
    let leased = query_as!(
        LeasedCheck,
        "update domains d set check_leased_until = $2 from subdomains s
         where s.id = d.subdomain_id and d.id in (
           select id from domains
           join (
             select id as due_id, row_number() over (partition by account_id order by next_attempt_at, id)
                      + coalesce(leased, 0) as number, next_attempt_at as due_at
             from domains
             left join (
               select account_id as leased_by, count(*) as leased from domains
               where check_leased_until > $1 group by account_id) under_way on leased_by = account_id
             where next_attempt_at <= $1 and (check_leased_until is null or check_leased_until <= $1)) due
             on due_id = id
           where number <= $4 and next_attempt_at <= $1 and (check_leased_until is null or check_leased_until <= $1)
           order by number, due_at limit $3 for update of domains skip locked)
         returning d.id, d.domain, s.name as subdomain, d.challenge",
        now,
        leased_until,
        limit,
        max_per_account,
    )
    .fetch_all(conn)
    .await?;
    Ok(leased)
}

/// Claims the check of a domain, unless it was checked after `checked_before` or is being checked.
pub async fn lease_check(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    checked_before: DateTime<Utc>,
    now: DateTime<Utc>,
    leased_until: DateTime<Utc>,
) -> Result<Option<LeasedCheck>, Error> {
    let leased = query_as!(
        LeasedCheck,
        "update domains d set check_leased_until = $5 from subdomains s
         where d.account_id = $1 and d.id = $2 and s.id = d.subdomain_id
           and (d.last_checked_at is null or d.last_checked_at <= $3)
           and (d.check_leased_until is null or d.check_leased_until <= $4)
         returning d.id, d.domain, s.name as subdomain, d.challenge",
        account_id,
        id,
        checked_before,
        now,
        leased_until,
    )
    .fetch_optional(conn)
    .await?;
    Ok(leased)
}
