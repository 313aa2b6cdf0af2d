//! Updates automations.
//!
//! A change of the definition or the variables is checked against the caller's scopes and restrictions. Later runs have
//! these permissions.

use axum::extract::State;
use domain::automations;
use domain::plans::Limits;
use domain::scopes::Resource;
use serde_json::{Map, Value};
use store::automations::{Automation, AutomationChange, SaveOutcome, lock_automation, update_automation};
use uuid::Uuid;
use web::{Code, Json, Path, Problem, Reply};

use super::create::{all_or_errors, slug_taken};
use super::definition::{CheckedDefinition, check_change, check_env, merged_env, names};
use super::permissions::{authority, check_kept_env, check_resources, check_slug_restrictions};
use super::requests::UpdateAutomationRequest;
use super::schedules::timezone;
use super::views::{AutomationView, find, find_readable, view};
use crate::App;
use crate::automations::{Env, open_env, seal_env};
use crate::call::{Call, scope};

pub(super) async fn update(
    call: Call<scope::AutomationsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(request): Json<UpdateAutomationRequest>,
) -> Result<Reply<AutomationView>, Problem> {
    check(&request, &call.limits())?;
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Automations, id).await?;
    if let Some(folder_id) = request.folder_id {
        call.check_move(&mut tx, folder_id).await?;
    }
    let zone = timezone(&call, &mut tx).await?;
    if !lock_automation(&mut tx, call.account_id, id, request.enabled).await? {
        return Err(Problem::not_found("automation"));
    }
    let current = find(&call, &mut tx, id).await?;
    let env = match &request.env {
        None => None,
        Some(change) => {
            // Values that are all given anew replace stored ones that can't be decrypted.
            let is_merged = change.values().any(Option::is_none);
            let stored = if is_merged { stored_env(&app, &current)? } else { Env::new() };
            Some(merged_env(change, stored).map_err(Problem::validation)?)
        }
    };
    let changes = request.definition();
    let keeps_values = request.env.as_ref().is_none_or(|change| change.values().any(Option::is_none));
    let has_changed = env.is_some() || !changes.is_empty();
    let definition = if has_changed {
        let definition = changed_definition(&call.limits(), &current, changes, env.as_ref())?;
        check_resources(&call, &mut tx, &definition.definition).await?;
        if keeps_values && !current.env_names.is_empty() {
            check_kept_env(&call, &current.authority)?;
        }
        definition
    } else {
        let definition = CheckedDefinition::stored(&current.definition)?;
        // Its runs begin again with the permissions of the last change, as those of a test.
        if request.enabled == Some(true) && !current.is_enabled {
            check_resources(&call, &mut tx, &definition.definition).await?;
            check_slug_restrictions(&call, &current.authority, &definition.definition)?;
        }
        definition
    };

    let is_enabled = request.enabled.unwrap_or(current.is_enabled);
    // A schedule that goes on unchanged keeps its next time, which may be due just now.
    let is_rescheduled =
        is_enabled != current.is_enabled || trigger_in(&current.definition) != trigger_in(&definition.json);
    let next_fire_at = definition.next_fire_at(&zone, call.now).filter(|_| is_enabled);
    let env_names: Option<Vec<String>> = env.as_ref().map(|env| env.keys().cloned().collect());
    let sealed_env = env.as_ref().and_then(|env| seal_env(&app.master_key, app.rng.bytes(), env));
    let authority = authority(&call);
    let change = AutomationChange {
        slug: request.slug.as_deref(),
        name: request.name.as_deref().map(str::trim),
        description: request.description.as_ref().map(Option::as_deref),
        folder_id: request.folder_id,
        is_enabled: request.enabled,
        definition: has_changed.then_some((&definition.hash[..], definition.json.as_str())),
        env: env_names.as_deref().map(|names| (names, sealed_env.as_deref())),
        authority: has_changed.then_some(&authority),
        trigger: has_changed.then(|| (definition.definition.trigger.kind().as_str(), definition.form_id())),
        next_fire_at: is_rescheduled.then_some(next_fire_at),
    };
    match update_automation(&mut tx, call.account_id, id, &change, call.now).await? {
        SaveOutcome::Stored => {}
        SaveOutcome::SlugTaken => return Err(slug_taken(request.slug.as_deref().unwrap_or_default())),
        SaveOutcome::Missing => return Err(Problem::not_found("automation")),
    }
    let automation = find_readable(&call, &mut tx, id).await?;
    call.commit(&app, tx, vec![]).await?;
    app.http_targets.invalidate(id);
    Ok(call.reply(view(&app, automation, None)))
}

fn stored_env(app: &App, automation: &Automation) -> Result<Env, Problem> {
    open_env(&app.master_key, automation.sealed_env.as_deref()).map_err(|error| {
        tracing::error!(%error, automation.id = %automation.id, "stored variables are unreadable");
        let detail = "the stored variables can't be decrypted, so their values can't be kept";
        Problem::new(Code::Conflict, detail).hint("give the value of each variable in `env`")
    })
}

/// Checks what is wrong with a request whatever the automation is.
fn check(request: &UpdateAutomationRequest, limits: &Limits) -> Result<(), Problem> {
    let description = request.description.as_ref().and_then(Option::as_deref);
    let mut errors = automations::check(request.name.as_deref(), request.slug.as_deref(), description);
    errors.extend(check_change(&request.definition(), limits));
    if errors.is_empty() { Ok(()) } else { Err(Problem::validation(errors)) }
}

/// Returns the definition after the update, checked.
fn changed_definition(
    limits: &Limits,
    current: &Automation,
    changes: Map<String, Value>,
    env: Option<&Env>,
) -> Result<CheckedDefinition, Problem> {
    let mut members: Map<String, Value> = serde_json::from_str(&current.definition).unwrap_or_default();
    members.extend(changes);
    let names = env.map_or_else(|| current.env_names.iter().cloned().collect(), names);
    let errors = env.map(check_env).unwrap_or_default();
    all_or_errors(CheckedDefinition::read(members, limits, &names), errors)
}

fn trigger_in(definition: &str) -> Option<Value> {
    serde_json::from_str::<Map<String, Value>>(definition).ok()?.remove("trigger")
}

impl UpdateAutomationRequest {
    /// The members of the definition that change.
    fn definition(&self) -> Map<String, Value> {
        let members =
            [("trigger", &self.trigger), ("steps", &self.steps), ("concurrency", &self.concurrency)];
        let given = members.into_iter().filter_map(|(name, member)| Some((name.to_owned(), member.clone()?)));
        given.collect()
    }
}
