//! Claims due certificates, orders them concurrently and stores the results.
//!
//! A claim is a lease that is extended while the order is under way. When this process dies, another replica continues the
//! order after the lease.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use contract::Signal;
use domain::Transient;
use domain::certificates::{Delay, FailureCode, renew_at, retry_at};
use service::{Rounds, Shutdown, ticks};
use store::certificates::{self, DueCertificate, Failure, IssuedCertificate, Lease};
use tokio::task::JoinSet;

use super::authorities::ConfiguredAuthority;
use super::failure::AttemptError;
use super::issuer::Issuing;
use super::order::{self, IssuedOrder, Outcome};
use crate::metrics;
use crate::state::JobState;

/// How long the renewal for a domain that is not verified any more is put off.
const UNSERVED_PAUSE: TimeDelta = TimeDelta::hours(1);
/// Pause before a result is stored again.
const STORE_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Orders due certificates until shutdown, which aborts the orders under way: their leases expire.
pub(crate) async fn run(issuing: Arc<Issuing>, rounds: Rounds, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut attempts = JoinSet::new();
    let mut ticks = ticks(issuing.settings.poll_interval);
    loop {
        // The end of an attempt makes room for the next one at once.
        let next = async {
            tokio::select! {
                _ = ticks.tick() => None,
                Some(ended) = attempts.join_next() => Some(ended),
            }
        };
        match shutdown.unless_requested(next).await {
            None => return Ok(()),
            Some(Some(Err(error))) => tracing::error!(%error, "an attempt to order a certificate panicked"),
            Some(_) => {}
        }
        match shutdown.unless_requested(rounds.watch(start_due(&issuing, &mut attempts))).await {
            None => return Ok(()),
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::warn!(%error, "claiming due certificates failed and is retried"),
        }
    }
}

/// Claims as many due certificates as may be ordered concurrently, and starts their orders.
async fn start_due(issuing: &Arc<Issuing>, attempts: &mut JoinSet<()>) -> Result<(), store::Error> {
    let free = issuing.settings.max_concurrent.saturating_sub(attempts.len());
    if free == 0 {
        return Ok(());
    }
    let state = &issuing.state;
    let now = state.clock.now();
    let id = state.rng.uuid_v7(now);
    let mut conn = store::acquire(&state.db).await?;
    certificates::stop_unserved(&mut conn, &issuing.own_names, now, now + UNSERVED_PAUSE).await?;
    let limit = i64::try_from(free).unwrap_or(i64::MAX);
    let claimed =
        certificates::claim_due(&mut conn, id, now, now + issuing.settings.lease_ttl, limit).await?;
    drop(conn);
    for due in claimed {
        let lease = Lease { name: due.name.clone(), id };
        attempts.spawn(attempt(Arc::clone(issuing), due, lease));
    }
    Ok(())
}

/// Makes one attempt while the lease is extended.
async fn attempt(issuing: Arc<Issuing>, mut due: DueCertificate, lease: Lease) {
    let ordering = async {
        let (at, result) = order_somewhere(&issuing, &mut due, &lease).await;
        if due.name.starts_with("*.") && due.order_url.is_some() {
            issuing.dns.remove(issuing.state.clock.now()).await;
        }
        store_result(&issuing, at, &due, &lease, &result).await
    };
    tokio::select! {
        finished = ordering => if let Err(error) = finished {
            let error = format!("{error:#}");
            tracing::warn!(certificate.name = lease.name, error, "ordering a certificate failed and is repeated");
        },
        () = keep_lease(&issuing, &lease) => {
            tracing::warn!(certificate.name = lease.name, "the lease of an order was lost; another replica continues it");
        }
    }
}

/// Orders at the authority of this attempt. What its limits have delayed for long goes to the other one.
async fn order_somewhere<'a>(
    issuing: &'a Issuing,
    due: &mut DueCertificate,
    lease: &Lease,
) -> (&'a ConfiguredAuthority, Result<Outcome, AttemptError>) {
    let now = issuing.state.clock.now();
    let (authorities, stored) = (&issuing.authorities, due.clone());
    let at = authorities.choose(due, now);
    let delay = match order_in_time(issuing, at, due, lease).await {
        Ok(Outcome::Delayed(delay)) => delay,
        result => return (at, result),
    };
    let Some(other) = authorities.other(at) else { return (at, Ok(Outcome::Delayed(delay))) };
    let other_at = authorities.fallback_at(due, now);
    if other_at > now {
        let until = delay.until.min(other_at);
        return (at, Ok(Outcome::Delayed(Delay { until, ..delay })));
    }
    // The order under way may be one of the other authority.
    *due = stored;
    match order_in_time(issuing, other, due, lease).await {
        Ok(Outcome::Delayed(others)) if others.until > delay.until => (at, Ok(Outcome::Delayed(delay))),
        result => (other, result),
    }
}

async fn order_in_time(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    due: &mut DueCertificate,
    lease: &Lease,
) -> Result<Outcome, AttemptError> {
    let ordered = order::run(issuing, at, due, lease);
    match tokio::time::timeout(issuing.settings.order_timeout, ordered).await {
        Ok(result) => result,
        Err(_elapsed) => {
            if due.order_url.is_none() {
                order::uncount(issuing, at, due, None).await?;
            }
            Err(instant_acme::Error::Timeout(None).into())
        }
    }
}

