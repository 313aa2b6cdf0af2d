//! Runs in responses: values of variables are masked.

use automation::definition::StepType;
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
/// Most bytes of their inputs, outputs and errors together.
const STEPS_BYTES_MAX: i64 = 4 << 20;

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
    /// Whether it waits for the next attempt of a step that failed, and not for a time or its link.
    is_retrying: bool,
    /// Until when it waits; null unless its status is `waiting`.
    waits_until: Option<DateTime<Utc>>,
    /// Whether it is a test run, which is not counted.
    is_test: bool,
    /// Why it failed; null if it did not.
    error: Option<String>,
    /// Path of the step that failed, such as `each[3].notify`; null if none did.
    error_path: Option<String>,
    /// Reason that a `stop` step gave; null for none. If the variables can't be decrypted, so that nothing can be masked, it
    /// says so, and what the run was given and what it made of it are left out.
    message: Option<String>,
    /// When it was requested.
    created_at: DateTime<Utc>,
    /// When its first step began; null before.
    started_at: Option<DateTime<Utc>>,
    /// When it ended; null before.
    finished_at: Option<DateTime<Utc>>,
    /// Milliseconds from begin to end; null before the end.
    ms: Option<i64>,
    /// Its steps so far, in the order in which they began: the first 1000 at most, and as many as fit into 4 MiB together.
    steps: Vec<AutomationRunStepView>,
    /// Whether it has more steps than `steps`: more than 1000, or more than 4 MiB of inputs, outputs and errors.
    steps_truncated: bool,
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
    /// When it began.
    started_at: DateTime<Utc>,
    /// Duration in milliseconds.
    ms: i64,
    /// Number of attempts.
    attempts: i32,
}

/// What a run says whose values can't be masked.
const NOT_MASKABLE: &str =
    "not shown: the variables of this automation can't be decrypted; save `env` again with all values";

/// Returns the masking of an automation's variables. `None` if they can't be decrypted: then nothing that may hold a value
/// is shown.
pub(super) fn masking(app: &App, automation: &Automation) -> Option<Masking> {
    match open_env(&app.master_key, automation.sealed_env.as_deref()) {
        Ok(env) => Some(Masking::new(env.values().map(String::as_str))),
        Err(error) => {
            tracing::error!(%error, automation.id = %automation.id, "stored variables are unreadable");
            None
        }
    }
}

/// The steps of a run as far as a response holds them.
#[derive(Debug, Serialize)]
pub(super) struct StepsOfRun {
    steps: Vec<AutomationRunStepView>,
    is_truncated: bool,
}

/// Returns the steps of a run.
pub(super) async fn steps_of(conn: &mut Conn, account_id: Uuid, run_id: Uuid) -> Result<StepsOfRun, Problem> {
    let found = list_steps(conn, account_id, run_id, STEPS_MAX, STEPS_BYTES_MAX).await?;
    let steps = found.steps.into_iter().map(step_view).collect();
    Ok(StepsOfRun { steps, is_truncated: found.is_truncated })
}

/// A run as its owner sees it.
pub(super) fn run_view(run: Run, steps: StepsOfRun, masking: Option<&Masking>) -> AutomationRunView {
    let Some(masking) = masking else {
        return run_view(redacted(run), redacted_steps(steps), Some(&Masking::default()));
    };
    let mut trigger = Map::new();
    trigger.insert("type".to_owned(), Value::String(run.trigger_type));
    match masking.json(&run.trigger) {
        Value::Object(members) => trigger.extend(members.into_iter().filter(|(name, _)| name != "type")),
        other => drop(trigger.insert("value".to_owned(), other)),
    }
    let is_waiting = run.status == RunStatus::Waiting;
    let masked = |text: Option<String>| text.map(|text| masking.text(&text).into_owned());
    AutomationRunView {
        run_id: run.id,
        status: run.status.into(),
        trigger,
        is_retrying: is_waiting && steps.steps.iter().any(AutomationRunStepView::is_retrying),
        waits_until: run.due_at.filter(|_| is_waiting),
        is_test: run.is_test,
        error: masked(run.error),
        error_path: run.error_path.filter(|path| !path.is_empty()),
        message: masked(run.message),
        created_at: run.created_at,
        started_at: run.started_at,
        finished_at: run.finished_at,
        ms: run.started_at.zip(run.finished_at).map(|(from, to)| (to - from).num_milliseconds()),
        steps: steps.steps,
        steps_truncated: steps.is_truncated,
    }
}

/// Removes whatever may hold a value of a variable.
fn redacted(run: Run) -> Run {
    let error = run.error.map(|_| NOT_MASKABLE.to_owned());
    Run { trigger: Value::Object(Map::new()), error, message: Some(NOT_MASKABLE.to_owned()), ..run }
}

/// As [`redacted`]. Workers have masked them already, but with the variables of that time.
fn redacted_steps(mut steps: StepsOfRun) -> StepsOfRun {
    for step in &mut steps.steps {
        (step.input, step.output) = (Value::Null, Value::Null);
        step.error = step.error.take().map(|_| NOT_MASKABLE.to_owned());
    }
    steps
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
        started_at: step.started_at,
        ms: (step.finished_at - step.started_at).num_milliseconds().max(0),
        attempts: step.attempts,
    }
}

impl AutomationRunStepView {
    /// Whether its next attempt is due later. A step of the type `wait` waits for what it was told to.
    fn is_retrying(&self) -> bool {
        self.status == "waiting" && self.kind != StepType::Wait.as_str()
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
