//! The stored steps of runs that are under way.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::{Authority, Claim};
use crate::credentials::{read_restrictions, read_scopes};
use crate::{Conn, Error};

/// A step to store. A later one of the same path replaces an earlier one.
#[derive(Debug, Clone)]
pub struct StepRow {
    pub path: String,
    pub position: i32,
    pub step_id: String,
    pub kind: &'static str,
    /// `success`, `error`, `skipped` or `waiting`.
    pub status: &'static str,
    /// Masked and cut.
    pub input: Value,
    /// Masked and cut.
    pub output: Value,
    /// The whole output, encrypted, if `output` is not it.
    pub sealed_output: Option<Vec<u8>>,
    /// Whether `output` is not the whole output. Stays when the encrypted one is deleted.
    pub is_partial: bool,
    pub error: Option<String>,
    pub attempts: i32,
    pub started_at: DateTime<Utc>,
    pub finished_at: DateTime<Utc>,
}

/// A stored step, as a walk reads it back.
#[derive(Debug)]
pub struct JournalRow {
    pub run_id: Uuid,
    pub path: String,
    pub status: String,
    /// Or why it can't be read. One step must not fail the runs of others.
    pub output: Result<Value, String>,
    pub sealed_output: Option<Vec<u8>>,
    pub error: Option<String>,
    pub attempts: i32,
}

/// Returns the steps of runs. Takes no account: the caller has claimed the runs.
pub async fn list_journal(conn: &mut Conn, run_ids: &[Uuid]) -> Result<Vec<JournalRow>, Error> {
    let rows = query!(
        r#"select run_id, path, status, output::text as "output!", sealed_output, error, attempts
           from automation_steps where run_id = any($1)"#,
        run_ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| JournalRow {
        run_id: row.run_id,
        path: row.path,
        status: row.status,
        output: serde_json::from_str(&row.output).map_err(|error| error.to_string()),
        sealed_output: row.sealed_output,
        error: row.error,
        attempts: row.attempts,
    });
    Ok(rows.collect())
}

/// Locks a claimed run until the end of the transaction, and returns what the steps of its version may do. `None` if it
/// is no longer the worker's, or if its account is suspended: the worker must write nothing.
pub async fn lock_run(conn: &mut Conn, account_id: Uuid, claim: Claim) -> Result<Option<Authority>, Error> {
    let row = query!(
        r#"select coalesce(f.scopes, a.scopes) as "scopes!",
                  case when f.automation_id is null then a.scope_folder_id else f.scope_folder_id end as scope_folder_id,
                  coalesce(f.resource_ids, a.resource_ids) as "resource_ids!: Json<BTreeMap<String, BTreeSet<Uuid>>>"
           from automation_runs r
           join automations a on a.id = r.automation_id
           left join automation_former_versions f on f.automation_id = a.id
               and f.definition_hash = r.definition_hash and f.definition_hash <> a.definition_hash
           join accounts o on o.id = r.account_id and o.suspended_at is null
           where r.account_id = $1 and r.id = $2 and r.lease_id = $3 and r.status = 'running'
           for no key update of r"#,
        account_id,
        claim.run_id,
        claim.lease_id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(Authority {
            scopes: read_scopes(&row.scopes)?,
            restrictions: read_restrictions(row.scope_folder_id, row.resource_ids.0)?,
        })
    })
    .transpose()
}

/// A run that is still the worker's.
#[derive(Debug)]
pub enum RunLock {
    /// It is locked until the end of the transaction; its steps may do this.
    Held(Authority),
    /// Another transaction has locked it.
    Busy,
}

