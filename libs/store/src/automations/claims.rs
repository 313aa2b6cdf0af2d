//! Claims due runs, many with one statement, and keeps their leases.
//!
//! Runs are claimed per account, so that the backlog of one account does not delay the others. Commits asynchronously
//! (`synchronous_commit` off for this transaction only): a crash of Postgres may lose a claim, and its run is due again.

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::{Conn, Error};

/// The claim of a run: proof that a worker may write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    pub run_id: Uuid,
    pub lease_id: Uuid,
}

/// How many runs of an account may be claimed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimit {
    pub account_id: Uuid,
    pub limit: i32,
}

/// A claimed run with what its worker needs.
#[derive(Debug)]
pub struct ClaimedRun {
    pub claim: Claim,
    pub account_id: Uuid,
    pub plan: Plan,
    /// Whether its account is suspended.
    pub is_suspended: bool,
    pub automation_id: Uuid,
    pub definition_hash: Vec<u8>,
    /// The automation's variables at the time of the claim. If a key with other permissions has saved another version since
    /// the run began, those of the run's own version.
    pub sealed_env: Option<Vec<u8>>,
    pub trigger_type: String,
    pub trigger: Value,
    /// Why `trigger` or `resumed` can't be read. One run must not fail the claims of others.
    pub unreadable: Option<String>,
    pub is_test: bool,
    pub depth: i16,
    /// Claims since the last stored progress, this one included.
    pub claims: i32,
    /// Whether steps may be stored already.
    pub has_begun: bool,
    /// What its link was called with.
    pub resumed: Option<Value>,
    pub traceparent: Option<String>,
    pub started_at: DateTime<Utc>,
    /// When it became due.
    pub due_at: DateTime<Utc>,
}

/// Returns the accounts that have due runs. Skips from account to account in the indexes, so its cost does not depend on
/// the number of runs. Accounts are also named if a concurrency limit holds back all their queued runs.
pub async fn list_due_accounts(conn: &mut Conn, now: DateTime<Utc>) -> Result<Vec<Uuid>, Error> {
    let due = query_scalar!(
        r#"with recursive step (account_id) as (
               (select account_id from automation_runs
                where due_at is not null and (concurrency_limit is null or status <> 'queued')
                order by account_id limit 1)
               union all
               select (select r.account_id from automation_runs r
                       where r.due_at is not null and (r.concurrency_limit is null or r.status <> 'queued')
                         and r.account_id > step.account_id order by r.account_id limit 1)
               from step where step.account_id is not null
           ), limited (account_id) as (
               (select account_id from automation_runs where concurrency_limit is not null and status = 'queued'
                order by account_id limit 1)
               union all
               select (select r.account_id from automation_runs r
                       where r.concurrency_limit is not null and r.status = 'queued'
                         and r.account_id > limited.account_id order by r.account_id limit 1)
               from limited where limited.account_id is not null
           )
           select account_id as "account_id!" from step
           where account_id is not null
             and exists (select from automation_runs r
                         where r.account_id = step.account_id and r.due_at <= $1
                           and (r.concurrency_limit is null or r.status <> 'queued'))
           union
           select account_id from limited where account_id is not null"#,
        now,
    )
    .fetch_all(conn)
    .await?;
    Ok(due)
}

