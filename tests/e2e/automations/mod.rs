//! Ten automations as users write them, each also with the job-runner killed in its middle, and a burst of runs.

mod burst;
mod forms;
mod http_triggers;
mod owner;
mod peers;
mod run_log;
mod scene;
mod schedules;
mod story;

pub(crate) use owner::Owner;
pub(crate) use run_log::Automation;
