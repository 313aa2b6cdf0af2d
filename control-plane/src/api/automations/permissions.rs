//! Checks that a caller may do what a definition does.

use std::collections::{BTreeMap, BTreeSet};

use automation::check::{ResourceUse, resources};
use automation::definition::AutomationDefinition;
use domain::FieldError;
use domain::restrictions::Restrictions;
use domain::scopes::{Action, Resource};
use serde_json::json;
use store::Conn;
use store::automations::{Authority, Run, find_definition};
use store::resources::ResourceFolder;
use uuid::Uuid;
use web::{Code, Problem};

use super::definition::CheckedDefinition;
use crate::call::Call;

/// What steps and triggers read.
const READ_BY_RUNS: [Resource; 2] = [Resource::Submissions, Resource::Entries];

/// What the caller lets the runs of an automation do.
pub(super) fn authority<S>(call: &Call<S>) -> Authority {
    Authority { scopes: call.scopes(), restrictions: call.restrictions().clone() }
}

/// Checks that every resource of a definition exists and that the caller may use it as the definition does. The problem
/// names the path of the field.
pub(super) async fn check_resources<S>(
    call: &Call<S>,
    conn: &mut Conn,
    definition: &AutomationDefinition,
) -> Result<(), Problem> {
    let uses = resources(definition);
    for one in &uses {
        let allowed = call.require_scope(one.scope.resource, one.scope.action);
        allowed.map_err(|problem| at_path(problem, one))?;
        if one.id.is_none() && one.scope.action == Action::Create {
            call.check_new(one.resource).map_err(|problem| at_path(problem, one))?;
        }
    }
    for (kind, ids) in ids_by_kind(&uses) {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        if call.check_ids(conn, kind, &ids).await.is_ok() {
            continue;
        }
        for one in uses.iter().filter(|one| one.resource == kind) {
            let Some(id) = one.id else { continue };
            call.check_id(conn, kind, id).await.map_err(|problem| at_path(problem, one))?;
        }
    }
    Ok(())
}

/// Checks that a run with the permissions of the last change finds no page by its slug that the caller is restricted
/// from. Which pages these are, only the run knows.
pub(super) fn check_borrowed<S>(
    call: &Call<S>,
    saved: &Authority,
    definition: &AutomationDefinition,
) -> Result<(), Problem> {
    let finds_by_slug = resources(definition).iter().any(|one| one.id.is_none());
    if finds_by_slug && !saved.restrictions.is_subset_of(call.restrictions()) {
        let detail = "its steps find pages by slug with more permissions than this key has";
        return Err(Problem::new(Code::InsufficientScope, detail));
    }
    Ok(())
}

/// Checks that the caller may send values of variables, which a key with the permissions `saved` stored, to wherever a
/// change lets them go.
pub(super) fn check_kept_env<S>(call: &Call<S>, saved: &Authority) -> Result<(), Problem> {
    let own = authority(call);
    if saved.scopes.is_subset_of(own.scopes) && saved.restrictions.is_subset_of(&own.restrictions) {
        return Ok(());
    }
    let detail = "a key with more permissions saved the variables; send all values of `env` with this change";
    Err(Problem::new(Code::InsufficientScope, detail))
}

/// Checks that the caller may read what the runs of these versions of a definition read: they hold its data. The current
/// version says nothing about earlier runs.
pub(super) async fn check_runs_visible<'a, S>(
    call: &Call<S>,
    conn: &mut Conn,
    runs: impl IntoIterator<Item = &'a Run>,
) -> Result<(), Problem> {
    if reads_everything(call) {
        return Ok(());
    }
    let hashes: BTreeSet<&[u8]> = runs.into_iter().map(|run| &run.definition_hash[..]).collect();
    for hash in hashes {
        let Some(json) = find_definition(conn, call.account_id, hash).await? else {
            let detail =
                "the definition of this run is gone, so only a key with all permissions may see the run";
            return Err(Problem::new(Code::InsufficientScope, detail));
        };
        check_visible(call, conn, &CheckedDefinition::stored(&json)?.definition).await?;
    }
    Ok(())
}

/// Returns whether the caller may read whatever a run may read.
fn reads_everything<S>(call: &Call<S>) -> bool {
    *call.restrictions() == Restrictions::default()
        && READ_BY_RUNS.iter().all(|part| call.require_scope(*part, Action::Read).is_ok())
}

async fn check_visible<S>(
    call: &Call<S>,
    conn: &mut Conn,
    definition: &AutomationDefinition,
) -> Result<(), Problem> {
    let uses = resources(definition);
    for one in uses.iter().filter(|one| one.scope.action == Action::Read) {
        call.require_scope(one.scope.resource, Action::Read)?;
    }
    if *call.restrictions() == Restrictions::default() {
        return Ok(());
    }
    for (kind, ids) in ids_by_kind(&uses) {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let places = store::resources::list_resource_folders(conn, call.account_id, kind, &ids).await?;
        let is_allowed =
            |place: &ResourceFolder| call.restrictions().allows(kind, place.id, place.folder_id).is_ok();
        // A deleted resource has no folder any more, so a restricted caller is refused.
        if places.len() != ids.len() || !places.iter().all(is_allowed) {
            let detail = "this automation uses resources that this API key is restricted from or that are deleted, and its runs hold their data";
            return Err(Problem::new(Code::InsufficientScope, detail));
        }
    }
    Ok(())
}

fn ids_by_kind(uses: &[ResourceUse]) -> BTreeMap<Resource, BTreeSet<Uuid>> {
    let mut ids = BTreeMap::<Resource, BTreeSet<Uuid>>::new();
    for one in uses {
        ids.entry(one.resource).or_default().extend(one.id);
    }
    ids
}

fn at_path(problem: Problem, of: &ResourceUse) -> Problem {
    let message = format!("{}: {}", of.path, problem.detail());
    let error = FieldError::new(&of.path, problem.code().as_str(), message);
    problem.with("fieldErrors", json!([error]))
}
