//! `for_each`: runs steps for each element of a list.

use std::sync::atomic::Ordering;

use futures::StreamExt;
use serde_json::{Value, json};

use super::attempts::ended;
use super::transform::type_of;
use super::walk::{Halt, StepError, Visit, Walk, contains_resumable};
use super::{Effects, Escape, LOOP_ITEMS_MAX, Language, OutputBudget, Scope, StepStatus};
use crate::definition::ForEachStep;

impl<E: Effects, L: Language> Walk<'_, E, L> {
    pub(super) async fn for_each(
        &self,
        visit: &Visit<'_>,
        each: &ForEachStep,
        scope: &mut Scope,
    ) -> Result<Value, StepError> {
        if let Some(ended) = self.journal.get(&visit.path).and_then(ended) {
            return ended;
        }
        let items = self.language.render(&each.items, Escape::None, scope, &mut OutputBudget::default());
        let items = match items.map_err(|error| format!("items: {error}"))? {
            Value::Array(items) => items,
            other => return Err(format!("items: expected a list, got {}", type_of(&other)).into()),
        };
        if items.len() > LOOP_ITEMS_MAX {
            return Err(format!("items: at most {LOOP_ITEMS_MAX} elements, got {}", items.len()).into());
        }
        let outputs = if each.steps.iter().any(contains_resumable) {
            // A run has one link at a time, so its elements wait one after the other.
            self.in_order(visit, each, items, scope).await?
        } else {
            self.concurrently(visit, each, items, scope).await?
        };
        let output = json!({"count": outputs.len(), "items": outputs});
        self.effects.record_later(visit.record(StepStatus::Success, Value::Null, output.clone()));
        Ok(output)
    }

    async fn in_order(
        &self,
        visit: &Visit<'_>,
        each: &ForEachStep,
        items: Vec<Value>,
        scope: &mut Scope,
    ) -> Result<Vec<Value>, Halt> {
        let mut outputs = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let mut inner = element(each, scope, index, item);
            self.steps(&each.steps, &prefix(visit, index), &mut inner).await?;
            outputs.push(last_output(each, &inner));
            // The wait of this element used up the link that the outer scope knows.
            self.renew_link(scope);
        }
        Ok(outputs)
    }

    /// Runs elements concurrently. If one ends the run, no other starts a further step, and those in a step finish it.
    async fn concurrently(
        &self,
        visit: &Visit<'_>,
        each: &ForEachStep,
        items: Vec<Value>,
        scope: &Scope,
    ) -> Result<Vec<Value>, Halt> {
        let walking = items.into_iter().enumerate().map(|(index, item)| async move {
            let mut inner = element(each, scope, index, item);
            let walked = self.steps(&each.steps, &prefix(visit, index), &mut inner).await;
            let walked = walked.map(|()| last_output(each, &inner));
            if !matches!(walked, Ok(_) | Err(Halt::Waiting { .. } | Halt::Sibling)) {
                self.is_halted.store(true, Ordering::Relaxed);
            }
            (index, walked)
        });
        let concurrency = usize::try_from(each.concurrency.clamp(1, 5)).unwrap_or(1);
        let walked: Vec<(usize, Result<Value, Halt>)> =
            futures::stream::iter(walking).buffer_unordered(concurrency).collect().await;
        let mut outputs = vec![Value::Null; walked.len()];
        let mut halt = None;
        for (index, walked) in walked {
            match walked {
                Ok(output) => outputs[index] = output,
                Err(other) => {
                    halt = Some(match halt {
                        None => other,
                        Some(halt) => first(halt, other),
                    });
                }
            }
        }
        halt.map_or(Ok(outputs), Err)
    }
}

fn element(each: &ForEachStep, scope: &Scope, index: usize, item: Value) -> Scope {
    scope.element([(each.variable.clone(), item), ("index".to_owned(), index.into())])
}

fn last_output(each: &ForEachStep, scope: &Scope) -> Value {
    each.steps.last().and_then(|step| scope.output(&step.options.id)).cloned().unwrap_or_default()
}

fn prefix(visit: &Visit<'_>, index: usize) -> String {
    format!("{}[{index}].", visit.path)
}

/// Returns which of two halts decides: a lost run, then its end, then the earliest wait.
fn first(left: Halt, right: Halt) -> Halt {
    let rank = |halt: &Halt| match halt {
        Halt::Lost => 0,
        Halt::Failed { .. } => 1,
        Halt::Stopped { .. } => 2,
        Halt::Waiting { .. } => 3,
        Halt::Sibling => 4,
    };
    match (left, right) {
        (Halt::Waiting { until: left, resume: number }, Halt::Waiting { until: right, resume: other }) => {
            Halt::Waiting { until: left.min(right), resume: number.or(other) }
        }
        (left, right) if rank(&left) <= rank(&right) => left,
        (_, right) => right,
    }
}
