//! Checks a whole definition before it is saved. Every error has the path of what is wrong.

mod checker;
mod headers;
mod references;
mod resources;
mod steps;
mod templated_fields;

use std::collections::{BTreeMap, BTreeSet};

use domain::plans::Limits;
use domain::{FIELD_ERRORS_MAX, FieldError};

use crate::definition::{AutomationDefinition, DEFINITION_BYTES_MAX};
use checker::{Checker, last_resumable_wait, places};
use references::Visible;

pub use checker::NESTING_MAX;
pub use headers::{is_fetch_header, is_respond_header};
pub use resources::{ResourceUse, of_step as step_resources, resources};

/// Maximum number of steps, whatever the plan.
pub const STEPS_MAX: usize = 500;

/// Checks a definition against the language and the limits of a plan. `env` holds the names of its variables.
pub fn check(definition: &AutomationDefinition, limits: &Limits, env: &BTreeSet<String>) -> Vec<FieldError> {
    let all = definition.all_steps();
    let mut checker = Checker {
        errors: Vec::new(),
        definition,
        env,
        places: BTreeMap::new(),
        last_resumable_wait: last_resumable_wait(&all),
    };
    if definition.canonical_json().len() > DEFINITION_BYTES_MAX {
        checker.push("steps", "too_large", "a definition may have at most 1 MB as JSON".to_owned());
        return checker.errors;
    }
    if all.is_empty() {
        checker.push("steps", "required", "an automation needs at least one step".to_owned());
    }
    if all.len() > STEPS_MAX {
        let message = format!("an automation may have at most {STEPS_MAX} steps, this has {}", all.len());
        checker.push("steps", "too_many", message);
        return checker.errors;
    }
    checker.places = places(&all);
    checker.limits(limits, &all);
    checker.env();
    checker.ids(&all);
    checker.trigger();
    checker.concurrency();
    checker.list("steps", &definition.steps, &mut Visible::default());
    checker.errors.truncate(FIELD_ERRORS_MAX);
    checker.errors
}

#[cfg(test)]
mod tests;
