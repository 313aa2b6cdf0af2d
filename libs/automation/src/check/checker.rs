//! The state of a check, and the rules of what is not a step.

use std::collections::{BTreeMap, BTreeSet};

use domain::plans::{Limits, UNLIMITED};
use domain::{FIELD_ERRORS_MAX, FieldError};

use crate::definition::{
    Action, AutomationDefinition, Step, StepType, TEMPLATE_BYTES_MAX, Trigger, did_you_mean,
};
use crate::schedule::{Schedule, parse_zone};
use crate::templates::Template;

/// Maximum number of branches and loops around a step.
pub const NESTING_MAX: usize = 4;

/// Whether a step is inside a loop. Errors about references depend on it.
pub(super) struct Place {
    pub(super) is_in_loop: bool,
}

pub(super) struct Checker<'a> {
    pub(super) errors: Vec<FieldError>,
    pub(super) definition: &'a AutomationDefinition,
    pub(super) env: &'a BTreeSet<String>,
    pub(super) places: BTreeMap<&'a str, Place>,
    /// Position of the last step that waits for a confirmation.
    pub(super) last_resumable_wait: Option<usize>,
}

pub(super) fn places<'a>(all: &[(String, &'a Step)]) -> BTreeMap<&'a str, Place> {
    let loops: Vec<String> = all
        .iter()
        .filter(|(_, step)| matches!(step.action, Action::ForEach(_)))
        .map(|(path, _)| format!("{path}.steps["))
        .collect();
    let place =
        |path: &str| Place { is_in_loop: loops.iter().any(|within| path.starts_with(within.as_str())) };
    all.iter().map(|(path, step)| (step.options.id.as_str(), place(path))).collect()
}

/// Returns the position of the last resumable wait.
pub(super) fn last_resumable_wait(all: &[(String, &Step)]) -> Option<usize> {
    all.iter().rposition(|(_, step)| matches!(&step.action, Action::Wait(wait) if wait.resume))
}

/// Returns whether a text is a name that expressions can read.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|char| char.is_ascii_alphanumeric() || char == '_')
        && name.len() <= 64
}

impl Checker<'_> {
    pub(super) fn push(&mut self, field: &str, code: &'static str, message: String) {
        if !self.is_full() {
            // Names of members are the author's, and may be as long as the definition.
            let cut = |text: &str| text.chars().take(1_000).collect::<String>();
            self.errors.push(FieldError::new(cut(field), code, cut(&message)));
        }
    }

    /// Returns whether there are as many errors as are shown. The rest need not be found.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= FIELD_ERRORS_MAX
    }

    pub(super) fn limits(&mut self, limits: &Limits, all: &[(String, &Step)]) {
        let fetches = all.iter().filter(|(_, step)| step.action.kind() == StepType::Fetch).count();
        let counts = [
            ("steps", "steps", all.len(), limits.automation_max_steps),
            ("steps", "fetch steps", fetches, limits.automation_max_fetch_steps),
            ("env", "variables", self.env.len(), limits.automation_max_env_vars),
        ];
        for (field, noun, count, max) in counts {
            if max != UNLIMITED && i64::try_from(count).unwrap_or(i64::MAX) > max {
                let message =
                    format!("your plan allows {max} {noun}, this has {count}, nested ones included");
                self.push(field, "plan_limit", message);
            }
        }
    }

    pub(super) fn env(&mut self) {
        for name in self.env.iter().filter(|name| !is_identifier(name)) {
            let shown: String = name.chars().take(64).collect();
            let message =
                format!("env.{shown}: a name has letters, digits and _, and does not begin with a digit");
            self.push(&format!("env.{shown}"), "identifier", message);
        }
    }

    pub(super) fn ids(&mut self, all: &[(String, &Step)]) {
        let mut earlier = BTreeMap::new();
        for (path, step) in all {
            let (id, field) = (step.options.id.as_str(), format!("{path}.id"));
            if !is_identifier(id) {
                let message = format!(
                    "{field}: an id has at most 64 letters, digits and _, and does not begin with a digit"
                );
                self.push(&field, "identifier", message);
            } else if let Some(first) = earlier.insert(id, path) {
                self.push(&field, "duplicate", format!("{field}: {first} has the id {id} already"));
            }
        }
    }

    pub(super) fn has_env(&mut self, field: &str, name: &str) {
        if !self.env.contains(name) {
            let hint = did_you_mean(name, self.env.iter().map(String::as_str));
            let hint = if self.env.is_empty() { "; env is empty".to_owned() } else { hint };
            self.push(field, "unknown_env", format!("{field}: env has no variable {name}{hint}"));
        }
    }

    pub(super) fn trigger(&mut self) {
        match &self.definition.trigger {
            Trigger::FormSubmission(_) => {}
            Trigger::Http(http) => {
                if let Some(auth) = &http.auth {
                    self.has_env("trigger.auth.env", &auth.env);
                }
            }
            Trigger::Schedule(schedule) => {
                let zone = match schedule.timezone.as_deref().map_or(Ok(chrono_tz::Tz::UTC), parse_zone) {
                    Ok(zone) => zone,
                    Err(error) => {
                        self.push(
                            "trigger.timezone",
                            "unknown_timezone",
                            format!("trigger.timezone: {error}"),
                        );
                        return;
                    }
                };
                if let Err(error) = Schedule::parse(&schedule.cron, zone) {
                    self.push("trigger.cron", "cron", format!("trigger.cron: {error}"));
                }
            }
        }
    }

    pub(super) fn concurrency(&mut self) {
        let Some(concurrency) = &self.definition.concurrency else { return };
        if !(1..=100).contains(&concurrency.limit) {
            self.push("concurrency.limit", "range", "concurrency.limit is between 1 and 100".to_owned());
        }
        let Some(key) = &concurrency.key else { return };
        let field = "concurrency.key";
        if key.len() > TEMPLATE_BYTES_MAX {
            self.push(field, "too_long", format!("{field} may have at most {TEMPLATE_BYTES_MAX} bytes"));
        }
        match Template::parse(key) {
            Err(error) => self.push(field, "template", format!("{field}: {error}")),
            Ok(template) => {
                if template.references().iter().any(|path| path.first().is_none_or(|root| root != "trigger"))
                {
                    self.push(field, "reference", format!("{field} may read only trigger"));
                }
            }
        }
    }
}
