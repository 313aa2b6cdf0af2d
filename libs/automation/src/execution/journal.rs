//! The records of a run's steps, by path.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::RUN_FETCHES_MAX;
use crate::definition::{AutomationDefinition, StepType};

/// Status of a recorded step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    /// It has its output.
    Success,
    /// It failed after all its attempts.
    Error,
    /// Its `if` was not true.
    Skipped,
    /// It waits, for a time, its link or its next attempt.
    Waiting,
}

impl StepStatus {
    /// Returns the stored word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Skipped => "skipped",
            Self::Waiting => "waiting",
        }
    }

    /// Parses the stored word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Success, Self::Error, Self::Skipped, Self::Waiting]
            .into_iter()
            .find(|status| status.as_str() == word)
    }
}

/// What the journal holds of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Status of the step.
    pub status: StepStatus,
    /// Output; of a waiting step `{until}`.
    pub output: Value,
    /// Reason of a failure.
    pub error: Option<String>,
    /// Number of attempts.
    pub attempts: u32,
}

/// A record to store. A later one of the same path replaces an earlier one.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// Path in the run, such as `each[3].notify`.
    pub path: String,
    /// Number of the step in the order in which steps began.
    pub position: u32,
    /// Id of the step.
    pub step_id: String,
    /// Type of the step.
    pub kind: StepType,
    /// Status of the step.
    pub status: StepStatus,
    /// What the step was given, after its templates.
    pub input: Value,
    /// Output; of a waiting step `{until}`.
    pub output: Value,
    /// Reason of a failure.
    pub error: Option<String>,
    /// When the step began.
    pub started_at: DateTime<Utc>,
    /// Number of attempts.
    pub attempts: u32,
}

/// The records of a run as they were when its walk began.
#[derive(Debug, Clone, Default)]
pub struct Journal(HashMap<String, Recorded>);

impl Journal {
    /// Returns the record of a path.
    pub fn get(&self, path: &str) -> Option<&Recorded> {
        self.0.get(path)
    }

    /// Returns how many requests the `fetch` steps of the definition have sent in earlier walks. All are counted before
    /// the first step: a step that is tried again may stand before recorded ones.
    pub(super) fn requests(&self, definition: &AutomationDefinition) -> u32 {
        if self.is_empty() {
            return 0;
        }
        let steps = definition.all_steps();
        let fetches = steps.iter().map(|(_, step)| step).filter(|step| step.action.kind() == StepType::Fetch);
        let ids: HashSet<&str> = fetches.map(|step| step.options.id.as_str()).collect();
        let of_fetches =
            self.0.iter().filter(|(path, _)| ids.contains(path.rsplit('.').next().unwrap_or(path)));
        let sum = of_fetches.fold(0, |sum: u32, (_, recorded)| sum.saturating_add(recorded.attempts));
        sum.min(RUN_FETCHES_MAX)
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the run has no record yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Recorded)> for Journal {
    fn from_iter<I: IntoIterator<Item = (String, Recorded)>>(records: I) -> Self {
        Self(records.into_iter().collect())
    }
}