/// Extends the lease until it is lost.
async fn keep_lease(issuing: &Issuing, lease: &Lease) {
    let ttl = issuing.settings.lease_ttl;
    let mut ticks = ticks(ttl / 3);
    let mut expires_at = tokio::time::Instant::now() + ttl;
    loop {
        ticks.tick().await;
        let begun = tokio::time::Instant::now();
        if begun >= expires_at {
            return;
        }
        let extended = async {
            let mut conn = store::acquire(&issuing.state.db).await?;
            certificates::extend_lease(&mut conn, lease, issuing.state.clock.now() + ttl).await
        };
        match extended.await {
            Ok(true) => expires_at = begun + ttl,
            Ok(false) => return,
            Err(error) => tracing::debug!(%error, "extending the lease of an order failed and is retried"),
        }
    }
}

/// Stores the result of an attempt. While Postgres is unavailable, this is retried: else the result would be lost, and the
/// certificate would wait for the end of the lease.
async fn store_result(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    due: &DueCertificate,
    lease: &Lease,
    result: &Result<Outcome, AttemptError>,
) -> anyhow::Result<()> {
    let mut attempts = ticks(STORE_RETRY_INTERVAL);
    loop {
        attempts.tick().await;
        match store_result_once(issuing, at, due, lease, result).await {
            Err(error) if is_transient(&error) => {
                let (name, error) = (&lease.name, format!("{error:#}"));
                tracing::warn!(
                    certificate.name = name,
                    error,
                    "storing the result of an order failed and is retried"
                );
            }
            stored => return stored,
        }
    }
}

fn is_transient(error: &anyhow::Error) -> bool {
    error.downcast_ref::<store::Error>().is_some_and(Transient::is_transient)
}

async fn store_result_once(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    due: &DueCertificate,
    lease: &Lease,
    result: &Result<Outcome, AttemptError>,
) -> anyhow::Result<()> {
    let counted = match result {
        Ok(Outcome::Issued(issued)) => match store_issued(&issuing.state, at, lease, issued).await {
            Ok(()) => "issued",
            Err(error) if is_transient(&error) => return Err(error),
            Err(error) => store_failure(issuing, at, due, lease, &AttemptError::Internal(error)).await?,
        },
        Ok(Outcome::Delayed(delay)) => {
            let (mut conn, now) = (store::acquire(&issuing.state.db).await?, issuing.state.clock.now());
            certificates::postpone(&mut conn, lease, delay.until, &delay.reason, now).await?;
            "delayed"
        }
        Err(error) => store_failure(issuing, at, due, lease, error).await?,
    };
    metrics::CERTIFICATES_ORDERED.add(1, &[("result", counted)]);
    Ok(())
}

async fn store_issued(
    state: &JobState,
    at: &ConfiguredAuthority,
    lease: &Lease,
    order: &IssuedOrder,
) -> anyhow::Result<()> {
    let facts = &order.facts;
    let issued = IssuedCertificate {
        chain: &order.chain,
        sealed_key: &order.sealed_key,
        issuer: &facts.issuer,
        not_before: facts.not_before,
        not_after: facts.not_after,
        renew_at: Some(renew_at(facts.not_before, facts.not_after, None, state.rng.fraction())),
    };
    let now = state.clock.now();
    let mut tx = store::begin(&state.db).await?;
    let signals = certificates::complete_order(&mut tx, lease, &at.directory_url, &issued, now).await?;
    store::commit(tx).await?;
    publish(state, &signals.unwrap_or_default()).await;
    tracing::info!(certificate.name = lease.name, certificate.not_after = %facts.not_after, "a certificate was issued");
    Ok(())
}

/// Records a failed attempt with the time of the next one, and returns its name in the metric.
async fn store_failure(
    issuing: &Issuing,
    at: &ConfiguredAuthority,
    due: &DueCertificate,
    lease: &Lease,
    error: &AttemptError,
) -> anyhow::Result<&'static str> {
    let Some(explained) = error.explain() else { return Ok("lease_lost") };
    let state = &issuing.state;
    let now = state.clock.now();
    let failed_attempts = due.failed_attempts.unsigned_abs() + 1;
    let failure = Failure {
        code: explained.code,
        error: &explained.words,
        next_attempt_at: retry_at(
            &issuing.settings.retry_schedule,
            failed_attempts,
            state.rng.fraction(),
            now,
        ),
        keeps_order: explained.keeps_order,
    };
    let mut tx = store::begin(&state.db).await?;
    certificates::record_failure(&mut tx, lease, &failure, now).await?;
    if explained.code == FailureCode::Refused {
        store::acme::mark_failed(&mut tx, &at.directory_url, &lease.name, now).await?;
    }
    if !explained.keeps_order {
        store::acme::delete_challenges(&mut tx, &lease.name).await?;
    }
    store::commit(tx).await?;
    let (name, code) = (&lease.name, explained.code.as_str());
    if let AttemptError::Internal(error) = error {
        let error = format!("{error:#}");
        tracing::error!(certificate.name = name, error, "this service failed while it ordered a certificate");
    }
    let (error, next_attempt_at) = (&explained.words, failure.next_attempt_at);
    tracing::warn!(certificate.name = name, code, error, %next_attempt_at, "a certificate was not issued");
    Ok(code)
}

/// Publishes signals after a commit. The relay publishes those that are lost here.
pub(super) async fn publish(state: &JobState, signals: &[Signal]) {
    for signal in signals {
        if let Err(error) = state.bus.publish(signal).await {
            tracing::debug!(%error, "publishing a signal failed; the relay publishes it");
        }
    }
}
