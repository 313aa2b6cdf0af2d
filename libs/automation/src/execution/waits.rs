//! `wait`: pauses a run for a time, until a time, or until its link is used.

use std::sync::atomic::Ordering;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use super::attempts::{ended, later, waiting_output, waiting_until};
use super::walk::{Halt, StepError, Visit, Walk};
use super::{Effects, Escape, Language, OutputBudget, Scope, StepStatus};
use crate::definition::{OnTimeout, WaitStep};
use crate::expressions::shorten;
use crate::expressions::values::text_of;
use crate::schedule::{WAIT_MAX, parse_duration, parse_timestamp};

impl<E: Effects, L: Language> Walk<'_, E, L> {
    pub(super) async fn wait(
        &self,
        visit: &Visit<'_>,
        wait: &WaitStep,
        scope: &mut Scope,
    ) -> Result<Value, StepError> {
        let number = wait.resume.then(|| self.waits.load(Ordering::Relaxed));
        let recorded = self.journal.get(&visit.path);
        let output = match recorded {
            Some(recorded) => match ended(recorded) {
                Some(ended) => ended,
                None => self.continue_wait(visit, wait, waiting_until(recorded), number).await,
            },
            None => self.begin(visit, wait, scope, number).await,
        };
        let is_over = !matches!(output, Err(StepError::Halt(_)));
        if wait.resume && is_over {
            self.waits.fetch_add(1, Ordering::Relaxed);
            self.renew_link(scope);
        }
        output
    }

    /// Sets `run.resumeUrl` to the link of the next wait, because each link is used once.
    pub(super) fn renew_link(&self, scope: &mut Scope) {
        let number = self.waits.load(Ordering::Relaxed);
        scope.set_resume_url(self.is_resumable.then(|| self.effects.resume_url(number)));
    }

    async fn begin(
        &self,
        visit: &Visit<'_>,
        wait: &WaitStep,
        scope: &Scope,
        number: Option<u32>,
    ) -> Result<Value, StepError> {
        let now = self.effects.now();
        let until = self.end_of(wait, scope, now)?;
        if until <= now && !wait.resume {
            return self.end(visit, not_resumed()).await;
        }
        if !self.effects.record(visit.record(StepStatus::Waiting, Value::Null, waiting_output(until))).await {
            return Err(Halt::Lost.into());
        }
        Err(Halt::Waiting { until, resume: number }.into())
    }

    /// Ends a recorded wait if its time has passed or its link was used. Otherwise keeps waiting.
    async fn continue_wait(
        &self,
        visit: &Visit<'_>,
        wait: &WaitStep,
        until: DateTime<Utc>,
        number: Option<u32>,
    ) -> Result<Value, StepError> {
        // After a kill, the use of an earlier wait's link may still be stored.
        let resumed = self.resumed.filter(|(used, _)| number == Some(*used)).map(|(_, payload)| payload);
        if until > self.effects.now() && resumed.is_none() {
            return Err(Halt::Waiting { until, resume: number }.into());
        }
        if wait.resume && resumed.is_none() && wait.on_timeout.unwrap_or_default() == OnTimeout::Fail {
            return Err("the link was not used in time".to_owned().into());
        }
        let output = resumed.map_or_else(not_resumed, |payload| json!({"resumed": true, "payload": payload}));
        self.end(visit, output).await
    }

    async fn end(&self, visit: &Visit<'_>, output: Value) -> Result<Value, StepError> {
        if !self.effects.record(visit.record(StepStatus::Success, Value::Null, output.clone())).await {
            return Err(Halt::Lost.into());
        }
        Ok(output)
    }

    fn end_of(&self, wait: &WaitStep, scope: &Scope, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
        if let Some(template) = &wait.until {
            let template = Value::String(template.clone());
            let value = self.language.render(&template, Escape::None, scope, &mut OutputBudget::default());
            return parse_until(&text_of(&value.map_err(|error| format!("until: {error}"))?), now);
        }
        let text = if wait.resume { &wait.timeout } else { &wait.duration };
        let Some(text) = text else { return Ok(later(now, WAIT_MAX)) };
        let duration =
            parse_duration(text).ok_or_else(|| format!("`{text}` is not a duration such as 15m or 36h"))?;
        Ok(later(now, duration.min(WAIT_MAX)))
    }
}

fn not_resumed() -> Value {
    json!({"resumed": false, "payload": null})
}

fn parse_until(text: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, String> {
    let until = parse_timestamp(text)
        .ok_or_else(|| format!("until: `{}` is not an RFC 3339 timestamp", shorten(text)))?;
    if until - now > TimeDelta::from_std(WAIT_MAX).unwrap_or(TimeDelta::MAX) {
        return Err(format!("until: `{}` is more than 30 days ahead", shorten(text)));
    }
    Ok(until)
}