/// Claims the runs that have been due longest, at most as many as each account's limit, until `until`. An account that
/// yields fewer has no more runs that can be claimed now. Skips locked rows, so concurrent workers never claim the same
/// one.
///
/// Of queued runs with a concurrency limit, the oldest of each key is claimed if fewer runs with the key are active. Claims
/// of them take turns by an advisory lock of the automation. A statement that began before another one's commit sees the
/// same oldest run, and the recheck of its locked row finds it claimed, so the limit holds.
pub async fn claim_runs(
    conn: &mut Conn,
    now: DateTime<Utc>,
    until: DateTime<Utc>,
    lease_id: Uuid,
    limits: &[RunLimit],
) -> Result<Vec<ClaimedRun>, Error> {
    // `= any (array)` makes the planner expect few rows. Joined to `due`, it would read the whole table.
    let rows = query!(
        r#"with heads as materialized (
               select r.account_id, h.id
               from unnest($4::uuid[], $5::int[]) as r (account_id, places)
               cross join lateral (
                   with recursive keys (automation_id, key) as (
                       (select q.automation_id, coalesce(q.concurrency_key, '') from automation_runs q
                        where q.account_id = r.account_id and q.concurrency_limit is not null and q.status = 'queued'
                        order by q.automation_id, coalesce(q.concurrency_key, '') limit 1)
                       union all
                       select n.* from keys k cross join lateral (
                           select q.automation_id, coalesce(q.concurrency_key, '') from automation_runs q
                           where q.account_id = r.account_id and q.concurrency_limit is not null and q.status = 'queued'
                             and (q.automation_id, coalesce(q.concurrency_key, '')) > (k.automation_id, k.key)
                           order by q.automation_id, coalesce(q.concurrency_key, '') limit 1) n
                   )
                   select o.id from keys k cross join lateral (
                       select q.id, q.concurrency_limit from automation_runs q
                       where q.account_id = r.account_id and q.concurrency_limit is not null and q.status = 'queued'
                         and q.automation_id = k.automation_id and coalesce(q.concurrency_key, '') = k.key
                       order by q.id limit 1) o
                   where pg_try_advisory_xact_lock(hashtextextended(k.automation_id::text, 20))
                     and o.concurrency_limit > (
                         select count(*) from automation_runs q
                         where q.automation_id = k.automation_id and q.concurrency_limit is not null
                           and coalesce(q.concurrency_key, '') = k.key and q.status in ('running', 'waiting'))
                   limit r.places
               ) h
           ), limited as materialized (
               select q.id, q.due_at, q.started_at is not null as has_begun, h.account_id
               from heads h join automation_runs q on q.id = h.id
               where q.status = 'queued' and q.due_at <= $1
               for no key update of q skip locked
           ), due as materialized (
               select id, due_at, has_begun from limited
               union all
               select d.id, d.due_at, d.has_begun
               from unnest($4::uuid[], $5::int[]) as r (account_id, places)
               cross join lateral (
                   select id, due_at, started_at is not null as has_begun from automation_runs q
                   where q.account_id = r.account_id and q.due_at <= $1
                     and (q.concurrency_limit is null or q.status <> 'queued')
                     and (select set_config('synchronous_commit', 'off', true)) = 'off'
                   order by due_at
                   limit greatest(r.places - (select count(*) from limited l where l.account_id = r.account_id), 0)
                   for no key update skip locked
               ) d
           )
           update automation_runs r
           set status = 'running', due_at = $2, lease_id = $3, claims = r.claims + 1,
               started_at = coalesce(r.started_at, $1)
           from due j, automations a, accounts o
           where r.id = any (array(select id from due)) and r.id = j.id and a.id = r.automation_id
             and o.id = r.account_id
           returning r.id, r.account_id, o.plan, o.suspended_at is not null as "is_suspended!", r.automation_id,
                     r.definition_hash, coalesce((
                         select case when (f.scopes, f.scope_folder_id, f.resource_ids)
                                          is distinct from (a.scopes, a.scope_folder_id, a.resource_ids)
                                     then coalesce(f.sealed_env, '') end
                         from automation_former_versions f
                         where f.automation_id = a.id and f.definition_hash = r.definition_hash
                           and f.definition_hash <> a.definition_hash), a.sealed_env) as sealed_env, r.trigger_type, r.trigger::text as "trigger!", r.is_test,
                     r.depth, r.claims, j.has_begun as "has_begun!", r.resumed::text as resumed, r.traceparent,
                     r.started_at as "started_at!", j.due_at as "due_at!""#,
        now,
        until,
        lease_id,
        &limits.iter().map(|limit| limit.account_id).collect::<Vec<_>>(),
        &limits.iter().map(|limit| limit.limit).collect::<Vec<_>>(),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let trigger = serde_json::from_str(&row.trigger);
            let resumed = row.resumed.as_deref().map(serde_json::from_str).transpose();
            let unreadable = trigger.as_ref().err().or(resumed.as_ref().err()).map(ToString::to_string);
            Ok(ClaimedRun {
                claim: Claim { run_id: row.id, lease_id },
                account_id: row.account_id,
                plan: read_plan(&row.plan)?,
                is_suspended: row.is_suspended,
                automation_id: row.automation_id,
                definition_hash: row.definition_hash,
                // Empty for a former version without variables.
                sealed_env: row.sealed_env.filter(|sealed| !sealed.is_empty()),
                trigger_type: row.trigger_type,
                trigger: trigger.unwrap_or_default(),
                unreadable,
                is_test: row.is_test,
                depth: row.depth,
                claims: row.claims,
                has_begun: row.has_begun,
                resumed: resumed.unwrap_or_default(),
                traceparent: row.traceparent,
                started_at: row.started_at,
                due_at: row.due_at,
            })
        })
        .collect()
}

/// Extends the leases of running runs. Returns the claims that no longer hold. A run that another transaction has locked
/// is neither extended nor returned; the next call extends it.
pub async fn extend_leases(
    conn: &mut Conn,
    claims: &[Claim],
    until: DateTime<Utc>,
) -> Result<Vec<Claim>, Error> {
    let (runs, leases): (Vec<Uuid>, Vec<Uuid>) =
        claims.iter().map(|claim| (claim.run_id, claim.lease_id)).unzip();
    let lost = query!(
        r#"with held as materialized (
               select r.id from unnest($1::uuid[], $2::uuid[]) as t (id, lease_id)
               join automation_runs r on r.id = t.id and r.lease_id = t.lease_id
               where r.status = 'running' order by r.id for no key update of r skip locked
           ), extended as (
               update automation_runs r set due_at = $3 from held where r.id = held.id
           )
           select t.id as "run_id!", t.lease_id as "lease_id!" from unnest($1::uuid[], $2::uuid[]) as t (id, lease_id)
           where not exists (select from automation_runs r
                             where r.id = t.id and r.lease_id = t.lease_id and r.status = 'running')"#,
        &runs,
        &leases,
        until,
    )
    .fetch_all(conn)
    .await?;
    Ok(lost.into_iter().map(|row| Claim { run_id: row.run_id, lease_id: row.lease_id }).collect())
}

/// Returns claimed runs that were not begun: they are due at once, and the claim is not counted. One that another
/// transaction has locked is due when its lease expires.
pub async fn release_runs(conn: &mut Conn, claims: &[Claim], now: DateTime<Utc>) -> Result<(), Error> {
    let (runs, leases): (Vec<Uuid>, Vec<Uuid>) =
        claims.iter().map(|claim| (claim.run_id, claim.lease_id)).unzip();
    query!(
        "with held as materialized (
             select r.id from unnest($1::uuid[], $2::uuid[]) as t (id, lease_id)
             join automation_runs r on r.id = t.id and r.lease_id = t.lease_id
             where r.status = 'running' order by r.id for no key update of r skip locked
         )
         update automation_runs r
         set due_at = $3, lease_id = null, claims = greatest(r.claims - 1, 0)
         from held where r.id = held.id",
        &runs,
        &leases,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}
