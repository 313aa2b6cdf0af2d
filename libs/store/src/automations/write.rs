//! Saves and deletes automations.
//!
//! A transaction that locks both locks the statistics of an automation before the automation itself, because the worker
//! that counts its runs does ([`super::record_ended_runs`], then [`disable_automation`]). Another order deadlocks with it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::Authority;
use crate::{Conn, Error};

/// An automation to store.
#[derive(Debug)]
pub struct NewAutomation<'a> {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    pub slug: &'a str,
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub is_enabled: bool,
    /// Canonical JSON.
    pub definition: &'a str,
    pub definition_hash: &'a [u8],
    pub env_names: &'a [String],
    pub sealed_env: Option<&'a [u8]>,
    pub authority: &'a Authority,
    pub trigger_type: &'a str,
    pub trigger_form_id: Option<Uuid>,
    pub next_fire_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// A new state of an automation. `None` leaves a field unchanged.
#[derive(Debug, Default)]
pub struct AutomationChange<'a> {
    pub slug: Option<&'a str>,
    pub name: Option<&'a str>,
    /// The inner `None` removes the description.
    pub description: Option<Option<&'a str>>,
    /// The inner `None` takes it out of its folder.
    pub folder_id: Option<Option<Uuid>>,
    pub is_enabled: Option<bool>,
    /// Hash and canonical JSON.
    pub definition: Option<(&'a [u8], &'a str)>,
    /// Names and encrypted values; no names and `None` remove all.
    pub env: Option<(&'a [String], Option<&'a [u8]>)>,
    /// Set if the definition or the variables change.
    pub authority: Option<&'a Authority>,
    /// Type and form of the trigger; set with the definition.
    pub trigger: Option<(&'a str, Option<Uuid>)>,
    /// When the schedule fires next, in any change of definition or `is_enabled`.
    pub next_fire_at: Option<Option<DateTime<Utc>>>,
}

/// The result of saving an automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveOutcome {
    /// It is stored.
    Stored,
    /// Another automation of the account has the slug.
    SlugTaken,
    /// There is no such automation.
    Missing,
}

fn resource_ids(authority: &Authority) -> Json<BTreeMap<&str, &BTreeSet<Uuid>>> {
    Json(authority.restrictions.ids.iter().map(|(resource, ids)| (resource.as_str(), ids)).collect())
}

