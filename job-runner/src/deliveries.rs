//! Claims due webhook deliveries in Postgres, runs their attempts through apalis, and stores the results. Claims and
//! results are batched. No delivery passes through Redis; bus signals only start a claim earlier.
//!
//! A kill at any moment loses nothing: a claimed delivery without a result is due again when its lease expires.

mod completions;
mod concurrency;

use std::time::Duration;

use cache::BusEvent;
use completions::Completion;
use concurrency::{AttemptPermit, ConcurrencyLimiter};
use contract::Signal;
use domain::concurrency::ResponseSpeed;
use futures::{FutureExt, StreamExt};
use queue::InProcessQueue;
use service::{Rounds, Shutdown, ticks};
use store::deliveries::{self, Attempt, ClaimLimit, Lease};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;

use crate::config::Webhooks;
use crate::due_ids::{DueIds, DueSignal};
use crate::jobs;
use crate::state::JobState;

/// Maximum interval between two polls of all due deliveries, however long a poll takes.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Time that a lease has beyond the request's timeout, to store the result.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

struct ClaimedAttempt {
    attempt: Attempt,
    permit: AttemptPermit,
    /// How long the delivery was overdue when it was claimed.
    delay: Duration,
}

/// The loops of this module, watched for readiness.
pub(crate) struct Watched {
    pub(crate) claims: Rounds,
    pub(crate) completions: Rounds,
}

pub(crate) async fn run(
    state: JobState,
    config: Webhooks,
    watched: Watched,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let queue = InProcessQueue::new("deliveries");
    let (completed, completions) = mpsc::unbounded_channel();
    let handler = {
        let (state, timeout) = (state.clone(), config.timeout);
        move |claimed| run_attempt(state.clone(), timeout, claimed, completed.clone())
    };
    let storing =
        tokio::spawn(completions::run(state.clone(), watched.completions, config.batch_window, completions));
    let mut claimer = Claimer {
        limiter: ConcurrencyLimiter::new(config.max_concurrent, config.max_concurrent_per_webhook),
        due: DueIds::default(),
        queue: queue.clone(),
        rounds: watched.claims,
        state: state.clone(),
        config,
    };
    let ((), unstarted) =
        tokio::join!(claimer.run(&shutdown), queue.run_worker(handler, shutdown.requested()));
    let attempts: Vec<_> = unstarted.into_iter().map(|claimed| claimed.attempt).collect();
    // Concurrently: if Postgres is unavailable for one of them, the other must still be tried.
    let (released, stored) = tokio::join!(release(&state, &attempts), storing);
    if let Err(error) = released {
        tracing::warn!(%error, attempts = attempts.len(), "releasing unstarted attempts failed; their leases will expire");
    }
    stored?;
    Ok(())
}

async fn release(state: &JobState, attempts: &[Attempt]) -> Result<(), store::Error> {
    if attempts.is_empty() {
        return Ok(());
    }
    let mut conn = store::acquire(&state.db).await?;
    deliveries::release_attempts(&mut conn, attempts).await
}

/// Makes one attempt and waits until its result is stored.
async fn run_attempt(
    state: JobState,
    timeout: Duration,
    claimed: ClaimedAttempt,
    completed: mpsc::UnboundedSender<Completion>,
) {
    let ClaimedAttempt { attempt, mut permit, delay } = claimed;
    let span = tracing::info_span!("delivery", delivery.id = %attempt.delivery_id);
    service::telemetry::continue_from(&span, attempt.traceparent.as_deref());
    let started = std::time::Instant::now();
    let result = jobs::webhooks::deliver(&state, &attempt).instrument(span.clone()).await;
    let (elapsed, is_answered) = (started.elapsed(), result.outcome.status_code.is_some());
    permit.record_response(ResponseSpeed::of(elapsed, timeout, is_answered), elapsed, delay);
    let (stored, is_stored) = oneshot::channel();
    let at = result.outcome.at;
    let (delivery_id, number) = (attempt.delivery_id, attempt.attempt);
    let give_up_at = tokio::time::Instant::now() + LEASE_MARGIN;
    let completion = Completion { delivery_id, attempt: number, outcome: result.outcome, stored, give_up_at };
    let _receiver_dropped = completed.send(completion);
    // The permit counts in total until the result is stored or given up, so that attempts don't outrun the writer.
    let _stored_or_given_up = is_stored.await;
    let updating = async {
        if let Err(error) = jobs::webhooks::update_health(&state, &attempt, result.diagnosis, at).await {
            tracing::warn!(%error, "updating a webhook's health failed; the next attempt with the same diagnosis does it");
        }
    };
    updating.instrument(span).await;
}

/// When to claim again without a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextClaim {
    AtNextTick,
    WhenPermitsAvailable,
    Immediately,
}

/// Claims due deliveries as far as permits are available.
struct Claimer {
    state: JobState,
    config: Webhooks,
    queue: InProcessQueue<ClaimedAttempt>,
    rounds: Rounds,
    limiter: ConcurrencyLimiter,
    due: DueIds,
}

