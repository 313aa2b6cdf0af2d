//! Creates automations.

use axum::extract::State;
use domain::FieldError;
use domain::automations;
use domain::scopes::Resource;
use serde_json::{Map, Value, json};
use store::automations::{NewAutomation, SaveOutcome, insert_automation};
use store::usage::{self, Counter};
use web::{Code, Created, Json, Problem};

use super::definition::{CheckedDefinition, check_env, names};
use super::permissions::{authority, check_resources};
use super::requests::CreateAutomationRequest;
use super::schedules::timezone;
use super::views::{AutomationView, find, view};
use crate::App;
use crate::automations::seal_env;
use crate::call::{Call, scope};
use crate::next_steps::After;

pub(super) async fn create(
    call: Call<scope::AutomationsCreate>,
    State(app): State<App>,
    Json(request): Json<CreateAutomationRequest>,
) -> Result<Created<AutomationView>, Problem> {
    let env = request.env.unwrap_or_default();
    let mut members = Map::new();
    members.insert("trigger".to_owned(), request.trigger);
    members.insert("steps".to_owned(), request.steps);
    members.extend(request.concurrency.map(|concurrency| ("concurrency".to_owned(), concurrency)));
    let mut errors =
        automations::check(Some(&request.name), Some(&request.slug), request.description.as_deref());
    errors.extend(check_env(&env));
    let checked = all_or_errors(CheckedDefinition::read(members, &call.limits(), &names(&env)), errors)?;
    let is_enabled = request.enabled.unwrap_or(true);
    let id = app.rng.uuid_v7(call.now);
    let limit = call.limits().projects;

    let mut tx = store::begin(&app.db).await?;
    let folder_id = call.new_resource_folder(&mut tx, Resource::Automations, request.folder_id).await?;
    check_resources(&call, &mut tx, &checked.definition).await?;
    if !usage::reserve(&mut tx, call.account_id, Counter::Projects, limit).await? {
        return Err(call.count_exceeded(&mut tx, Counter::Projects).await);
    }
    let zone = timezone(&call, &mut tx).await?;
    let next_fire_at = checked.next_fire_at(&zone, call.now).filter(|_| is_enabled);
    let sealed_env = seal_env(&app.master_key, app.rng.bytes(), &env);
    let new = NewAutomation {
        id,
        folder_id,
        slug: &request.slug,
        name: request.name.trim(),
        description: request.description.as_deref(),
        is_enabled,
        definition: &checked.json,
        definition_hash: &checked.hash,
        env_names: &env.into_keys().collect::<Vec<_>>(),
        sealed_env: sealed_env.as_deref(),
        authority: &authority(&call),
        trigger_type: checked.definition.trigger.kind().as_str(),
        trigger_form_id: checked.form_id(),
        next_fire_at,
        created_at: call.now,
    };
    if insert_automation(&mut tx, call.account_id, &new).await? == SaveOutcome::SlugTaken {
        return Err(slug_taken(&request.slug));
    }
    let automation = find(&call, &mut tx, id).await?;
    call.set_changed(Resource::Automations, id, &automation.name);
    call.commit(&app, tx, vec![]).await?;

    let next = call.suggestions(&app, After::Automation { id, is_enabled }).await;
    Ok(call.created(view(&app, automation, None)).with_next(next))
}

/// Returns the value, or all errors of both.
pub(super) fn all_or_errors<T>(
    read: Result<T, Vec<FieldError>>,
    mut errors: Vec<FieldError>,
) -> Result<T, Problem> {
    match read {
        Ok(value) if errors.is_empty() => Ok(value),
        Ok(_) => Err(Problem::validation(errors)),
        Err(more) => {
            errors.extend(more);
            Err(Problem::validation(errors))
        }
    }
}

/// The problem of a slug that another automation has.
pub(super) fn slug_taken(slug: &str) -> Problem {
    let message = format!("the account already has an automation with the slug `{slug}`");
    let error = FieldError::new("slug", "slug_taken", message.clone());
    Problem::new(Code::SlugTaken, message).with("fieldErrors", Value::Array(vec![json!(error)]))
}
