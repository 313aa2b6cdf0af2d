//! The effects of one walk: they are performed and recorded under the run's claim.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use automation::execution::{EffectCall, EffectError, Effects, StepRecord};
use chrono::{DateTime, Utc};
use domain::automations::resume_path;
use serde_json::Value;
use store::automations::{RunEnd, RunResult, StepRow};
use tracing::Instrument as _;

use super::completions::CompletionWriter;
use super::effects;
use super::run_context::RunContext;

/// The effects of one walk.
pub(super) struct RunEffects {
    context: RunContext,
    writer: CompletionWriter,
    is_awaited: bool,
    /// Records to store with the next durable one, or with the end.
    buffered: Mutex<Vec<StepRow>>,
}

impl RunEffects {
    /// A caller may wait for a run that a request has started. Callers of tests poll.
    pub(super) fn new(context: RunContext, writer: CompletionWriter, is_http: bool) -> Self {
        let is_awaited = is_http && !context.is_test;
        Self { context, writer, is_awaited, buffered: Mutex::default() }
    }

    pub(super) fn context(&self) -> &RunContext {
        &self.context
    }

    /// Stores the end of the walk with all records that are left. Returns `false` if the run is no longer this worker's.
    pub(super) async fn end(&self, end: RunEnd) -> bool {
        let mut rows = self.take_buffered();
        if !matches!(end.result, RunResult::Waiting { .. }) {
            // No later walk reads them.
            rows.iter_mut().for_each(|row| row.sealed_output = None);
        }
        self.writer.store(self.context.claim, rows, Some(end), self.is_awaited).await
    }

    fn take_buffered(&self) -> Vec<StepRow> {
        std::mem::take(&mut *self.buffered.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Effects for RunEffects {
    async fn perform(&self, call: EffectCall) -> Result<Value, EffectError> {
        let span = tracing::info_span!("step", step.path = call.path, step.attempt = call.attempt);
        let performing = async {
            if effects::is_transactional(&call.effect) {
                return effects::perform(&self.context, call).await;
            }
            let output = effects::perform(&self.context, call.clone()).await?;
            if self.record(call.record(output.clone())).await { Ok(output) } else { Err(EffectError::Lost) }
        };
        performing.instrument(span).await
    }

    async fn record(&self, record: StepRecord) -> bool {
        let mut rows = self.take_buffered();
        rows.push(self.context.step_row(record));
        self.writer.store(self.context.claim, rows, None, self.is_awaited).await
    }

    fn record_later(&self, record: StepRecord) {
        let row = self.context.step_row(record);
        self.buffered.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }

    #[expect(clippy::disallowed_methods, reason = "the pause before another attempt of a step")]
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    fn now(&self) -> DateTime<Utc> {
        self.context.state.clock.now()
    }

    fn resume_url(&self, number: u32) -> String {
        let state = &self.context.state;
        let path = resume_path(&state.master_key, self.context.claim.run_id, number);
        let url = format!("{}{path}", state.base_url);
        self.context.link_masking.set(&url);
        url
    }
}
