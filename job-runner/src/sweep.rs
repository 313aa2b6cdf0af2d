//! Finds due work that nobody is at: retries whose time has come, trials that have ended, requests for help, and
//! what a lost queue or a killed worker left behind. Postgres knows it all; queueing something twice does no harm.

use contract::Job;
use queue::Task;
use service::Shutdown;
use store::deliveries;

use crate::Runner;
use crate::config::{Mail, Outbox};
use crate::jobs::{blobs, help, notifications, purges};

pub(crate) async fn run(runner: Runner, config: Outbox, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(config.sweep_every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        if let Err(error) = sweep(&runner, &config).await {
            tracing::warn!(error = format!("{error:#}"), "due deliveries wait for the next sweep");
        }
    }
    Ok(())
}

pub(crate) async fn purge(runner: Runner, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(runner.purge.every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        // Between two batches the service may end: what is left is found by the next sweep.
        let swept = shutdown.unless_requested(async {
            purges::end_expired_trials(&runner).await?;
            purges::forget_submissions(&runner).await?;
            purges::order_due(&runner).await
        });
        if let Some(Err(error)) = swept.await {
            tracing::warn!(error = format!("{error:#}"), "what has ended is deleted by the next sweep");
        }
    }
    Ok(())
}

pub(crate) async fn tidy(runner: Runner, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(runner.tidy.every);
    let mut rare_ticks = tokio::time::interval(runner.tidy.stranded_every);
    for ticks in [&mut ticks, &mut rare_ticks] {
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    }
    let turn = async || {
        let tidied = tokio::select! {
            _ = ticks.tick() => blobs::let_go(&runner).await,
            _ = rare_ticks.tick() => blobs::forget_stranded(&runner).await,
        };
        if let Err(error) = tidied {
            tracing::warn!(error = format!("{error:#}"), "bytes that nothing needs wait for the next sweep");
        }
    };
    let mut turn = turn;
    while shutdown.unless_requested(turn()).await.is_some() {}
    Ok(())
}

pub(crate) async fn mail(runner: Runner, config: Mail, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(config.every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        let swept = shutdown.unless_requested(async {
            help::order_due(&runner, config.batch).await?;
            notifications::order_due(&runner, config.batch).await
        });
        if let Some(Err(error)) = swept.await {
            tracing::warn!(error = format!("{error:#}"), "mails wait for the next sweep");
        }
    }
    Ok(())
}

async fn sweep(runner: &Runner, config: &Outbox) -> anyhow::Result<()> {
    let room = i64::try_from(runner.queue.capacity_left().await?)?;
    if room == 0 {
        return Ok(());
    }
    let now = runner.clock.now();
    let mut conn = store::acquire(&runner.db).await?;
    let due = deliveries::list_due(&mut conn, now, now - config.untried_after, room).await?;
    if due.is_empty() {
        return Ok(());
    }
    let task = |delivery_id| {
        let job = Job::DeliverWebhookV1 { delivery_id };
        Task { id: job.name(), job, traceparent: None }
    };
    let queued = runner.queue.push(due.into_iter().map(task).collect()).await?;
    tracing::debug!(queued, "swept");
    Ok(())
}
