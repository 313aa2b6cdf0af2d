//! Stores what a check found. One observation of DNS decides on the rows of all accounts with the same domain, under their
//! locks: accounts that check at the same time can't both get it, and an older observation can't undo a newer one.

use std::time::Duration;

use chrono::{DateTime, Utc};
use contract::Change;
use domain::domains::{
    self, Claim, ErrorCode, Found, Routing, compare, explain, is_served, next_check, standing,
};
use sqlx::types::Json;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use super::certificates::order_certificate;
use crate::mails::{self, Kind};
use crate::{Conn, Error};

/// Scheduled checks that must fail in a row before an owner is told that the records are gone.
const FAILED_CHECKS_BEFORE_MAIL: i32 = 3;

/// How a check was made.
#[derive(Debug, Clone, Copy)]
pub struct CheckContext<'a> {
    /// When its lookups began.
    pub now: DateTime<Utc>,
    /// Where domains must lead.
    pub routing: &'a Routing,
    /// Delays between checks.
    pub schedule: &'a [Duration],
    /// Spreads the next check, in 0..1.
    pub fraction: f64,
    /// The row of the check that was due; `None` if an owner requested it, which does not postpone the next one.
    pub scheduled: Option<Uuid>,
}

/// One account's row of the domain.
#[derive(Debug)]
struct Row {
    id: Uuid,
    account_id: Uuid,
    subdomain: String,
    challenge: String,
    dns_status: String,
    verified_at: Option<DateTime<Utc>>,
    last_checked_at: Option<DateTime<Utc>>,
    next_attempt_at: DateTime<Utc>,
    failed_checks: i32,
    records_gone_mailed_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
}

/// A row's new values.
struct Update {
    verified_at: Option<DateTime<Utc>>,
    standing: domains::Standing,
    error_code: Option<ErrorCode>,
    error: Option<String>,
    failed_checks: i32,
    next_attempt_at: DateTime<Utc>,
    records_gone_mailed_at: Option<DateTime<Utc>>,
    orders_certificate: bool,
}

/// Stores what a check found for a domain, of all accounts that added it. Returns the changes to publish. Takes no account,
/// because a domain moves from one to another.
pub async fn store_check(
    conn: &mut Conn,
    domain: &str,
    found: &Found,
    context: &CheckContext<'_>,
) -> Result<Vec<Change>, Error> {
    let rows = lock_rows(conn, domain).await?;
    if rows.iter().any(|row| row.last_checked_at.is_some_and(|at| at > context.now)) {
        return Ok(vec![]);
    }
    let claims: Vec<_> = rows.iter().map(Row::claim).collect();
    let holder = domains::holder(&claims, &found.txt);
    let mut updates: Vec<_> =
        rows.iter().map(|row| (row, row.update(domain, found, holder, context))).collect();
    // A domain has one holder at a time: the former one gives it up first.
    updates.sort_by_key(|(_, update)| update.verified_at.is_some());
    let mut changed = vec![];
    for (row, update) in &updates {
        write(conn, row, update, found, context.now).await?;
        if update.records_gone_mailed_at.is_some() && row.records_gone_mailed_at.is_none() {
            mails::insert_mail(conn, row.account_id, Kind::DomainRecords, row.id, context.now).await?;
        }
        if update.orders_certificate {
            order_certificate(conn, domain, context.now).await?;
        }
        if is_served(row.verified_at, context.now) != is_served(update.verified_at, context.now) {
            changed.push(row.id);
        }
    }
    if changed.is_empty() {
        return Ok(vec![]);
    }
    let redirecting = query_scalar!("select domain from domains where redirect_to = any($1)", &changed)
        .fetch_all(conn)
        .await?;
    let hosts = std::iter::once(domain.to_owned()).chain(redirecting);
    Ok(hosts.map(|host| Change::Host { host }).collect())
}

async fn lock_rows(conn: &mut Conn, domain: &str) -> Result<Vec<Row>, Error> {
    let rows = query_as!(
        Row,
        "select d.id, d.account_id, s.name as subdomain, d.challenge, d.dns_status, d.verified_at, d.last_checked_at,
                d.next_attempt_at, d.failed_checks, d.records_gone_mailed_at, d.created_at
         from domains d join subdomains s on s.id = d.subdomain_id
         where d.domain = $1 order by d.id for update of d",
        domain,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

impl Row {
    fn claim(&self) -> Claim {
        let (id, created_at, is_holder) = (self.id, self.created_at, self.verified_at.is_some());
        Claim { id, challenge: self.challenge.clone(), is_holder, created_at }
    }

    fn update(
        &self,
        domain: &str,
        found: &Found,
        holder: Option<Uuid>,
        context: &CheckContext<'_>,
    ) -> Update {
        let cname = context.routing.cname(&self.subdomain);
        let target = context.routing.target(&cname);
        let comparison = compare(domain, &self.challenge, &target, Some(found));
        let may_hold = holder == Some(self.id);
        let problem = comparison.problem.or((!may_hold).then_some(ErrorCode::ClaimedElsewhere));
        let verified_at = match problem {
            None => Some(context.now),
            Some(_) if may_hold => self.verified_at,
            Some(_) => None,
        };
        let error_code = problem.or(comparison.certificate_problem);
        let is_scheduled = context.scheduled == Some(self.id);
        let failed_checks = match error_code {
            None => 0,
            Some(_) => self.failed_checks.saturating_add(i32::from(is_scheduled)),
        };
        let next_attempt_at = match is_scheduled || error_code.is_none() {
            true => {
                let failed = usize::try_from(failed_checks).unwrap_or_default();
                next_check(context.schedule, failed, context.fraction, context.now)
            }
            false => self.next_attempt_at,
        };
        let was_moved = self.verified_at.is_some() && verified_at.is_none();
        let is_gone = self.verified_at.is_some()
            && problem.is_some_and(|code| !code.is_inconclusive())
            && (was_moved || failed_checks >= FAILED_CHECKS_BEFORE_MAIL);
        let mailed_now = is_gone.then_some(context.now);
        Update {
            standing: standing(problem, &self.dns_status, verified_at, self.created_at, context.now),
            verified_at,
            error: error_code.map(|code| explain(code, domain, &target, found)),
            error_code,
            failed_checks,
            next_attempt_at,
            records_gone_mailed_at: problem.and(self.records_gone_mailed_at.or(mailed_now)),
            orders_certificate: error_code.is_none(),
        }
    }
}

async fn write(
    conn: &mut Conn,
    row: &Row,
    update: &Update,
    found: &Found,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update domains set found = $3, status = $4, dns_status = $5, error_code = $6, error = $7, verified_at = $8,
                last_checked_at = $9, next_attempt_at = $10, failed_checks = $11, records_gone_mailed_at = $12,
                check_leased_until = null
         where account_id = $1 and id = $2",
        row.account_id,
        row.id,
        Json(found) as _,
        update.standing.status.as_str(),
        update.standing.dns_status,
        update.error_code.map(ErrorCode::as_str),
        update.error,
        update.verified_at,
        now,
        update.next_attempt_at,
        update.failed_checks,
        update.records_gone_mailed_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}
