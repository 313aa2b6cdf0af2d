//! Steps that only compute: they are computed again in every walk, and recorded for the log.

use serde_json::{Value, json};

use super::walk::{Halt, StepError, Visit, Walk};
use super::{Effects, Escape, Language, OutputBudget, Scope, StepStatus};
use crate::definition::{ConditionStep, SetStep, StopStatus, StopStep};
use crate::expressions::is_true;
use crate::expressions::values::text_of;

impl<E: Effects, L: Language> Walk<'_, E, L> {
    pub(super) fn set(&self, visit: &Visit<'_>, set: &SetStep, scope: &Scope) -> Result<Value, StepError> {
        let mut values = serde_json::Map::with_capacity(set.values.len());
        let mut budget = OutputBudget::default();
        for (name, template) in &set.values {
            let value = self.language.render(template, Escape::None, scope, &mut budget);
            values.insert(name.clone(), value.map_err(|error| format!("values.{name}: {error}"))?);
        }
        let output = Value::Object(values);
        self.record_computed(visit, || visit.record(StepStatus::Success, Value::Null, output.clone()));
        Ok(output)
    }

    /// Runs the first branch that applies. The journal keeps the choice, so that a run that waited stays in its branch.
    pub(super) async fn condition(
        &self,
        visit: &Visit<'_>,
        condition: &ConditionStep,
        scope: &mut Scope,
    ) -> Result<Value, StepError> {
        let recorded =
            self.journal.get(&visit.path).filter(|recorded| recorded.status == StepStatus::Success);
        let output = match recorded {
            Some(recorded) => recorded.output.clone(),
            None => {
                let output = json!({"branch": self.choose(condition, scope)?});
                self.effects.record_later(visit.record(StepStatus::Success, Value::Null, output.clone()));
                output
            }
        };
        let branch = output.get("branch").and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
        let steps = match branch {
            Some(at) => condition.branches.get(at).map_or(&[][..], |branch| &branch.steps),
            None => &condition.otherwise,
        };
        let prefix = visit.prefix();
        self.steps(steps, prefix, scope).await?;
        Ok(output)
    }

    fn choose(&self, condition: &ConditionStep, scope: &Scope) -> Result<Option<usize>, String> {
        for (at, branch) in condition.branches.iter().enumerate() {
            let value = self.language.evaluate(&branch.condition, scope);
            if is_true(&value.map_err(|error| format!("branches[{at}].if: {error}"))?) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    pub(super) fn stop(&self, visit: &Visit<'_>, stop: &StopStep, scope: &Scope) -> StepError {
        let message = stop.message.as_ref().map(|template| {
            self.language
                .render(&Value::String(template.clone()), Escape::None, scope, &mut OutputBudget::default())
                .map(|text| text_of(&text))
        });
        let message = match message.transpose() {
            Ok(message) => message,
            Err(error) => return format!("message: {error}").into(),
        };
        let status = match stop.status {
            StopStatus::Success => "success",
            StopStatus::Error => "error",
        };
        let output = json!({"status": status, "message": message});
        self.record_computed(visit, || visit.record(StepStatus::Success, Value::Null, output));
        Halt::Stopped { path: visit.path.clone(), status: stop.status, message }.into()
    }
}

impl Visit<'_> {
    /// Returns what stands before the step's id in its path; steps of its branches have the same prefix.
    pub(super) fn prefix(&self) -> &str {
        self.path.strip_suffix(self.step.options.id.as_str()).unwrap_or_default()
    }
}
