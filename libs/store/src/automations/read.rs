//! Reads automations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use futures::TryStreamExt;
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::credentials::{read_restrictions, read_scopes};
use crate::list_filter::{collect_page, sorted_stream};
use crate::{Conn, Error, ListFilter, ListPage};

/// What the key that last saved an automation was allowed to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub scopes: ScopeSet,
    pub restrictions: Restrictions,
}

/// Counts of the runs of an automation, without test runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    pub runs: i64,
    pub failures: i64,
    /// Failures since the last success.
    pub consecutive_failures: i32,
    pub last_run_at: Option<DateTime<Utc>>,
    /// Reason of the last failure.
    pub last_error: Option<String>,
}

/// An automation as its owner sees it, with its variables still encrypted.
#[derive(Debug, Clone)]
pub struct Automation {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    pub slug: String,
    pub name: String,
    pub description: Option<String>,
    pub is_enabled: bool,
    /// Canonical JSON.
    pub definition: String,
    pub env_names: Vec<String>,
    /// Null if there are no variables.
    pub sealed_env: Option<Vec<u8>>,
    pub authority: Authority,
    pub next_fire_at: Option<DateTime<Utc>>,
    pub statistics: Statistics,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Returns an automation of the account.
pub async fn find_automation(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<Automation>, Error> {
    let filter = ListFilter { ids: Some(vec![id]), limit: 1, ..ListFilter::default() };
    Ok(list_automations(conn, account_id, &filter).await?.rows.pop())
}

struct AutomationRow {
    id: Uuid,
    folder_id: Option<Uuid>,
    slug: String,
    name: String,
    description: Option<String>,
    is_enabled: bool,
    definition: String,
    env_names: Vec<String>,
    sealed_env: Option<Vec<u8>>,
    scopes: Vec<String>,
    scope_folder_id: Option<Uuid>,
    resource_ids: Json<BTreeMap<String, BTreeSet<Uuid>>>,
    next_fire_at: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    runs: i64,
    failures: i64,
    consecutive_failures: i32,
    last_run_at: Option<DateTime<Utc>>,
    last_error: Option<String>,
}

/// Returns a page of the account's automations.
pub async fn list_automations(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
) -> Result<ListPage<Automation>, Error> {
    let rows = sorted_stream!(
        AutomationRow,
        conn,
        account_id,
        filter,
        r#"select a.id, a.folder_id, a.slug, a.name, a.description, a.is_enabled, d.definition, a.env_names, a.sealed_env,
                  a.scopes, a.scope_folder_id,
                  a.resource_ids as "resource_ids: Json<BTreeMap<String, BTreeSet<Uuid>>>",
                  a.next_fire_at, a.created_at, a.updated_at, coalesce(s.runs, 0) as "runs!",
                  coalesce(s.failures, 0) as "failures!", coalesce(s.consecutive_failures, 0) as "consecutive_failures!",
                  s.last_run_at as "last_run_at?", s.last_error as "last_error?"
           from automations a
           join automation_definitions d on d.account_id = a.account_id and d.hash = a.definition_hash
           left join automation_statistics s on s.automation_id = a.id
           where a.account_id = $1 and ($2::uuid is null or a.folder_id = $2) and ($3::uuid[] is null or a.id = any($3))"#,
        "a.created_at",
        "a.id"
    );
    let rows = rows.map_err(Error::from).and_then(async |row| {
        Ok(Automation {
            id: row.id,
            folder_id: row.folder_id,
            slug: row.slug,
            name: row.name,
            description: row.description,
            is_enabled: row.is_enabled,
            definition: row.definition,
            env_names: row.env_names,
            sealed_env: row.sealed_env,
            authority: Authority {
                scopes: read_scopes(&row.scopes)?,
                restrictions: read_restrictions(row.scope_folder_id, row.resource_ids.0)?,
            },
            next_fire_at: row.next_fire_at,
            statistics: Statistics {
                runs: row.runs,
                failures: row.failures,
                consecutive_failures: row.consecutive_failures,
                last_run_at: row.last_run_at,
                last_error: row.last_error,
            },
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    });
    collect_page(rows, filter.limit, |row: &Automation| row.definition.len()).await
}

/// An automation as callers of its trigger URL reach it.
#[derive(Debug, Clone)]
pub struct HttpAutomation {
    pub account_id: Uuid,
    pub plan: Plan,
    /// Whether its account is suspended.
    pub is_suspended: bool,
    pub slug: String,
    pub is_enabled: bool,
    pub definition_hash: Vec<u8>,
    /// Canonical JSON.
    pub definition: String,
    pub sealed_env: Option<Vec<u8>>,
}

/// Returns the automation behind a trigger URL. Takes no account, because its callers have none.
pub async fn find_http_automation(conn: &mut Conn, id: Uuid) -> Result<Option<HttpAutomation>, Error> {
    let row = query!(
        r#"select a.account_id, o.plan, o.suspended_at is not null as "is_suspended!", a.slug, a.is_enabled,
                  a.definition_hash, d.definition, a.sealed_env
           from automations a
           join accounts o on o.id = a.account_id
           join automation_definitions d on d.account_id = a.account_id and d.hash = a.definition_hash
           where a.id = $1 and a.trigger_type = 'http'"#,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(HttpAutomation {
            account_id: row.account_id,
            plan: read_plan(&row.plan)?,
            is_suspended: row.is_suspended,
            slug: row.slug,
            is_enabled: row.is_enabled,
            definition_hash: row.definition_hash,
            definition: row.definition,
            sealed_env: row.sealed_env,
        })
    })
    .transpose()
}

/// Returns a stored version of a definition as canonical JSON.
pub async fn find_definition(
    conn: &mut Conn,
    account_id: Uuid,
    hash: &[u8],
) -> Result<Option<String>, Error> {
    let definition = query_scalar!(
        "select definition from automation_definitions where account_id = $1 and hash = $2",
        account_id,
        hash,
    )
    .fetch_optional(conn)
    .await?;
    Ok(definition)
}

/// Returns, for each automation with a last error, the definition versions of the run that failed: its own, and those
/// that it copied data of. Omits an automation if its failed run is deleted.
pub async fn list_failed_versions(
    conn: &mut Conn,
    account_id: Uuid,
    automation_ids: &[Uuid],
) -> Result<HashMap<Uuid, Vec<Vec<u8>>>, Error> {
    // Runs with the same error say the same, so any of them will do. It is one of the newest that failed.
    let rows = query!(
        r#"select a.id, failed.hashes as "hashes!"
           from automations a
           join automation_statistics s on s.automation_id = a.id
           cross join lateral (
               select newest.hashes
               from (select r.definition_hash || coalesce(r.source_hashes, '{}') as hashes, r.error
                     from automation_runs r
                     where r.automation_id = a.id and r.status = 'error' and not r.is_test
                     order by r.id desc limit 100) newest
               where newest.error = s.last_error limit 1) failed
           where a.account_id = $1 and a.id = any($2)"#,
        account_id,
        automation_ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.hashes)).collect())
}
