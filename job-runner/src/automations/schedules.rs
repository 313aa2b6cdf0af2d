//! Starts runs at the times of schedules. The run of a time is a unique row, so each time has one run, however many
//! job-runners look.

use std::sync::Arc;
use std::time::Duration;

use automation::definition::{ScheduleTrigger, Trigger};
use automation::schedule::{Schedule, parse_zone};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::json;
use service::{Rounds, Shutdown};
use store::automations::{DueSchedule, NewRun, advance_schedule, lock_due_schedules};

use super::definitions::Definitions;
use super::new_runs::{self, AccountRun, Announcer};
use crate::state::JobState;

/// Schedules of one transaction.
const BATCH: i64 = 200;
/// How late a run may start without counting as missed (`catchUp`): a restart is no downtime.
const TOLERANCE: TimeDelta = TimeDelta::minutes(1);

pub(super) async fn run(
    state: JobState,
    poll_interval: Duration,
    definitions: Arc<Definitions>,
    announcer: Announcer,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut pause = Duration::ZERO;
    while shutdown
        .unless_requested(tokio::time::sleep_until(tokio::time::Instant::now() + pause))
        .await
        .is_some()
    {
        let starting = rounds.watch(start_all(&state, &definitions, &announcer, &rounds));
        if let Some(Err(error)) = shutdown.unless_requested(starting).await {
            tracing::warn!(
                error = format!("{error:#}"),
                "starting the runs of schedules failed and is retried"
            );
        }
        pause = poll_interval.min(until_next_second(state.clock.now()));
    }
    Ok(())
}

/// Schedules fire at whole minutes, so polls at whole seconds are in time.
fn until_next_second(now: DateTime<Utc>) -> Duration {
    let passed = Duration::from_nanos(u64::from(now.timestamp_subsec_nanos() % 1_000_000_000));
    Duration::from_secs(1).saturating_sub(passed) + Duration::from_millis(1)
}

async fn start_all(
    state: &JobState,
    definitions: &Definitions,
    announcer: &Announcer,
    rounds: &Rounds,
) -> anyhow::Result<()> {
    while start_batch(state, definitions, announcer).await? == BATCH {
        rounds.progress();
    }
    Ok(())
}

/// Inserts the runs of due schedules. Returns the number of schedules.
async fn start_batch(
    state: &JobState,
    definitions: &Definitions,
    announcer: &Announcer,
) -> anyhow::Result<i64> {
    let now = state.clock.now();
    let mut tx = store::begin(&state.automations_db).await?;
    let due = lock_due_schedules(&mut tx, now, BATCH).await?;
    if due.is_empty() {
        return Ok(0);
    }
    let count = i64::try_from(due.len())?;
    let mut runs = Vec::with_capacity(due.len());
    for one in due {
        let version = definitions.read(one.account_id, &one.definition_hash, &one.definition);
        let schedule =
            version.as_ref().map_err(Clone::clone).and_then(|version| match &version.definition.trigger {
                Trigger::Schedule(trigger) => Ok((schedule_of(trigger, &one.timezone)?, trigger)),
                _ => Err("it has no schedule".to_owned()),
            });
        let (fire_at, next) = match schedule {
            Ok((schedule, trigger)) => {
                (due_time(&schedule, trigger, one.fire_at, now), schedule.next_after(now))
            }
            Err(error) => {
                let automation_id = one.automation_id;
                tracing::error!(error, automation.id = %automation_id, "a stored schedule can't be read; it fires no more");
                (None, None)
            }
        };
        advance_schedule(&mut tx, one.account_id, one.automation_id, next).await?;
        if let Some(fire_at) = fire_at.filter(|_| !one.is_suspended) {
            let trigger = json!({"scheduledAt": fire_at.to_rfc3339_opts(SecondsFormat::Secs, true)});
            let concurrency = version.ok().and_then(|version| version.concurrency(&trigger));
            runs.push(run_of(one, fire_at, trigger, concurrency, state.rng.uuid_v7(now)));
        }
    }
    let accounts = new_runs::insert(&mut tx, now, runs).await?;
    store::commit(tx).await?;
    announcer.announce(accounts);
    Ok(count)
}

fn schedule_of(trigger: &ScheduleTrigger, account_zone: &str) -> Result<Schedule, String> {
    let zone =
        parse_zone(trigger.timezone.as_deref().unwrap_or(account_zone)).map_err(|error| error.to_string())?;
    Schedule::parse(&trigger.cron, zone).map_err(|error| error.to_string())
}

/// Returns the time that gets its run now: `fire_at` if it is the only one that passed.
fn due_time(
    schedule: &Schedule,
    trigger: &ScheduleTrigger,
    fire_at: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Option<DateTime<Utc>> {
    schedule.missed(fire_at - TimeDelta::seconds(1), now, trigger.catch_up, TOLERANCE)
}

fn run_of(
    due: DueSchedule,
    fire_at: DateTime<Utc>,
    trigger: serde_json::Value,
    concurrency: Option<(i32, Option<String>)>,
    id: uuid::Uuid,
) -> AccountRun {
    let run = NewRun {
        id,
        automation_id: due.automation_id,
        definition_hash: due.definition_hash,
        trigger_type: "schedule",
        trigger,
        is_test: false,
        depth: 0,
        concurrency,
        submission_id: None,
        source_submission_id: None,
        fire_at: Some(fire_at),
        traceparent: None,
    };
    AccountRun { account_id: due.account_id, plan: due.plan, run }
}
