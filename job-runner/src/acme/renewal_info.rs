//! Reads when the authorities want certificates renewed (ACME renewal information, RFC 9773), as often as they ask for.
//! Certificates of an authority without it are renewed when a third of their life is left.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use chrono::{DateTime, TimeDelta, Utc};
use domain::certificates::{fraction_of, renew_at};
use futures::StreamExt as _;
use instant_acme::Error;
use service::{Rounds, Shutdown, every, ticks};
use store::renewal_info::{self, DueRenewalInfo, RenewalInfo};

use super::chain;
use super::failure::AttemptError;
use super::issuer::Issuing;

/// Certificates claimed at once, and requests under way at once.
const BATCH: i64 = 100;
const CONCURRENT: usize = 4;
/// When information that could not be read is read again (RFC 9773, section 4.3.3).
const RETRY: TimeDelta = TimeDelta::hours(6);
/// Bounds of the interval that an authority asks for.
const MIN_INTERVAL: Duration = Duration::from_mins(1);
const MAX_INTERVAL: Duration = Duration::from_hours(24);

/// Runs until shutdown.
pub(crate) async fn run(issuing: Arc<Issuing>, rounds: Rounds, shutdown: Shutdown) -> anyhow::Result<()> {
    every(&rounds, ticks(issuing.settings.poll_interval), &shutdown, || read_due(&issuing, &rounds)).await
}

async fn read_due(issuing: &Issuing, rounds: &Rounds) -> anyhow::Result<()> {
    let state = &issuing.state;
    let now = state.clock.now();
    let mut conn = store::acquire(&state.db).await?;
    let due = renewal_info::claim_due(&mut conn, now, now + RETRY, BATCH).await?;
    drop(conn);
    let mut reads = futures::stream::iter(due).map(|due| read_one(issuing, due)).buffer_unordered(CONCURRENT);
    while reads.next().await.is_some() {
        rounds.progress();
    }
    Ok(())
}

async fn read_one(issuing: &Issuing, due: DueRenewalInfo) {
    if let Err(error) = store_one(issuing, &due).await {
        let (name, error) = (&due.name, format!("{error:#}"));
        tracing::warn!(certificate.name = name, error, "renewal information was not read and is read again");
    }
}

async fn store_one(issuing: &Issuing, due: &DueRenewalInfo) -> anyhow::Result<()> {
    let read = read(issuing, due).await?;
    let info = RenewalInfo {
        name: &due.name,
        chain: &due.chain,
        renew_at: read.map(|read| read.0),
        due_at: read.map(|read| read.1),
    };
    let mut conn = store::acquire(&issuing.state.db).await?;
    Ok(renewal_info::update_renewal_info(&mut conn, &info).await?)
}

/// Returns when to renew a certificate and when to ask again; `None` if its authority does not say.
async fn read(
    issuing: &Issuing,
    due: &DueRenewalInfo,
) -> anyhow::Result<Option<(DateTime<Utc>, DateTime<Utc>)>> {
    let Some(at) = issuing.authorities.find(&due.issuer_directory) else { return Ok(None) };
    let Some(identifier) = chain::identifier(&due.chain) else { return Ok(None) };
    let account = issuing.authorities.account(&issuing.state, at).await.map_err(explain)?;
    let (info, interval) = match account.renewal_info(&identifier).await {
        Err(Error::Unsupported(_)) => return Ok(None),
        read => read.map_err(|error| explain(error.into()))?,
    };
    let window = &info.suggested_window;
    let time = |seconds| DateTime::from_timestamp(seconds, 0).context("a time out of range");
    let window = (time(window.start.unix_timestamp())?, time(window.end.unix_timestamp())?);
    let moment = renew_at(due.not_before, due.not_after, Some(window), fraction_of(&identifier.to_string()));
    let interval = interval.clamp(MIN_INTERVAL, MAX_INTERVAL);
    Ok(Some((moment, issuing.state.clock.now() + interval)))
}

fn explain(error: AttemptError) -> anyhow::Error {
    match error {
        AttemptError::Internal(error) => error,
        error => anyhow!(error.explain().map(|explained| explained.words).unwrap_or_default()),
    }
}
