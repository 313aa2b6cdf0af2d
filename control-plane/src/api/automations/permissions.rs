//! Checks that a caller may do what a definition does.

use std::collections::{BTreeMap, BTreeSet};

use automation::check::{ResourceUse, resources};
use automation::definition::AutomationDefinition;
use domain::FieldError;
use domain::restrictions::Restrictions;
use domain::scopes::{Action, Resource, Scope};
use serde_json::json;
use store::Conn;
use store::automations::{Authority, Automation, Run, find_definition, list_failed_versions};
use store::resources::ResourceFolder;
use uuid::Uuid;
use web::{Code, Problem};

use super::definition::CheckedDefinition;
use crate::call::Call;

/// What steps and triggers read.
const READ_BY_RUNS: [Resource; 2] = [Resource::Submissions, Resource::Entries];

/// Most other versions of a definition that a replay may hold data of: each is checked when it is read.
const SOURCES_MAX: usize = 8;

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

/// If a step finds a page by slug, refuses a caller who is more restricted than the key that last saved the automation:
/// which page it finds is known only at run time.
pub(super) fn check_slug_restrictions<S>(
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
    if reads_everything(&authority(call)) {
        return Ok(());
    }
    let hashes: BTreeSet<&[u8]> = runs.into_iter().flat_map(versions).collect();
    for hash in hashes {
        check_version_visible(call, conn, hash).await?;
    }
    Ok(())
}

/// Returns the versions of the definition that a run holds data of.
fn versions(run: &Run) -> impl Iterator<Item = &[u8]> {
    std::iter::once(&run.definition_hash).chain(&run.source_hashes).map(Vec::as_slice)
}

/// Removes the last error of each automation if the caller may not read its resources, now or in the run that failed: an
/// error may tell of their data.
pub(super) async fn hide_last_errors<S>(
    call: &Call<S>,
    conn: &mut Conn,
    automations: &mut [Automation],
) -> Result<(), Problem> {
    if reads_everything(&authority(call)) {
        return Ok(());
    }
    let with_error = automations.iter_mut().filter(|one| one.statistics.last_error.is_some());
    let with_error: Vec<&mut Automation> = with_error.collect();
    if with_error.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = with_error.iter().map(|one| one.id).collect();
    let failed = list_failed_versions(conn, call.account_id, &ids).await?;
    for automation in with_error {
        let versions = failed.get(&automation.id).map_or(&[][..], Vec::as_slice);
        let checking = async {
            check_visible(call, conn, &CheckedDefinition::stored(&automation.definition)?.definition).await?;
            for hash in versions {
                check_version_visible(call, conn, hash).await?;
            }
            Ok::<_, Problem>(())
        };
        let is_visible = match checking.await {
            Ok(()) => !versions.is_empty(),
            // A version that can't be read must not fail a whole list.
            Err(problem) if matches!(problem.code(), Code::InsufficientScope | Code::Internal) => false,
            Err(problem) => return Err(problem),
        };
        if !is_visible {
            automation.statistics.last_error = None;
        }
    }
    Ok(())
}

/// Checks what a replay by the current definition would get from an earlier run: its trigger, and if `keeps_outputs`
/// outputs of its steps. The steps after these run with the permissions of the last change, and may send them anywhere.
/// The caller itself was checked by [`check_runs_visible`]. Returns the versions other than the current one that they
/// come from.
pub(super) async fn check_replayed(
    conn: &mut Conn,
    account_id: Uuid,
    saved: &Authority,
    current_hash: &[u8],
    run: &Run,
    keeps_outputs: bool,
) -> Result<Vec<Vec<u8>>, Problem> {
    let others: BTreeSet<&[u8]> = versions(run).filter(|hash| *hash != current_hash).collect();
    if others.len() > SOURCES_MAX {
        let detail = format!("this run holds data of more than {SOURCES_MAX} versions of the definition");
        return Err(Problem::new(Code::Conflict, detail).hint("replay the run that it is a replay of"));
    }
    if !reads_everything(saved) {
        for hash in &others {
            let Some(json) = find_definition(conn, account_id, hash).await? else {
                return Err(not_kept("the definition of this run is gone, and ", keeps_outputs));
            };
            let mut uses = resources(&CheckedDefinition::stored(&json)?.definition);
            if !keeps_outputs {
                uses.retain(|one| one.path.starts_with("trigger."));
            }
            let reads = uses.iter().filter(|one| one.scope.action == Action::Read);
            if !reads.into_iter().all(|one| saved.scopes.allows(one.scope))
                || !are_allowed(conn, account_id, &saved.restrictions, &uses).await?
            {
                return Err(not_kept("", keeps_outputs));
            }
        }
    }
    Ok(others.into_iter().map(<[u8]>::to_vec).collect())
}

fn not_kept(reason: &str, keeps_outputs: bool) -> Problem {
    let (what, hint) = if keeps_outputs {
        ("outputs of its steps", "replay it without `fromStep`, or save the automation with a key that may")
    } else {
        ("trigger", "save the automation with a key that may")
    };
    let detail = format!(
        "{reason}the key that last saved this automation may not access what the {what} of this run came from"
    );
    Problem::new(Code::InsufficientScope, detail).hint(hint)
}

/// Returns whether runs with these permissions, or a caller who has them, may read whatever a run may read.
fn reads_everything(of: &Authority) -> bool {
    of.restrictions == Restrictions::default()
        && READ_BY_RUNS.iter().all(|part| of.scopes.allows(Scope::new(*part, Action::Read)))
}

async fn check_version_visible<S>(call: &Call<S>, conn: &mut Conn, hash: &[u8]) -> Result<(), Problem> {
    let Some(json) = find_definition(conn, call.account_id, hash).await? else {
        let detail = "the definition of this run is gone, so only a key with all permissions may see the run";
        return Err(Problem::new(Code::InsufficientScope, detail));
    };
    check_visible(call, conn, &CheckedDefinition::stored(&json)?.definition).await
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
    if !are_allowed(conn, call.account_id, call.restrictions(), &uses).await? {
        let detail = "this automation uses resources that this API key is restricted from or that are deleted, and its runs hold their data";
        return Err(Problem::new(Code::InsufficientScope, detail));
    }
    Ok(())
}

async fn are_allowed(
    conn: &mut Conn,
    account_id: Uuid,
    restrictions: &Restrictions,
    uses: &[ResourceUse],
) -> Result<bool, Problem> {
    if *restrictions == Restrictions::default() {
        return Ok(true);
    }
    for (kind, ids) in ids_by_kind(uses) {
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let places = store::resources::list_resource_folders(conn, account_id, kind, &ids).await?;
        let is_allowed =
            |place: &ResourceFolder| restrictions.allows(kind, place.id, place.folder_id).is_ok();
        // A deleted resource has no folder any more, so a restricted key is refused.
        if places.len() != ids.len() || !places.iter().all(is_allowed) {
            return Ok(false);
        }
    }
    Ok(true)
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
