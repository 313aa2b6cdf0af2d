//! A run in memory: its journal, its effects, a clock that the test sets, and a small language.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::definition::AutomationDefinition;
use crate::execution::{
    Compiled, Effect, EffectCall, EffectError, Effects, Escape, Failure, Journal, Language, Outcome,
    OutputBudget, Recorded, RunFacts, Scope, StepRecord, StepStatus, run,
};

/// A run with a worker that can be killed.
pub(super) struct Memory {
    pub(super) definition: AutomationDefinition,
    pub(super) facts: RunFacts,
    /// The real language; without it, that of paths.
    language: Option<Compiled>,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) records: BTreeMap<String, StepRecord>,
    /// Written some time later: a kill loses them.
    unwritten: Vec<StepRecord>,
    /// Every effect in order, as `<path> <effect as JSON>`.
    pub(super) performed: Vec<String>,
    pub(super) calls: Vec<EffectCall>,
    /// Failures that the next attempts of a step have.
    pub(super) failures: BTreeMap<String, Vec<Failure>>,
    pub(super) slept: Vec<Duration>,
    now: DateTime<Utc>,
    /// Writes that are still durable; then the worker is killed.
    writes_left: Option<usize>,
    is_killed: bool,
    pub(super) is_cancelled: bool,
    in_flight: usize,
    pub(super) max_in_flight: usize,
}

impl Memory {
    pub(super) fn new(steps: Value, payload: Value) -> Self {
        let definition = json!({"trigger": {"type": "http"}, "steps": steps});
        let definition =
            AutomationDefinition::read(&definition).unwrap_or_else(|errors| panic!("{errors:?}"));
        let started_at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        let facts = RunFacts {
            id: Uuid::from_u128(7),
            started_at,
            is_test: false,
            trigger: Arc::new(json!({"payload": payload})),
            env: Arc::new(json!({})),
            resumed: None,
        };
        let state = State { now: started_at, ..State::default() };
        Self { definition, facts, language: None, state: Mutex::new(state) }
    }

    /// Creates a run with the real expressions.
    pub(super) fn compiled(steps: Value, payload: Value) -> Self {
        Self { language: Some(Compiled::default()), ..Self::new(steps, payload) }
    }

    pub(super) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn advance(&self, by: TimeDelta) {
        self.state().now += by;
    }

    /// Walks the run; the worker is killed when `writes` more writes are durable.
    pub(super) fn walk_until(&self, writes: usize) -> Option<Outcome> {
        self.state().writes_left = Some(writes);
        let outcome = self.walk_once();
        self.state().writes_left = None;
        outcome
    }

    pub(super) fn walk(&self) -> Outcome {
        self.walk_once().expect("the walk ends")
    }

    /// Returns `None` if the worker was killed.
    fn walk_once(&self) -> Option<Outcome> {
        let journal: Journal = self.state().records.values().map(recorded).collect();
        let mut walk = match &self.language {
            Some(language) => run(&self.definition, &self.facts, &journal, language, self).boxed(),
            None => run(&self.definition, &self.facts, &journal, &Paths, self).boxed(),
        };
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let outcome = loop {
            match walk.as_mut().poll(&mut context) {
                std::task::Poll::Ready(outcome) => break Some(outcome),
                std::task::Poll::Pending if self.state().writes_left == Some(0) && self.state().is_killed => {
                    break None;
                }
                std::task::Poll::Pending => {}
            }
        };
        let mut state = self.state();
        let unwritten = std::mem::take(&mut state.unwritten);
        (state.in_flight, state.is_killed) = (0, false);
        if outcome.is_some() {
            state.records.extend(unwritten.into_iter().map(|record| (record.path.clone(), record)));
        }
        outcome
    }

    pub(super) fn output(&self, path: &str) -> Value {
        self.state().records.get(path).map_or(Value::Null, |record| record.output.clone())
    }

    pub(super) fn status(&self, path: &str) -> Option<StepStatus> {
        self.state().records.get(path).map(|record| record.status)
    }

    pub(super) fn fail(&self, path: &str, failures: &[Failure]) {
        self.state().failures.insert(path.to_owned(), failures.to_vec());
    }