/// As [`lock_run`], for many runs, each with its account, without waiting for other transactions. Returns those that are
/// still the worker's, by the id of the run.
pub async fn lock_runs(conn: &mut Conn, runs: &[(Uuid, Claim)]) -> Result<HashMap<Uuid, RunLock>, Error> {
    let rows = query!(
        r#"with held as materialized (
               select r.id from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as t (account_id, id, lease_id)
               join automation_runs r on r.id = t.id and r.account_id = t.account_id and r.lease_id = t.lease_id
               where r.status = 'running' order by r.id for no key update of r skip locked
           )
           select r.id, coalesce(f.scopes, a.scopes) as "scopes!",
                  case when f.automation_id is null then a.scope_folder_id else f.scope_folder_id end as scope_folder_id,
                  coalesce(f.resource_ids, a.resource_ids) as "resource_ids!: Json<BTreeMap<String, BTreeSet<Uuid>>>",
                  r.id in (select id from held) as "is_held!"
           from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as t (account_id, id, lease_id)
           join automation_runs r on r.id = t.id and r.account_id = t.account_id and r.lease_id = t.lease_id
           join automations a on a.id = r.automation_id
           left join automation_former_versions f on f.automation_id = a.id
               and f.definition_hash = r.definition_hash and f.definition_hash <> a.definition_hash
           join accounts o on o.id = r.account_id and o.suspended_at is null
           where r.status = 'running'"#,
        &runs.iter().map(|(account_id, _)| *account_id).collect::<Vec<_>>(),
        &runs.iter().map(|(_, claim)| claim.run_id).collect::<Vec<_>>(),
        &runs.iter().map(|(_, claim)| claim.lease_id).collect::<Vec<_>>(),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            if !row.is_held {
                return Ok((row.id, RunLock::Busy));
            }
            let restrictions = read_restrictions(row.scope_folder_id, row.resource_ids.0)?;
            Ok((row.id, RunLock::Held(Authority { scopes: read_scopes(&row.scopes)?, restrictions })))
        })
        .collect()
}

/// Runs that are still the worker's.
#[derive(Debug, Default)]
pub struct HeldClaims {
    /// Locked until the end of the transaction.
    pub held: HashSet<Uuid>,
    /// Locked by another transaction.
    pub busy: HashSet<Uuid>,
}

/// Locks claimed runs until the end of the transaction, without waiting for other transactions.
pub async fn hold_runs(conn: &mut Conn, claims: &[Claim]) -> Result<HeldClaims, Error> {
    let rows = query!(
        r#"with held as materialized (
               select r.id from unnest($1::uuid[], $2::uuid[]) as t (id, lease_id)
               join automation_runs r on r.id = t.id and r.lease_id = t.lease_id
               where r.status = 'running' order by r.id for no key update of r skip locked
           )
           select r.id, r.id in (select id from held) as "is_held!"
           from unnest($1::uuid[], $2::uuid[]) as t (id, lease_id)
           join automation_runs r on r.id = t.id and r.lease_id = t.lease_id
           where r.status = 'running'"#,
        &claims.iter().map(|claim| claim.run_id).collect::<Vec<_>>(),
        &claims.iter().map(|claim| claim.lease_id).collect::<Vec<_>>(),
    )
    .fetch_all(conn)
    .await?;
    let mut claims = HeldClaims::default();
    for row in rows {
        let of_kind = if row.is_held { &mut claims.held } else { &mut claims.busy };
        of_kind.insert(row.id);
    }
    Ok(claims)
}

