//! The walk over the steps of a definition.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use chrono::{DateTime, Utc};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::work_limit::WorkLimit;
use super::{
    Effects, Journal, Language, Outcome, RUN_BYTES_MAX, RUN_STEPS_MAX, RunFacts, Scope, StepRecord,
    StepStatus,
};
use crate::definition::{Action, AutomationDefinition, OnError, Step, StepType, StopStatus};
use crate::expressions::values::is_deeper;
use crate::expressions::{VALUE_DEPTH_MAX, is_true};

/// Walks a run from its first step, as far as it goes now.
pub async fn run<E: Effects, L: Language>(
    definition: &AutomationDefinition,
    facts: &RunFacts,
    journal: &Journal,
    language: &L,
    effects: &E,
) -> Outcome {
    let is_resumable = definition.steps.iter().any(contains_resumable);
    let language = WorkLimit::new(language);
    let walk = Walk {
        journal,
        language: &language,
        effects,
        is_test: facts.is_test,
        resumed: facts.resumed.as_ref(),
        is_resumable,
        next_position: AtomicU32::new(0),
        fetches: AtomicU32::new(journal.requests(definition)),
        bytes: AtomicUsize::new(0),
        waits: AtomicU32::new(0),
        is_halted: AtomicBool::new(false),
    };
    let mut scope = Scope::new(facts, is_resumable.then(|| effects.resume_url(0)));
    match walk.steps(&definition.steps, "", &mut scope).await {
        Ok(()) => Outcome::Success { message: None },
        Err(Halt::Stopped { status: StopStatus::Success, message, .. }) => Outcome::Success { message },
        Err(Halt::Stopped { status: StopStatus::Error, message, path }) => {
            let message = message.unwrap_or_else(|| "the automation stopped with an error".to_owned());
            Outcome::Error { path, message }
        }
        Err(Halt::Failed { path, message }) => Outcome::Error { path, message },
        Err(Halt::Waiting { until, resume }) => Outcome::Waiting { until, resume },
        Err(Halt::Lost | Halt::Sibling) => Outcome::Lost,
    }
}

/// Returns whether a step is a wait that a link ends.
fn is_resumable(step: &Step) -> bool {
    matches!(&step.action, Action::Wait(wait) if wait.resume)
}

/// Returns whether a step is a resumable wait, or contains one.
pub(super) fn contains_resumable(step: &Step) -> bool {
    is_resumable(step) || step.nested().iter().any(|(_, steps)| steps.iter().any(contains_resumable))
}

/// Why a walk goes no further.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Halt {
    /// The run is no longer this worker's.
    Lost,
    /// A `stop` step.
    Stopped { path: String, status: StopStatus, message: Option<String> },
    /// A step with `onError: fail` failed.
    Failed { path: String, message: String },
    /// A step waits.
    Waiting { until: DateTime<Utc>, resume: Option<u32> },
    /// Another element of the same loop ended the run.
    Sibling,
}

/// Why a step has no output.
#[derive(Debug)]
pub(super) enum StepError {
    /// It failed; `output` is what is known of it.
    Failed { message: String, output: Option<Value>, is_recorded: bool },
    /// The walk ends here.
    Halt(Halt),
}

impl From<String> for StepError {
    fn from(message: String) -> Self {
        Self::Failed { message, output: None, is_recorded: false }
    }
}

impl From<Halt> for StepError {
    fn from(halt: Halt) -> Self {
        Self::Halt(halt)
    }
}

/// One walk. Its counters cover all elements of concurrent loops.
pub(super) struct Walk<'a, E, L> {
    pub(super) journal: &'a Journal,
    pub(super) language: &'a L,
    pub(super) effects: &'a E,
    pub(super) is_test: bool,
    pub(super) resumed: Option<&'a (u32, Value)>,
    pub(super) is_resumable: bool,
    pub(super) next_position: AtomicU32,
    /// Requests that the run has sent, in earlier walks too.
    pub(super) fetches: AtomicU32,
    pub(super) bytes: AtomicUsize,
    /// Number of resumable waits that are over.
    pub(super) waits: AtomicU32,
    /// Set when an element of a loop ends the run: the others start no further step.
    pub(super) is_halted: AtomicBool,
}

/// A step at its place in the run.
pub(super) struct Visit<'a> {
    pub(super) step: &'a Step,
    pub(super) path: String,
    pub(super) position: u32,
    pub(super) started_at: DateTime<Utc>,
    /// Number of attempts; of a `fetch` step that sends nothing 0.
    pub(super) attempts: AtomicU32,
}

impl Visit<'_> {
    pub(super) fn record(&self, status: StepStatus, input: Value, output: Value) -> StepRecord {
        StepRecord {
            path: self.path.clone(),
            position: self.position,
            step_id: self.step.options.id.clone(),
            kind: self.step.action.kind(),
            status,
            input,
            output,
            error: None,
            started_at: self.started_at,
            attempts: self.attempts.load(Ordering::Relaxed),
        }
    }
}