async fn insert_definition(
    conn: &mut Conn,
    account_id: Uuid,
    hash: &[u8],
    definition: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    // A version that is stored already is renewed, so that the retention of unused ones leaves it.
    query!(
        "insert into automation_definitions (account_id, hash, definition, created_at) values ($1, $2, $3, $4)
         on conflict (account_id, hash) do update
             set created_at = greatest(automation_definitions.created_at, excluded.created_at)",
        account_id,
        hash,
        definition,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Renews the version of an automation that is about to be replaced, so that the retention leaves it to runs that are
/// being inserted with it. Locks it together with the next version in one order, so that concurrent updates can't
/// deadlock.
async fn renew_definitions(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    next_hash: &[u8],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "with held as materialized (
             select hash from automation_definitions
             where account_id = $1 and hash in (
                 select $3 union all select definition_hash from automations where account_id = $1 and id = $2)
             order by hash for no key update
         )
         update automation_definitions d set created_at = greatest(d.created_at, $4) from held
         where d.account_id = $1 and d.hash = held.hash",
        account_id,
        id,
        next_hash,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Inserts an automation. Unless the result is [`SaveOutcome::Stored`], the caller must roll back.
pub async fn insert_automation(
    conn: &mut Conn,
    account_id: Uuid,
    new: &NewAutomation<'_>,
) -> Result<SaveOutcome, Error> {
    insert_definition(conn, account_id, new.definition_hash, new.definition, new.created_at).await?;
    let stored = query_scalar!(
        "insert into automations (id, account_id, folder_id, slug, name, description, is_enabled, definition_hash,
                                  env_names, sealed_env, scopes, scope_folder_id, resource_ids, trigger_type,
                                  trigger_form_id, next_fire_at, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $17)
         on conflict (account_id, slug) do nothing returning id",
        new.id,
        account_id,
        new.folder_id,
        new.slug,
        new.name,
        new.description,
        new.is_enabled,
        new.definition_hash,
        new.env_names,
        new.sealed_env,
        &new.authority.scopes.words(),
        new.authority.restrictions.folder_id,
        resource_ids(new.authority) as _,
        new.trigger_type,
        new.trigger_form_id,
        new.next_fire_at,
        new.created_at,
    )
    .fetch_optional(conn)
    .await?;
    Ok(if stored.is_some() { SaveOutcome::Stored } else { SaveOutcome::SlugTaken })
}

/// Locks an automation of the account against other changes, for one that enables it also its statistics. Returns `false`
/// if there is no such automation.
pub async fn lock_automation(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    is_enabled: Option<bool>,
) -> Result<bool, Error> {
    if is_enabled == Some(true) {
        // First, see above. Statistics that are being inserted meanwhile are not seen, and not waited for.
        query!(
            "select s.automation_id from automation_statistics s join automations a on a.id = s.automation_id
             where a.account_id = $1 and a.id = $2 for no key update of s",
            account_id,
            id,
        )
        .fetch_optional(&mut *conn)
        .await?;
    }
    let locked = query!(
        "select id from automations where account_id = $1 and id = $2 for no key update",
        account_id,
        id,
    );
    Ok(locked.fetch_optional(conn).await?.is_some())
}

/// Updates an automation that the caller has locked with [`lock_automation`], given the same `is_enabled`. Enabling it
/// resets its consecutive failures. Unless the result is [`SaveOutcome::Stored`], the caller must roll back.
pub async fn update_automation(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: &AutomationChange<'_>,
    now: DateTime<Utc>,
) -> Result<SaveOutcome, Error> {
    if let Some((hash, definition)) = change.definition {
        renew_definitions(conn, account_id, id, hash, now).await?;
        insert_definition(conn, account_id, hash, definition, now).await?;
        keep_former_version(conn, account_id, id, hash).await?;
    }
    if let Some(slug) = change.slug {
        let taken = query_scalar!(
            "select id from automations where account_id = $1 and slug = $2 and id <> $3",
            account_id,
            slug,
            id,
        );
        if taken.fetch_optional(&mut *conn).await?.is_some() {
            return Ok(SaveOutcome::SlugTaken);
        }
    }
    let scopes = change.authority.map(|authority| authority.scopes.words());
    let updated = query!(
        "update automations set
             slug = coalesce($3, slug), name = coalesce($4, name),
             description = case when $5 then $6 else description end,
             folder_id = case when $7 then $8 else folder_id end,
             is_enabled = coalesce($9, is_enabled), definition_hash = coalesce($10, definition_hash),
             env_names = case when $11 then $12 else env_names end,
             sealed_env = case when $11 then $13 else sealed_env end,
             scopes = coalesce($14, scopes),
             scope_folder_id = case when $14::text[] is null then scope_folder_id else $15 end,
             resource_ids = coalesce($16, resource_ids),
             trigger_type = coalesce($17, trigger_type),
             trigger_form_id = case when $17::text is null then trigger_form_id else $18 end,
             next_fire_at = case when $19 then $20 else next_fire_at end,
             updated_at = greatest($21, updated_at + interval '1 microsecond')
         where account_id = $1 and id = $2",
        account_id,
        id,
        change.slug,
        change.name,
        change.description.is_some(),
        change.description.flatten(),
        change.folder_id.is_some(),
        change.folder_id.flatten(),
        change.is_enabled,
        change.definition.map(|(hash, _)| hash),
        change.env.is_some(),
        change.env.map(|(names, _)| names).unwrap_or_default(),
        change.env.and_then(|(_, sealed)| sealed),
        scopes.as_deref(),
        change.authority.and_then(|authority| authority.restrictions.folder_id),
        change.authority.map(resource_ids) as _,
        change.trigger.map(|(kind, _)| kind),
        change.trigger.and_then(|(_, form_id)| form_id),
        change.next_fire_at.is_some(),
        change.next_fire_at.flatten(),
        now,
    )
    .execute(&mut *conn)
    .await?;
    if updated.rows_affected() == 0 {
        return Ok(SaveOutcome::Missing);
    }
    if change.is_enabled == Some(true) {
        query!("update automation_statistics set consecutive_failures = 0 where automation_id = $1", id)
            .execute(conn)
            .await?;
    }
    Ok(SaveOutcome::Stored)
}

/// Stores the permissions and variables of the current version before one with the hash `next` replaces it: its unfinished
/// runs go on with them.
async fn keep_former_version(conn: &mut Conn, account_id: Uuid, id: Uuid, next: &[u8]) -> Result<(), Error> {
    query!(
        "insert into automation_former_versions
             (automation_id, definition_hash, account_id, scopes, scope_folder_id, resource_ids, sealed_env)
         select id, definition_hash, account_id, scopes, scope_folder_id, resource_ids, sealed_env
         from automations where account_id = $1 and id = $2 and definition_hash <> $3
         on conflict (automation_id, definition_hash) do update set
             scopes = excluded.scopes, scope_folder_id = excluded.scope_folder_id,
             resource_ids = excluded.resource_ids, sealed_env = excluded.sealed_env",
        account_id,
        id,
        next,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Disables an automation that is about to be deleted, so that it starts no more runs. Returns `false` if there is none.
pub async fn begin_deletion(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    // The form stays: if the deletion fails halfway, the automation can be enabled again as it was.
    let disabled = query!(
        "update automations set is_enabled = false, next_fire_at = null, updated_at = greatest($3, updated_at)
         where account_id = $1 and id = $2",
        account_id,
        id,
        now,
    );
    Ok(disabled.execute(conn).await?.rows_affected() > 0)
}

/// Deletes an automation with its remaining runs. The caller has deleted the others before
/// ([`super::delete_automation_runs`]), because they can be too many for one transaction. Returns `false` if there is no
/// such automation.
pub async fn delete_automation(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    // First, see above: the deletion of the automation would delete them after it.
    query!(
        "delete from automation_statistics s using automations a
         where a.id = s.automation_id and a.account_id = $1 and a.id = $2",
        account_id,
        id,
    )
    .execute(&mut *conn)
    .await?;
    let deleted = query!("delete from automations where account_id = $1 and id = $2", account_id, id);
    Ok(deleted.execute(conn).await?.rows_affected() > 0)
}

/// Disables an automation after too many consecutive failures. The caller may hold the lock of its statistics (see the
/// module). Returns `false` if it was disabled already.
pub async fn disable_automation(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let disabled = query!(
        "update automations set is_enabled = false, next_fire_at = null, updated_at = greatest($3, updated_at)
         where account_id = $1 and id = $2 and is_enabled",
        account_id,
        id,
        now,
    );
    Ok(disabled.execute(conn).await?.rows_affected() > 0)
}