    /// Counts a durable write. `false`: the worker is dead, and the write did not happen.
    fn may_write(&self) -> bool {
        let mut state = self.state();
        let state = &mut *state;
        match &mut state.writes_left {
            None => true,
            Some(0) => {
                state.is_killed = true;
                false
            }
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

fn recorded(record: &StepRecord) -> (String, Recorded) {
    let StepRecord { path, status, output, error, attempts, .. } = record.clone();
    (path, Recorded { status, output, error, attempts })
}

impl Effects for Memory {
    async fn perform(&self, call: EffectCall) -> Result<Value, EffectError> {
        self.state().calls.push(call.clone());
        {
            let mut state = self.state();
            state.in_flight += 1;
            state.max_in_flight = state.max_in_flight.max(state.in_flight);
        }
        // Others of the same loop begin meanwhile.
        yield_once().await;
        self.state().in_flight -= 1;
        let failure = self
            .state()
            .failures
            .get_mut(&call.path)
            .filter(|left| !left.is_empty())
            .map(|left| left.remove(0));
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        if !self.may_write() {
            return std::future::pending().await;
        }
        let mut state = self.state();
        if state.is_cancelled {
            return Err(EffectError::Lost);
        }
        state.performed.push(format!("{} {}", call.path, serde_json::to_string(&call.effect).unwrap()));
        let output = match &call.effect {
            Effect::Fetch { body, .. } => json!({"status": 200, "body": body}),
            Effect::CreateEntry { data, .. } => json!({"data": data}),
            _ => json!({}),
        };
        state.records.insert(call.path.clone(), call.record(output.clone()));
        Ok(output)
    }

    async fn record(&self, record: StepRecord) -> bool {
        if !self.may_write() {
            return std::future::pending().await;
        }
        let mut state = self.state();
        let is_ours = !state.is_cancelled;
        if is_ours {
            state.records.insert(record.path.clone(), record);
        }
        is_ours
    }

    fn record_later(&self, record: StepRecord) {
        self.state().unwritten.push(record);
    }

    async fn sleep(&self, duration: Duration) {
        self.state().slept.push(duration);
        self.advance(TimeDelta::from_std(duration).unwrap());
    }

    fn now(&self) -> DateTime<Utc> {
        self.state().now
    }

    fn resume_url(&self, number: u32) -> String {
        format!("https://base/resume/{number}")
    }
}

/// Is ready at the second poll.
async fn yield_once() {
    let mut is_polled = false;
    futures::future::poll_fn(move |cx| {
        if std::mem::replace(&mut is_polled, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

/// A language of paths, such as `trigger.payload.name`, `!path` and `path == 3`.
struct Paths;

impl Language for Paths {
    fn evaluate(&self, expression: &str, scope: &Scope) -> Result<Value, String> {
        let expression = expression.trim();
        if let Some((left, right)) = expression.split_once("==") {
            let right: Value = serde_json::from_str(right.trim()).map_err(|error| error.to_string())?;
            return Ok(Value::Bool(self.evaluate(left, scope)? == right));
        }
        if expression.contains("fail!") {
            return Err("it fails".to_owned());
        }
        let mut names = expression.split('.');
        let root = names.next().unwrap_or_default();
        let layers: Vec<&Value> =
            scope.variables().filter(|(name, _)| *name == root).map(|(_, value)| value).collect();
        let mut value = match (root, layers.last()) {
            (_, None) => return Err(format!("unknown name `{root}`")),
            ("steps", _) => {
                let id = names.next().unwrap_or_default();
                layers.iter().rev().find_map(|layer| layer.get(id)).cloned().unwrap_or_default()
            }
            (_, Some(value)) => Value::clone(value),
        };
        for name in names {
            value = match value {
                Value::Object(mut members) => members.remove(name).unwrap_or_default(),
                Value::Array(mut items) => {
                    let at = name.parse::<usize>().unwrap_or(usize::MAX);
                    if at < items.len() { items.swap_remove(at) } else { Value::Null }
                }
                _ => Value::Null,
            };
        }
        Ok(value)
    }

    #[expect(clippy::only_used_in_recursion, reason = "this language is not limited")]
    fn render(
        &self,
        template: &Value,
        _: Escape,
        scope: &Scope,
        budget: &mut OutputBudget,
    ) -> Result<Value, String> {
        match template {
            Value::Array(items) => {
                items.iter().map(|item| self.render(item, Escape::None, scope, budget)).collect()
            }
            Value::Object(members) => {
                let members = members
                    .iter()
                    .map(|(name, one)| Ok((name.clone(), self.render(one, Escape::None, scope, budget)?)));
                members.collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
            Value::String(text) => self.render_text(text, scope),
            other => Ok(other.clone()),
        }
    }
}

impl Paths {
    fn render_text(&self, text: &str, scope: &Scope) -> Result<Value, String> {
        if let Some(whole) = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"))
            && !whole.contains("}}")
        {
            return self.evaluate(whole, scope);
        }
        let (mut output, mut rest) = (String::new(), text);
        while let Some((before, (expression, after))) =
            rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
        {
            output.push_str(before);
            match self.evaluate(expression, scope)? {
                Value::String(text) => output.push_str(&text),
                Value::Null => {}
                other => output.push_str(&other.to_string()),
            }
            rest = after;
        }
        output.push_str(rest);
        Ok(Value::String(output))
    }
}
