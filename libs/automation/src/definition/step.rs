//! A step: the fields that all have, and those of its type.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::flow::{SetStep, StopStep, TransformStep, WaitStep};
use super::kinds::kinds;
use super::options::StepOptions;
use super::pages::{CreateEntryStep, DeleteEntryStep, UpdatePageStep};
use super::requests::{FetchStep, RespondStep, SendWebhookStep};
use super::submissions::{CreateSubmissionStep, FindStep};

kinds! {
    /// The fields of a step's type; `type` says which of these it is.
    Action, StepType, StepOptions {
        Condition(ConditionStep) = "condition",
        Set(SetStep) = "set",
        Transform(TransformStep) = "transform",
        ForEach(ForEachStep) = "for_each",
        Wait(WaitStep) = "wait",
        Stop(StopStep) = "stop",
        Fetch(FetchStep) = "fetch",
        Respond(RespondStep) = "respond",
        CreateEntry(CreateEntryStep) = "create_entry",
        DeleteEntry(DeleteEntryStep) = "delete_entry",
        UpdatePage(UpdatePageStep) = "update_page",
        Find(FindStep) = "find",
        CreateSubmission(CreateSubmissionStep) = "create_submission",
        SendWebhook(SendWebhookStep) = "send_webhook",
    }
}

/// One step of an automation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Fields that steps of every type have.
    #[serde(flatten)]
    pub options: StepOptions,
    /// The fields of its type.
    #[serde(flatten)]
    pub action: Action,
}

impl Step {
    /// Returns the steps inside this one, each list with its path below the step, such as `branches[0].steps`.
    pub fn nested(&self) -> Vec<(String, &[Step])> {
        match &self.action {
            Action::Condition(condition) => {
                let branches = condition.branches.iter().enumerate();
                let branches =
                    branches.map(|(at, branch)| (format!("branches[{at}].steps"), &branch.steps[..]));
                branches.chain([("else".to_owned(), &condition.otherwise[..])]).collect()
            }
            Action::ForEach(each) => vec![("steps".to_owned(), &each.steps[..])],
            _ => Vec::new(),
        }
    }
}

/// Pushes all steps with their paths, in the order of the text.
pub(super) fn collect<'a>(steps: &'a [Step], path: &str, found: &mut Vec<(String, &'a Step)>) {
    for (at, step) in steps.iter().enumerate() {
        let path = format!("{path}[{at}]");
        found.push((path.clone(), step));
        for (below, steps) in step.nested() {
            collect(steps, &format!("{path}.{below}"), found);
        }
    }
}

/// Runs the steps of the first branch that applies, else those of `else`. Output: `{branch}`, the number of the branch
/// from 0, or null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConditionStep {
    /// Branches, tried in order.
    #[schemars(length(min = 1, max = 50))]
    pub branches: Vec<Branch>,
    /// Steps that run if no branch applies.
    #[serde(default, rename = "else", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    pub otherwise: Vec<Step>,
}

/// One branch of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ConditionBranch")]
pub struct Branch {
    /// Expression without braces, such as `trigger.payload.plan == "pro"`.
    #[serde(rename = "if")]
    #[schemars(length(min = 1, max = 8192))]
    pub condition: String,
    /// Steps of the branch.
    #[schemars(length(max = 500))]
    pub steps: Vec<Step>,
}

/// Runs steps for each element of a list. Output: `{count, items}`; `items` holds for each element the output of its
/// last step. Steps outside the loop can't read the steps inside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForEachStep {
    /// The list, usually one template such as `{{ trigger.payload.rows }}`; at most 500 elements.
    pub items: Value,
    /// Name of the variable that holds the element; default `item`. `index` is its number from 0.
    #[serde(default = "item", rename = "as")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub variable: String,
    /// Steps for each element.
    #[schemars(length(min = 1, max = 500))]
    pub steps: Vec<Step>,
    /// Number of elements at the same time.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 5))]
    pub concurrency: u32,
}

fn item() -> String {
    "item".to_owned()
}

fn one() -> u32 {
    1
}
