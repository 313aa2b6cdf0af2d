//! An automation as its owner writes it: one trigger, and steps that run in order.

mod automation;
mod example;
mod flow;
mod kinds;
mod options;
mod pages;
mod read;
mod requests;
mod schema;
mod step;
mod submissions;
mod trigger;

pub use automation::{AutomationDefinition, Concurrency, DEFINITION_BYTES_MAX, TEMPLATE_BYTES_MAX};
pub use flow::{OnTimeout, SetStep, SortOrder, StopStatus, StopStep, TransformSort, TransformStep, WaitStep};
pub use options::{Backoff, OnError, Retry, StepOptions};
pub use pages::{CreateEntryStep, DeleteEntryStep, UpdatePageStep};
pub(crate) use read::did_you_mean;
pub use requests::{FetchMethod, FetchStep, RespondStep, SendWebhookStep};
pub use step::{Action, Branch, ConditionStep, ForEachStep, Step, StepType};
pub use submissions::{CreateSubmissionStep, FindIn, FindStep};
pub use trigger::{
    CatchUp, FormSubmissionTrigger, HttpAuth, HttpAuthType, HttpMethod, HttpTrigger, ScheduleTrigger,
    Trigger, TriggerType,
};

#[cfg(test)]
mod tests;