impl Claimer {
    async fn run(&mut self, shutdown: &Shutdown) {
        let mut events = std::pin::pin!(self.state.bus.subscribe());
        let mut ticks = ticks(self.config.poll_interval);
        let mut next = NextClaim::AtNextTick;
        loop {
            let mut signal = DueSignal::None;
            tokio::select! {
                () = shutdown.requested() => return,
                _ = ticks.tick() => signal = DueSignal::Any,
                () = self.limiter.wait_available(), if next == NextClaim::WhenPermitsAvailable => {}
                () = std::future::ready(()), if next == NextClaim::Immediately => {}
                Some(event) = events.next() => {
                    signal = receive(&mut self.due, event);
                    // A burst of signals causes one claim.
                    while let Some(Some(event)) = events.next().now_or_never() {
                        signal = signal.max(receive(&mut self.due, event));
                    }
                    if signal == DueSignal::None {
                        continue;
                    }
                }
            }
            let (polls, started) = (signal == DueSignal::Any, std::time::Instant::now());
            let rounds = self.rounds.clone();
            let claimed = rounds.watch(self.claim_all(polls)).await;
            if polls {
                // With thousands of webhooks waiting for retries, a poll is slow; polls take at most a tenth of the time.
                let pause = if claimed.is_ok() {
                    (started.elapsed() * 10).min(MAX_POLL_INTERVAL)
                } else {
                    Duration::ZERO
                };
                ticks.reset_after(self.config.poll_interval.max(pause));
            }
            match claimed {
                Ok(has_queried) => {
                    next = self.next_claim();
                    if !has_queried {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "claiming due deliveries failed and is retried"
                    );
                    next = NextClaim::AtNextTick;
                }
            }
            let _shutdown_requested = shutdown.unless_requested(pause(self.config.batch_window)).await;
        }
    }

    fn next_claim(&self) -> NextClaim {
        if self.due.is_empty() {
            NextClaim::AtNextTick
        } else if self.claim_limits().is_empty() {
            NextClaim::WhenPermitsAvailable
        } else {
            NextClaim::Immediately
        }
    }

    /// Claims due deliveries as far as permits are available; `polls` looks for all due webhooks first. Returns whether
    /// Postgres was queried.
    async fn claim_all(&mut self, polls: bool) -> anyhow::Result<bool> {
        let mut limits = self.claim_limits();
        if !polls && limits.is_empty() {
            return Ok(false);
        }
        let mut conn = store::acquire(&self.state.deliveries_db).await?;
        if polls {
            self.due.replace(deliveries::list_due(&mut conn, self.state.clock.now()).await?);
            limits = self.claim_limits();
        }
        if !limits.is_empty() {
            let mut attempts = deliveries::claim(&mut conn, &self.lease(), &limits).await?;
            // The claims are committed, so they are sent in any case.
            if let Err(error) = deliveries::read_field_labels(&mut conn, &mut attempts).await {
                tracing::warn!(%error, "the labels of fields were not read; deliveries name the fields instead");
            }
            let asked = limits.iter().map(|limit| (limit.webhook_id, limit.limit));
            self.due.record_claim(asked, attempts.iter().map(|attempt| attempt.webhook_id));
            self.start(attempts);
        }
        Ok(true)
    }

    fn claim_limits(&self) -> Vec<ClaimLimit> {
        self.limiter.claim_limits(self.due.iter(), self.limiter.available())
    }

    fn lease(&self) -> Lease {
        let now = self.state.clock.now();
        Lease { now, until: now + self.config.timeout + LEASE_MARGIN }
    }

    fn start(&self, attempts: Vec<Attempt>) {
        for attempt in attempts {
            let permit = self.limiter.acquire(attempt.webhook_id);
            let id = format!("delivery:{}:{}", attempt.delivery_id, attempt.attempt);
            let delay = (self.state.clock.now() - attempt.due_at).to_std().unwrap_or_default();
            // Fails only during shutdown; then the delivery is due again when its lease expires.
            let _worker_ended = self.queue.start(id, ClaimedAttempt { attempt, permit, delay });
        }
    }
}

/// Queues the webhooks that the event names.
fn receive(due: &mut DueIds, event: BusEvent<Signal>) -> DueSignal {
    match event {
        BusEvent::Message(Signal::DeliveriesDue { webhook_ids }) if !webhook_ids.is_empty() => {
            webhook_ids.into_iter().for_each(|id| due.enqueue(id));
            DueSignal::Some
        }
        BusEvent::Message(Signal::DeliveriesDue { .. }) | BusEvent::Lagged => DueSignal::Any,
        BusEvent::Message(_) | BusEvent::Disconnected => DueSignal::None,
    }
}

#[expect(clippy::disallowed_methods, reason = "due deliveries are batched meanwhile")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
