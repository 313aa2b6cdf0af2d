//! Attempts of steps with effects.

use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::walk::{Halt, StepError, Visit, Walk};
use super::{
    EFFECT_DEPTH_MAX, EffectCall, EffectError, Effects, Failure, Language, RUN_FETCHES_MAX, Recorded, Scope,
    StepRecord, StepStatus,
};
use crate::definition::{Action, StepType};

/// Time limit of an attempt if its step sets none.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(15);
/// Pauses from this length on free the worker: the run is due again later.
const LONG_PAUSE: Duration = Duration::from_secs(10);

impl<E: Effects, L: Language> Walk<'_, E, L> {
    /// Returns the recorded output of a step with an effect, else makes its attempts.
    pub(super) async fn perform(
        &self,
        visit: &Visit<'_>,
        action: &Action,
        scope: &Scope,
    ) -> Result<Value, StepError> {
        let recorded = self.journal.get(&visit.path);
        if let Some(ended) = recorded.and_then(ended) {
            return ended;
        }
        let (mut attempt, mut previous) = (1, None);
        if let Some(pending) = recorded {
            let until = waiting_until(pending);
            if until > self.effects.now() {
                return Err(Halt::Waiting { until, resume: None }.into());
            }
            attempt = pending.attempts.saturating_add(1);
            previous = Some(Failure::transient(pending.error.clone().unwrap_or_default()));
        }
        let effect = self.render_effect(action, scope)?;
        // What is stored or sent deeper could not be read back.
        if effect.is_deeper(EFFECT_DEPTH_MAX) {
            return Err(format!("the step's values are nested deeper than {EFFECT_DEPTH_MAX} levels").into());
        }
        let options = &visit.step.options;
        let mut call = EffectCall {
            path: visit.path.clone(),
            step_id: options.id.clone(),
            kind: action.kind(),
            position: visit.position,
            started_at: visit.started_at,
            attempt,
            timeout: options.timeout_ms.map_or(TIMEOUT_DEFAULT, Duration::from_millis),
            effect,
        };
        loop {
            if call.kind == StepType::Fetch && self.fetches.fetch_add(1, Ordering::Relaxed) >= RUN_FETCHES_MAX
            {
                return Err(self.refuse_request(call, previous).await);
            }
            visit.attempts.store(call.attempt, Ordering::Relaxed);
            let failure = match self.effects.perform(call.clone()).await {
                Ok(output) => return Ok(output),
                Err(EffectError::Lost) => return Err(Halt::Lost.into()),
                Err(EffectError::Failed(failure)) => failure,
            };
            let pause = options.retry.filter(|_| failure.is_transient);
            let pause = pause.and_then(|retry| retry.delay_ms(call.attempt)).map(Duration::from_millis);
            match pause {
                None => return Err(self.record_failure(&call, failure).await),
                Some(pause) if pause < LONG_PAUSE => self.effects.sleep(pause).await,
                Some(pause) => return Err(self.postpone(&call, failure, pause).await.into()),
            }
            previous = Some(failure);
            call.attempt += 1;
        }
    }

    /// Fails a step because its request would be one too many. `previous` is the failure that it would repeat.
    async fn refuse_request(&self, mut call: EffectCall, previous: Option<Failure>) -> StepError {
        let limit = format!("a run sends at most {RUN_FETCHES_MAX} requests, retries included");
        let Some(previous) = previous else { return limit.into() };
        call.attempt -= 1;
        let message = format!("{}; it is not tried again, because {limit}", previous.message);
        self.record_failure(&call, Failure { message, ..previous }).await
    }

    async fn record_failure(&self, call: &EffectCall, failure: Failure) -> StepError {
        let output = failure.output.clone().unwrap_or(Value::Null);
        let record = failed(call, StepStatus::Error, &failure, output);
        if !self.effects.record(record).await {
            return Halt::Lost.into();
        }
        StepError::Failed { message: failure.message, output: failure.output, is_recorded: true }
    }

    /// Records that the next attempt is due later.
    async fn postpone(&self, call: &EffectCall, failure: Failure, pause: Duration) -> Halt {
        let until = self.effects.now() + pause;
        let record = failed(call, StepStatus::Waiting, &failure, waiting_output(until));
        if !self.effects.record(record).await {
            return Halt::Lost;
        }
        Halt::Waiting { until, resume: None }
    }
}

fn failed(call: &EffectCall, status: StepStatus, failure: &Failure, output: Value) -> StepRecord {
    StepRecord { status, error: Some(failure.message.clone()), ..call.record(output) }
}

/// Returns what a record says of an ended step; `None` if it waits.
pub(super) fn ended(recorded: &Recorded) -> Option<Result<Value, StepError>> {
    match recorded.status {
        StepStatus::Waiting => None,
        StepStatus::Success | StepStatus::Skipped => Some(Ok(recorded.output.clone())),
        StepStatus::Error => Some(Err(StepError::Failed {
            message: recorded.error.clone().unwrap_or_default(),
            output: Some(recorded.output.clone()).filter(|output| !output.is_null()),
            is_recorded: true,
        })),
    }
}

pub(super) fn waiting_output(until: DateTime<Utc>) -> Value {
    json!({"until": until})
}

/// Returns the time in a waiting record; without one, it is due.
pub(super) fn waiting_until(recorded: &Recorded) -> DateTime<Utc> {
    let until = recorded.output.get("until").and_then(Value::as_str);
    let until = until.and_then(|until| DateTime::parse_from_rfc3339(until).ok());
    until.map_or(DateTime::<Utc>::UNIX_EPOCH, |until| until.to_utc())
}

/// Adds a duration to a time; beyond the calendar's end it is the calendar's end.
pub(super) fn later(now: DateTime<Utc>, duration: Duration) -> DateTime<Utc> {
    let delta = TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX);
    now.checked_add_signed(delta).unwrap_or(DateTime::<Utc>::MAX_UTC)
}