impl<E: Effects, L: Language> Walk<'_, E, L> {
    /// Runs steps in order. Their outputs are in the scope.
    pub(super) fn steps<'w>(
        &'w self,
        steps: &'w [Step],
        prefix: &'w str,
        scope: &'w mut Scope,
    ) -> BoxFuture<'w, Result<(), Halt>> {
        async move {
            for step in steps {
                if self.is_halted.load(Ordering::Relaxed) {
                    return Err(Halt::Sibling);
                }
                let path = format!("{prefix}{}", step.options.id);
                let position = self.next_position.fetch_add(1, Ordering::Relaxed);
                let attempts = AtomicU32::new(u32::from(step.action.kind() != StepType::Fetch));
                let visit = Visit { step, path, position, started_at: self.effects.now(), attempts };
                let output = self.visit(&visit, scope).await?;
                scope.insert_output(&step.options.id, output);
            }
            Ok(())
        }
        .boxed()
    }

    /// Runs one step. Returns its output, which has a member `error` if the step failed with `onError: continue`.
    async fn visit(&self, visit: &Visit<'_>, scope: &mut Scope) -> Result<Value, Halt> {
        let (message, output, is_recorded) = match self.attempt(visit, scope).await {
            Ok(output) => match self.hold(visit, &output) {
                Ok(()) => return Ok(output),
                Err(message) => (message, None, false),
            },
            Err(StepError::Halt(halt)) => return Err(halt),
            Err(StepError::Failed { message, output, is_recorded }) => (message, output, is_recorded),
        };
        let output = failed_output(output, &message);
        if !is_recorded && !self.has_ended(visit) {
            let mut record = visit.record(StepStatus::Error, Value::Null, output.clone());
            record.error = Some(message.clone());
            self.effects.record_later(record);
        }
        match visit.step.options.on_error {
            OnError::Continue => Ok(output),
            OnError::Fail => Err(Halt::Failed { path: visit.path.clone(), message }),
        }
    }

    /// Runs the step unless its `if` is not true.
    async fn attempt(&self, visit: &Visit<'_>, scope: &mut Scope) -> Result<Value, StepError> {
        if visit.position >= RUN_STEPS_MAX {
            return Err(
                format!("a run has at most {RUN_STEPS_MAX} steps, each pass of a loop counted").into()
            );
        }
        if let Some(condition) = &visit.step.options.condition {
            let value = self.language.evaluate(condition, scope).map_err(|error| format!("if: {error}"))?;
            if !is_true(&value) {
                self.record_computed(visit, || visit.record(StepStatus::Skipped, Value::Null, Value::Null));
                return Ok(Value::Null);
            }
        }
        if self.is_test
            && let Some(output) = &visit.step.options.test_output
        {
            self.record_computed(visit, || visit.record(StepStatus::Success, Value::Null, output.clone()));
            return Ok(output.clone());
        }
        match &visit.step.action {
            Action::Set(set) => self.set(visit, set, scope),
            Action::Transform(transform) => self.transform(visit, transform, scope),
            Action::Stop(stop) => Err(self.stop(visit, stop, scope)),
            Action::Condition(condition) => self.condition(visit, condition, scope).await,
            Action::ForEach(each) => self.for_each(visit, each, scope).await,
            Action::Wait(wait) => self.wait(visit, wait, scope).await,
            effect => self.perform(visit, effect, scope).await,
        }
    }

    /// Counts an output that the run holds from now on.
    fn hold(&self, visit: &Visit<'_>, output: &Value) -> Result<(), String> {
        let bytes = domain::json_bytes(output);
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > RUN_BYTES_MAX {
            return Err(format!("with the output of `{}`, the run would hold more than 8 MB", visit.path));
        }
        // Steps could nest the output of the one before without end, and the stack would not suffice to write it.
        if is_deeper(output, VALUE_DEPTH_MAX) {
            return Err(format!("the output is nested deeper than {VALUE_DEPTH_MAX} levels"));
        }
        Ok(())
    }

    /// Returns whether the journal holds the step's end.
    pub(super) fn has_ended(&self, visit: &Visit<'_>) -> bool {
        self.journal.get(&visit.path).is_some_and(|recorded| recorded.status != StepStatus::Waiting)
    }

    /// Records a step that can be computed again, unless the journal holds it.
    pub(super) fn record_computed(&self, visit: &Visit<'_>, record: impl FnOnce() -> StepRecord) {
        if !self.has_ended(visit) {
            self.effects.record_later(record());
        }
    }
}

/// Returns the output of a failed step: what is known of it, with `error`.
fn failed_output(output: Option<Value>, message: &str) -> Value {
    match output {
        Some(Value::Object(mut members)) => {
            members.insert("error".to_owned(), message.into());
            Value::Object(members)
        }
        _ => json!({"error": message}),
    }
}
