//! Finds due work that nobody is at: trials that have ended, mails, bytes that nothing needs, and what a
//! lost queue or a killed worker left behind. Postgres knows it all; queueing something twice does no harm.

use service::Shutdown;

use crate::Runner;
use crate::config::Mail;
use crate::jobs::{blobs, mails, purges};

pub(crate) async fn purge(runner: Runner, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(runner.purge.every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        // Between two batches the service may end: what is left is found by the next sweep.
        let swept = shutdown.unless_requested(async {
            purges::end_expired_trials(&runner).await?;
            purges::forget_submissions(&runner).await?;
            purges::forget_of_webhooks(&runner).await?;
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
        let swept = shutdown.unless_requested(mails::order_due(&runner, config.batch));
        if let Some(Err(error)) = swept.await {
            tracing::warn!(error = format!("{error:#}"), "mails wait for the next sweep");
        }
    }
    Ok(())
}
