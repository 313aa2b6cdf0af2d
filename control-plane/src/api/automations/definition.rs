//! Reads and checks what a request says about a definition and its variables.

use std::collections::{BTreeMap, BTreeSet};

use automation::check::check;
use automation::definition::{AutomationDefinition, Trigger};
use automation::schedule::{Schedule, parse_zone};
use chrono::{DateTime, Utc};
use domain::plans::Limits;
use domain::{FieldError, units};
use serde_json::{Map, Value, json};
use uuid::Uuid;
use web::{Code, Problem};

use super::requests::{ENV_NAMES_MAX, ENV_VALUE_BYTES_MAX};
use crate::automations::Env;

/// Maximum size of all variables together, whatever the plan: every claim of a run reads them.
const ENV_BYTES_MAX: usize = 256 << 10;

/// A checked definition in its stored form.
pub(super) struct CheckedDefinition {
    pub(super) definition: AutomationDefinition,
    /// Canonical JSON.
    pub(super) json: String,
    pub(super) hash: [u8; 32],
}

impl CheckedDefinition {
    /// Reads the members of a definition, and checks them against a plan and the names of the variables.
    ///
    /// # Errors
    /// Everything that is wrong, with paths.
    pub(super) fn read(
        members: Map<String, Value>,
        limits: &Limits,
        env: &BTreeSet<String>,
    ) -> Result<Self, Vec<FieldError>> {
        let definition = AutomationDefinition::read(&Value::Object(members))?;
        let errors = check(&definition, limits, env);
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self::new(definition))
    }

    /// Reads a stored definition, which was checked when it was saved: since then the plan may have changed.
    pub(super) fn stored(json: &str) -> Result<Self, Problem> {
        let unreadable = || {
            tracing::error!("the stored definition of an automation is unreadable");
            Problem::new(Code::Internal, "this automation can't be read; save its trigger and steps again")
        };
        let value: Value = serde_json::from_str(json).map_err(|_| unreadable())?;
        AutomationDefinition::read(&value).map(Self::new).map_err(|_| unreadable())
    }

    fn new(definition: AutomationDefinition) -> Self {
        Self { json: definition.canonical_json(), hash: definition.hash(), definition }
    }

    /// Returns the form of a trigger by submissions.
    pub(super) fn form_id(&self) -> Option<Uuid> {
        match &self.definition.trigger {
            Trigger::FormSubmission(trigger) => Some(trigger.form_id),
            _ => None,
        }
    }

    /// Returns when a schedule fires next, in its own time zone or that of the account.
    pub(super) fn next_fire_at(&self, account_zone: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let Trigger::Schedule(trigger) = &self.definition.trigger else { return None };
        let zone = parse_zone(trigger.timezone.as_deref().unwrap_or(account_zone)).ok()?;
        Schedule::parse(&trigger.cron, zone).ok()?.next_after(now)
    }
}

/// Errors that depend on the parts of a definition that a change leaves out.
const OF_OTHER_PARTS: [&str; 4] = ["plan_limit", "unknown_env", "unknown_step", "trigger"];

/// Returns what is wrong with a change of some members, whatever the others are.
pub(super) fn check_change(changes: &Map<String, Value>, limits: &Limits) -> Vec<FieldError> {
    if changes.is_empty() {
        return Vec::new();
    }
    let mut members = Map::new();
    members.insert("trigger".to_owned(), json!({"type": "http"}));
    members.insert("steps".to_owned(), json!([{"id": "stop", "type": "stop", "status": "success"}]));
    members.extend(changes.clone());
    let checked = CheckedDefinition::read(members, limits, &BTreeSet::new());
    let mut errors = checked.err().unwrap_or_default();
    errors.retain(|error| !OF_OTHER_PARTS.contains(&error.code));
    // Such a name no variables could have.
    let name =
        changes.get("trigger").and_then(|trigger| trigger.pointer("/auth/env")).and_then(Value::as_str);
    if let Some(name) = name.filter(|name| !is_identifier(name)) {
        let shown: String = name.chars().take(64).collect();
        let message = format!("trigger.auth.env: `{shown}` is not the name of a variable");
        errors.push(FieldError::new("trigger.auth.env", "identifier", message));
    }
    errors
}

/// Returns whether variables may have a name.
fn is_identifier(name: &str) -> bool {
    let is_letter = |char: char| char.is_ascii_alphabetic() || char == '_';
    name.starts_with(is_letter)
        && name.len() <= 64
        && name.chars().all(|char| is_letter(char) || char.is_ascii_digit())
}

/// Returns what is wrong with the values of variables. [`CheckedDefinition::read`] checks their names.
pub(super) fn check_env(env: &Env) -> Vec<FieldError> {
    if env.len() > ENV_NAMES_MAX {
        let message = format!("env may have at most {ENV_NAMES_MAX} variables, this has {}", env.len());
        return vec![FieldError::new("env", "too_many", message)];
    }
    let mut errors = Vec::new();
    for (name, value) in env {
        let name: String = name.chars().take(64).collect();
        if value.len() > ENV_VALUE_BYTES_MAX {
            let [max, size] = units::sizes(ENV_VALUE_BYTES_MAX as u64, value.len() as u64);
            let message = format!("env.{name} may have at most {max}, this has {size}");
            errors.push(FieldError::new(format!("env.{name}"), "too_long", message));
        }
    }
    let bytes: usize = env.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > ENV_BYTES_MAX {
        let [max, size] = units::sizes(ENV_BYTES_MAX as u64, bytes as u64);
        let message = format!("env may have at most {max} in all, this has {size}");
        errors.push(FieldError::new("env", "too_large", message));
    }
    errors
}

/// Returns the variables after an update: null keeps a stored value.
pub(super) fn merged_env(
    change: &BTreeMap<String, Option<String>>,
    mut stored: Env,
) -> Result<Env, Vec<FieldError>> {
    let (mut env, mut errors) = (Env::new(), Vec::new());
    for (name, value) in change {
        match value.clone().or_else(|| stored.remove(name)) {
            Some(value) => drop(env.insert(name.clone(), value)),
            None => {
                let field = format!("env.{}", name.chars().take(64).collect::<String>());
                let message = format!("{field} is null, which keeps a stored value, but there is none");
                errors.push(FieldError::new(field, "unknown_env", message));
            }
        }
    }
    errors.truncate(domain::FIELD_ERRORS_MAX);
    if errors.is_empty() { Ok(env) } else { Err(errors) }
}

/// Returns the names of variables.
pub(super) fn names(env: &Env) -> BTreeSet<String> {
    env.keys().cloned().collect()
}
