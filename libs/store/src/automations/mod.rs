//! Automations, their runs, and the steps of runs.
//!
//! A run is due when its `due_at` has passed: a queued one at once, a waiting one at the end of its wait, a running one
//! when the lease of its worker expires. Every write of a worker names its claim ([`Claim`]); after a cancellation or a
//! later claim such a write changes nothing.

mod claims;
mod completions;
mod find;
mod insert_runs;
mod journal;
mod links;
mod read;
mod replay;
mod retention;
mod runs;
mod schedules;
mod statistics;
mod triggers;
mod write;

pub use claims::{Claim, ClaimedRun, RunLimit, claim_runs, extend_leases, list_due_accounts, release_runs};
pub use completions::{RunEnd, RunResult, complete_runs};
pub use find::{Search, find_entries, find_submissions};
pub use insert_runs::{InsertedRun, NewRun, OverLimit, insert_runs};
pub use journal::{
    HeldClaims, JournalRow, ResponseOutcome, RunLock, StepRow, hold_runs, list_journal, lock_run, lock_runs,
    store_response, store_steps,
};
pub use links::{LinkedRun, find_linked_run};
pub use read::{
    Authority, Automation, HttpAutomation, Statistics, find_automation, find_definition,
    find_http_automation, list_automations, list_failed_versions,
};
pub use replay::{copy_steps, find_incomplete_step, lock_replayed_run, set_source_hashes};
pub use retention::{
    EndedRuns, LockedRuns, delete_automation_runs, delete_ended_runs, delete_unused_definitions,
    list_ended_runs,
};
pub(crate) use retention::{delete_runs_of_form, delete_runs_of_submissions};
pub use runs::{
    LoggedStep, LoggedSteps, Run, RunFilter, RunStatus, cancel_run, find_answered, find_run, list_runs,
    list_steps, resume_run,
};
pub use schedules::{DueSchedule, advance_schedule, lock_due_schedules, lock_pending_schedules};
pub use statistics::{Failing, FailureStreak, find_durations, find_failing, record_ended_runs};
pub use triggers::{DueTrigger, delete_triggers, insert_triggers, lock_due_triggers};
pub use write::{
    AutomationChange, NewAutomation, SaveOutcome, begin_deletion, delete_automation, disable_automation,
    insert_automation, lock_automation, update_automation,
};