/// Stores steps of claimed runs. Steps of a run that is no longer the worker's are left out. Returns the runs whose
/// steps were stored. A stored step is progress: the count of claims begins anew.
///
/// Locks the runs, so none is cancelled or claimed by another worker before the steps are committed. That costs next to
/// nothing if the transaction has locked them already, with [`lock_run`], [`lock_runs`] or [`hold_runs`].
pub async fn store_steps(conn: &mut Conn, steps: &[(Claim, StepRow)]) -> Result<Vec<Uuid>, Error> {
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let mut runs: Vec<Claim> = Vec::new();
    for (claim, _) in steps {
        if runs.last() != Some(claim) {
            runs.push(*claim);
        }
    }
    runs.sort_by_key(|claim| claim.run_id);
    runs.dedup();
    let rows = query!(
        r#"with owned as materialized (
               select r.id, r.claims from unnest($1::uuid[], $2::uuid[]) as t (id, lease_id)
               join automation_runs r on r.id = t.id and r.lease_id = t.lease_id
               where r.status = 'running' order by r.id for no key update of r
           ), progressed as (
               update automation_runs r set claims = 0 from owned where r.id = owned.id and owned.claims > 1
           ), stored as (
               insert into automation_steps (run_id, path, position, step_id, type, status, input, output, sealed_output,
                                             error, attempts, started_at, finished_at, is_partial)
               select s.* from unnest($3::uuid[], $4::text[], $5::int[], $6::text[], $7::text[], $8::text[], $9::json[],
                                      $10::json[], $11::bytea[], $12::text[], $13::int[], $14::timestamptz[],
                                      $15::timestamptz[], $16::boolean[])
                    as s (run_id, path, position, step_id, type, status, input, output, sealed_output, error, attempts,
                          started_at, finished_at, is_partial)
               join owned on owned.id = s.run_id
               on conflict (run_id, path) do update set
                   position = excluded.position, status = excluded.status, input = excluded.input,
                   output = excluded.output, sealed_output = excluded.sealed_output,
                   is_partial = excluded.is_partial, error = excluded.error,
                   attempts = excluded.attempts, finished_at = excluded.finished_at
           )
           select id as "id!" from owned"#,
        &runs.iter().map(|claim| claim.run_id).collect::<Vec<_>>(),
        &runs.iter().map(|claim| claim.lease_id).collect::<Vec<_>>(),
        &steps.iter().map(|(claim, _)| claim.run_id).collect::<Vec<_>>(),
        &column(steps, |step| step.path.clone()),
        &column(steps, |step| step.position),
        &column(steps, |step| step.step_id.clone()),
        &column(steps, |step| step.kind.to_owned()),
        &column(steps, |step| step.status.to_owned()),
        &column(steps, |step| Json(&step.input)) as _,
        &column(steps, |step| Json(&step.output)) as _,
        &column(steps, |step| step.sealed_output.clone()) as _,
        &column(steps, |step| step.error.clone()) as _,
        &column(steps, |step| step.attempts),
        &column(steps, |step| step.started_at),
        &column(steps, |step| step.finished_at),
        &column(steps, |step| step.is_partial),
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

fn column<'a, T>(steps: &'a [(Claim, StepRow)], field: impl Fn(&'a StepRow) -> T) -> Vec<T> {
    steps.iter().map(|(_, step)| field(step)).collect()
}

/// The result of storing an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseOutcome {
    /// It is stored.
    Stored,
    /// The run has an answer already.
    Answered,
    /// The run was started by no request.
    NoRequest,
}

/// Stores the response of a run. Only the first one is stored, and only if a request or a test started the run. The
/// caller checks before the commit that the run is still the worker's ([`lock_run`]).
pub async fn store_response(
    conn: &mut Conn,
    account_id: Uuid,
    run_id: Uuid,
    response: &Value,
) -> Result<ResponseOutcome, Error> {
    let updated = query!(
        "update automation_runs set response = $3
         where account_id = $1 and id = $2 and response is null and (is_test or trigger_type in ('http', 'test'))",
        account_id,
        run_id,
        Json(response) as _,
    );
    if updated.execute(&mut *conn).await?.rows_affected() > 0 {
        return Ok(ResponseOutcome::Stored);
    }
    let has_answer = query_scalar!(
        r#"select response is not null as "has!" from automation_runs where account_id = $1 and id = $2"#,
        account_id,
        run_id,
    );
    let has_answer = has_answer.fetch_optional(conn).await?.unwrap_or_default();
    Ok(if has_answer { ResponseOutcome::Answered } else { ResponseOutcome::NoRequest })
}
