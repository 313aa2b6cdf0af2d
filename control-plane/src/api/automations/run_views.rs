//! Runs in responses: values of variables are masked.

use automation::masking::Masking;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Conn;
use store::automations::{Automation, LoggedStep, Run, RunStatus, list_steps};
use uuid::Uuid;
use web::Problem;

use crate::App;
use crate::automations::open_env;

/// Most steps of one run in a response.
const STEPS_MAX: i64 = 1_000;

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum AutomationRunStatus {
    /// It begins soon.
    Queued,
    /// Its steps are being executed.
    Running,
    /// It waits for a time, its link or its next attempt.
    Waiting,
    /// It succeeded.
    Success,
    /// It failed.
    Error,
    /// It was cancelled.
    Cancelled,
    /// It did not begin, because the limit of the month was reached.
    Skipped,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AutomationRunView {
    /// Id of the run.
    run_id: Uuid,
    /// Status of the run.
    status: AutomationRunStatus,
    /// What started it: `type` (`form_submission`, `http`, `schedule` or `test`), and what expressions read as `trigger`.
    trigger: Map<String, Value>,
    /// Whether it is a test run, which is not counted.
    is_test: bool,
    /// Why it failed; null if it did not.
    error: Option<String>,
    /// Path of the step that failed, such as `each[3].notify`; null if none did.
    error_path: Option<String>,
    /// Reason that a `stop` step gave; null for none.
    message: Option<String>,
    /// When it was requested.
    created_at: DateTime<Utc>,
    /// When its first step began; null before.
    started_at: Option<DateTime<Utc>>,
    /// When it ended; null before.
    finished_at: Option<DateTime<Utc>>,
    /// Milliseconds from begin to end; null before the end.
    ms: Option<i64>,
    /// Its steps so far, in the order in which they began; at most 1000.
    steps: Vec<AutomationRunStepView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AutomationRunStepView {
    /// Path in the run, such as `each[3].notify`: the element of the loop, and the step's id.
    path: String,
    /// Id of the step.
    id: String,
    /// Type of the step.
    #[serde(rename = "type")]
    kind: String,
    /// `success`, `error`, `skipped` or `waiting`.
    status: String,
    /// What the step was given, after its templates; cut at 64 KB.
    input: Value,
    /// Output of the step; cut at 64 KB.
    output: Value,
    /// Why it failed; null if it did not.
    error: Option<String>,
    /// Duration in milliseconds.
    ms: i64,
    /// Number of attempts.
    attempts: i32,
}

/// Returns the masking of an automation's variables.
pub(super) fn masking(app: &App, automation: &Automation) -> Result<Masking, Problem> {
    let env = open_env(&app.master_key, automation.sealed_env.as_deref())?;
    Ok(Masking::new(env.values().map(String::as_str)))
}

/// Returns the steps of a run.
pub(super) async fn steps_of(
    conn: &mut Conn,
    account_id: Uuid,
    run_id: Uuid,
) -> Result<Vec<AutomationRunStepView>, Problem> {
    let steps = list_steps(conn, account_id, &[run_id], STEPS_MAX).await?;
    Ok(steps.into_iter().map(|(_, step)| step_view(step)).collect())
}

/// A run as its owner sees it.
pub(super) fn run_view(run: Run, steps: Vec<AutomationRunStepView>, masking: &Masking) -> AutomationRunView {
    let mut trigger = Map::new();
    trigger.insert("type".to_owned(), Value::String(run.trigger_type));
    match masking.json(&run.trigger) {
        Value::Object(members) => trigger.extend(members.into_iter().filter(|(name, _)| name != "type")),
        other => drop(trigger.insert("value".to_owned(), other)),
    }
    let masked = |text: Option<String>| text.map(|text| masking.text(&text).into_owned());
    AutomationRunView {
        run_id: run.id,
        status: run.status.into(),
        trigger,
        is_test: run.is_test,
        error: masked(run.error),
        error_path: run.error_path.filter(|path| !path.is_empty()),
        message: masked(run.message),
        created_at: run.created_at,
        started_at: run.started_at,
        finished_at: run.finished_at,
        ms: run.started_at.zip(run.finished_at).map(|(from, to)| (to - from).num_milliseconds()),
        steps,
    }
}

fn step_view(step: LoggedStep) -> AutomationRunStepView {
    AutomationRunStepView {
        path: step.path,
        id: step.step_id,
        kind: step.kind,
        status: step.status,
        input: step.input,
        output: step.output,
        error: step.error,
        ms: (step.finished_at - step.started_at).num_milliseconds().max(0),
        attempts: step.attempts,
    }
}

impl From<RunStatus> for AutomationRunStatus {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Queued => Self::Queued,
            RunStatus::Running => Self::Running,
            RunStatus::Waiting => Self::Waiting,
            RunStatus::Success => Self::Success,
            RunStatus::Error => Self::Error,
            RunStatus::Cancelled => Self::Cancelled,
            RunStatus::Skipped => Self::Skipped,
        }
    }
}

impl From<AutomationRunStatus> for RunStatus {
    fn from(status: AutomationRunStatus) -> Self {
        match status {
            AutomationRunStatus::Queued => Self::Queued,
            AutomationRunStatus::Running => Self::Running,
            AutomationRunStatus::Waiting => Self::Waiting,
            AutomationRunStatus::Success => Self::Success,
            AutomationRunStatus::Error => Self::Error,
            AutomationRunStatus::Cancelled => Self::Cancelled,
            AutomationRunStatus::Skipped => Self::Skipped,
        }
    }
}
