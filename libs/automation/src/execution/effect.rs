//! What a run does outside itself.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{StepRecord, StepStatus};
use crate::definition::StepType;
use crate::expressions::values::is_deeper;

/// The effect of a step, after its templates. Serialized, it is the input in the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Effect {
    /// Sends a request.
    Fetch {
        /// Method, such as `POST`.
        method: &'static str,
        /// URL.
        url: String,
        /// Headers as `(name, value)`.
        headers: Map<String, Value>,
        /// Body: a text as it is, everything else as JSON.
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
    },
    /// Answers the request of an http trigger.
    Respond {
        /// Status code.
        status: u16,
        /// Headers.
        headers: Map<String, Value>,
        /// Body: a text as it is, everything else as JSON.
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<Value>,
    },
    /// Adds an entry to a page.
    #[serde(rename_all = "camelCase")]
    CreateEntry {
        /// The page.
        page_id: Uuid,
        /// Data of the entry.
        data: Map<String, Value>,
    },
    /// Removes an entry.
    #[serde(rename_all = "camelCase")]
    DeleteEntry {
        /// The page.
        page_id: Uuid,
        /// The entry.
        entry_id: Uuid,
    },
    /// Changes or creates a page.
    UpdatePage(Box<PageEdit>),
    /// Reads entries or submissions.
    #[serde(rename_all = "camelCase")]
    Find {
        /// What is searched.
        #[serde(flatten)]
        source: FindSource,
        /// Values that fields must equal.
        #[serde(rename = "where")]
        filter: Map<String, Value>,
        /// Only what was created from then on.
        #[serde(skip_serializing_if = "Option::is_none")]
        since: Option<DateTime<Utc>>,
        /// Maximum number of items.
        limit: u32,
    },
    /// Submits a form.
    #[serde(rename_all = "camelCase")]
    CreateSubmission {
        /// The form.
        form_id: Uuid,
        /// Answers.
        payload: Map<String, Value>,
    },
    /// Sends a payload to a webhook.
    #[serde(rename_all = "camelCase")]
    SendWebhook {
        /// The webhook.
        webhook_id: Uuid,
        /// The payload.
        payload: Map<String, Value>,
    },
}

impl Effect {
    /// Returns whether the effect, as JSON, is nested deeper than `levels`.
    pub(super) fn is_deeper(&self, levels: usize) -> bool {
        let below = |used: usize| levels.saturating_sub(used);
        match self {
            Self::Fetch { body, .. } | Self::Respond { body, .. } => {
                body.as_ref().is_some_and(|body| is_deeper(body, below(1)))
            }
            Self::CreateEntry { data: members, .. }
            | Self::Find { filter: members, .. }
            | Self::CreateSubmission { payload: members, .. }
            | Self::SendWebhook { payload: members, .. } => {
                members.values().any(|member| is_deeper(member, below(2)))
            }
            Self::DeleteEntry { .. } | Self::UpdatePage(_) => false,
        }
    }
}

/// What a `find` step searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FindSource {
    /// Entries of a page.
    #[serde(rename_all = "camelCase")]
    Entries {
        /// The page.
        page_id: Uuid,
    },
    /// Submissions of a form, without spam.
    #[serde(rename_all = "camelCase")]
    Submissions {
        /// The form.
        form_id: Uuid,
    },
}

/// A change of a page. `None` keeps a field; `Some(None)` removes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageEdit {
    /// The page; or `slug`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_id: Option<Uuid>,
    /// Its slug.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// The slug's subdomain; default: the account's first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subdomain_id: Option<Uuid>,
    /// Whether a missing page is created.
    pub upsert: bool,
    /// Title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// Style sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub css: Option<Option<String>>,
    /// Template of entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_template: Option<Option<String>>,
    /// Whether visitors can see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_published: Option<bool>,
    /// When it is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish_at: Option<Option<DateTime<Utc>>>,
    /// The change is refused if the page has changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_unmodified_since: Option<DateTime<Utc>>,
    /// Folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder_id: Option<Option<Uuid>>,
}

/// One attempt of a step's effect.
#[derive(Debug, Clone)]
pub struct EffectCall {
    /// Path of the step in the run; with the run's id, the same in every attempt.
    pub path: String,
    /// Id of the step.
    pub step_id: String,
    /// Type of the step.
    pub kind: StepType,
    /// Number of the step in the order in which steps began.
    pub position: u32,
    /// When the step began.
    pub started_at: DateTime<Utc>,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// Time limit of the attempt.
    pub timeout: Duration,
    /// What to do.
    pub effect: Effect,
}

impl EffectCall {
    /// Returns the record of the attempt's success, to store in one transaction with the effect.
    pub fn record(&self, output: Value) -> StepRecord {
        StepRecord {
            path: self.path.clone(),
            position: self.position,
            step_id: self.step_id.clone(),
            kind: self.kind,
            status: StepStatus::Success,
            input: serde_json::to_value(&self.effect).unwrap_or_default(),
            output,
            error: None,
            started_at: self.started_at,
            attempts: self.attempt,
        }
    }
}

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason, for the automation's owner.
    pub message: String,
    /// Whether another attempt may succeed.
    pub is_transient: bool,
    /// Details, such as the response to a failed request. With `onError: continue` they become the step's output.
    pub output: Option<Value>,
}

impl Failure {
    /// Returns a failure that further attempts would repeat.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_transient: false, output: None }
    }

    /// Returns a failure after which another attempt may succeed.
    pub fn transient(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_transient: true, output: None }
    }
}

/// Why an effect has no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectError {
    /// The attempt failed, and nothing of it was stored.
    Failed(Failure),
    /// The run is no longer this worker's, or the outcome is unknown: the walk ends, and the journal decides.
    Lost,
}

impl From<Failure> for EffectError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Everything that a walk needs from outside.
pub trait Effects: Sync {
    /// Makes one attempt of an effect. On success, [`EffectCall::record`] of the returned output is stored: in the
    /// effect's own transaction if it has one.
    fn perform(&self, call: EffectCall) -> impl Future<Output = Result<Value, EffectError>> + Send;

    /// Stores a record and waits until it is durable. Returns `false` if the run is no longer this worker's.
    fn record(&self, record: StepRecord) -> impl Future<Output = bool> + Send;

    /// Stores a record some time before the run ends.
    fn record_later(&self, record: StepRecord);

    /// Waits before another attempt.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;

    /// Returns the time. Only waits and records depend on it, never an expression.
    fn now(&self) -> DateTime<Utc>;

    /// Returns the link that resumes wait number `number` of the run; the same in every walk.
    fn resume_url(&self, number: u32) -> String;
}
