//! Tells webhooks of forms whose time has come. What is to be looked at stands in Postgres: one that closed while nobody
//! ran is told by the first who does, and of many who look at once one tells.

use domain::Fault;
use service::{Shutdown, metrics};
use store::forms::{close_form, list_closing};
use store::submissions::Writer;
use uuid::Uuid;

use crate::Runner;
use crate::config::Closings;

/// Forms found at a time.
const BATCH: i64 = 100;

pub(crate) async fn run(runner: Runner, config: Closings, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut turns = tokio::time::interval(config.every);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(turns.tick()).await.is_some() {
        if let Some(Err(error)) = shutdown.unless_requested(close_due(&runner)).await {
            tracing::warn!(%error, "forms that have closed are told of at the next look");
        }
    }
    Ok(())
}

/// Each form by itself: one that can't be told of keeps no other.
async fn close_due(runner: &Runner) -> Result<(), store::Error> {
    loop {
        let mut conn = store::acquire(&runner.db).await?;
        let forms = list_closing(&mut conn, runner.clock.now(), BATCH).await?;
        drop(conn);
        let mut told = 0;
        for (account_id, id) in &forms {
            match close(runner, *account_id, *id).await {
                Ok(is_told) => told += usize::from(is_told),
                Err(error) if error.is_unavailable() => return Err(error),
                Err(error) => tracing::error!(%error, form.id = %id, "a form's end can't be told"),
            }
        }
        // Those that are left are being edited, or somebody else's.
        if told == 0 || forms.len() < usize::try_from(BATCH).unwrap_or(usize::MAX) {
            return Ok(());
        }
    }
}

async fn close(runner: &Runner, account_id: Uuid, id: Uuid) -> Result<bool, store::Error> {
    let now = runner.clock.now();
    let new_id = || runner.rng.uuid_v7(now);
    let writer = Writer { now, traceparent: None, new_id: &new_id };
    let mut tx = store::begin(&runner.db).await?;
    let closed = close_form(&mut tx, account_id, id, &writer).await?;
    store::commit(tx).await?;
    let Some((why, signal)) = closed else { return Ok(false) };
    metrics::counter("job_runner_form_close_total").add(1, &[("reason", why.word())]);
    if let Some(signal) = signal
        && let Err(error) = runner.bus.publish(&signal).await
    {
        tracing::warn!(%error, "the deliveries of a form's closing go out at the next look");
    }
    Ok(true)
}
