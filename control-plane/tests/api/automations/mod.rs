//! Automations: settings, definitions, permissions, the public URLs, runs and logs. Nothing executes runs here, so tests
//! claim and end them as the job-runner does.

mod answers;
mod attacks;
mod definitions;
pub(crate) mod fixture;
mod http_trigger;
mod http_trigger_load;
mod logs;
mod permissions;
mod replay;
mod resume;
mod settings;
mod test_runs;
mod unreadable_env;
mod visibility;
