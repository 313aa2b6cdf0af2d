//! Measures what waits in the queues of Postgres. One job-runner of all does it, because the sums over all job-runners would
//! count each row once for each.

use std::time::Duration;

use chrono::{DateTime, Utc};
use service::{Rounds, Shutdown, ticks};
use store::queue_backlog::{QueueBacklog, QueueMeter};

use crate::metrics;
use crate::state::JobState;

/// Interval between two measurements.
pub(crate) const INTERVAL: Duration = Duration::from_secs(15);

pub(crate) async fn run(state: JobState, rounds: Rounds, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut meter = None;
    let mut ticks = ticks(INTERVAL);
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        if let Err(error) = rounds.watch(measure(&state, &mut meter)).await {
            tracing::warn!(%error, "measuring the queues failed and is repeated");
            meter = None;
        }
        if meter.is_none() {
            record(&[], state.clock.now());
        }
    }
    Ok(())
}

async fn measure(state: &JobState, meter: &mut Option<QueueMeter>) -> Result<(), store::Error> {
    if meter.is_none() {
        *meter = QueueMeter::try_acquire(&state.maintenance_db).await?;
    }
    if let Some(meter) = meter {
        let now = state.clock.now();
        record(&meter.read(now).await?, now);
    }
    Ok(())
}

fn record(backlogs: &[QueueBacklog], now: DateTime<Utc>) {
    let labels: Vec<_> = backlogs.iter().map(|backlog| [("queue", backlog.queue.as_str())]).collect();
    let all = || labels.iter().map(|label| &label[..]).zip(backlogs);
    #[expect(clippy::cast_precision_loss, reason = "a count of rows is exact in a double")]
    metrics::QUEUE_DUE_ROWS.set_all(all().map(|(label, backlog)| (label, backlog.due as f64)));
    let age = |oldest: Option<DateTime<Utc>>| oldest.map_or(0.0, |oldest| (now - oldest).as_seconds_f64());
    metrics::QUEUE_OLDEST_SECONDS.set_all(all().map(|(label, backlog)| (label, age(backlog.oldest))));
}
