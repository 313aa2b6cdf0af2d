//! From the rows of due deliveries to attempts and back: claimed in Postgres many at a time, run by apalis, their ends
//! written many at a time. No delivery passes through Redis; it only says sooner that there is something to claim.
//!
//! Killed at any moment, this loses nothing: whatever was claimed and not ended is due again when its lease is over.

mod endings;
mod seats;
mod waiting;

use std::time::Duration;

use domain::places::pace;
use endings::Ended;
use futures::{FutureExt, StreamExt};
use queue::InProcessQueue;
use seats::{Seat, Seats};
use service::Shutdown;
use store::deliveries::{self, Attempt, Lease, Room};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;
use waiting::{Heard, Waiting};

use crate::config::Webhooks;
use crate::{Runner, jobs};

/// Between two looks at all that is due, however long they take.
const REST_LONGEST: Duration = Duration::from_secs(10);
/// What a lease is longer than the request's timeout: time to write the end down.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// An attempt that has been claimed.
struct Begun {
    attempt: Attempt,
    seat: Seat,
}

pub(crate) async fn run(runner: Runner, config: Webhooks, shutdown: Shutdown) -> anyhow::Result<()> {
    let in_process = InProcessQueue::new("deliveries");
    let (end, ended) = mpsc::unbounded_channel();
    let handler = {
        let (runner, timeout) = (runner.clone(), config.timeout);
        move |begun| carry_out(runner.clone(), timeout, begun, end.clone())
    };
    let writing = tokio::spawn(endings::run(runner.clone(), LEASE_MARGIN, config.gather_for, ended));
    let mut claims = Claims {
        seats: Seats::new(config.concurrency, config.per_webhook),
        waiting: Waiting::default(),
        in_process: in_process.clone(),
        runner: runner.clone(),
        config,
    };
    let ((), unbegun) =
        tokio::join!(claims.run(&shutdown), in_process.run_worker(handler, shutdown.requested()));
    let attempts: Vec<_> = unbegun.into_iter().map(|begun| begun.attempt).collect();
    // Beside each other: were Postgres away for the one, the other's ends would still have to be written.
    let (given_back, written) = tokio::join!(give_back(&runner, &attempts), writing);
    if let Err(error) = given_back {
        tracing::warn!(%error, attempts = attempts.len(), "what was not begun waits until its leases are over");
    }
    written?;
    Ok(())
}

async fn give_back(runner: &Runner, attempts: &[Attempt]) -> Result<(), store::Error> {
    if attempts.is_empty() {
        return Ok(());
    }
    let mut conn = store::acquire(&runner.db).await?;
    deliveries::give_back(&mut conn, attempts).await
}

/// One attempt, to where its end is written down.
async fn carry_out(runner: Runner, timeout: Duration, begun: Begun, end: mpsc::UnboundedSender<Ended>) {
    let Begun { attempt, mut seat } = begun;
    let span = tracing::info_span!("delivery", delivery.id = %attempt.delivery_id);
    service::telemetry::continue_from(&span, attempt.traceparent.as_deref());
    let began = std::time::Instant::now();
    let tried = jobs::webhooks::deliver(&runner, &attempt).instrument(span).await;
    seat.answered(pace(began.elapsed(), timeout));
    let (written, is_written) = oneshot::channel();
    let at = tried.outcome.at;
    let (delivery_id, number) = (attempt.delivery_id, attempt.attempt);
    let _writer_gone = end.send(Ended { delivery_id, attempt: number, outcome: tried.outcome, written });
    // It comes to an end either way; until then it is one of all, so that no more begins than can be written down.
    let _written_or_given_up = is_written.await;
    if let Err(error) = jobs::webhooks::note(&runner, &attempt, tried.diagnosis, at).await {
        tracing::warn!(%error, "what an attempt shows of its webhook waits for the next that shows it");
    }
}

/// When to look again, if nobody says that something is due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    AtTheTick,
    WhenPlacesComeFree,
    AtOnce,
}

/// Finds what is due, as far as there are places.
struct Claims {
    runner: Runner,
    config: Webhooks,
    in_process: InProcessQueue<Begun>,
    seats: Seats,
    waiting: Waiting,
}

impl Claims {
    async fn run(&mut self, shutdown: &Shutdown) {
        let mut events = std::pin::pin!(self.runner.bus.subscribe());
        let mut ticks = tokio::time::interval(self.config.look_every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut next = Next::AtTheTick;
        loop {
            let mut heard = Heard::Nothing;
            tokio::select! {
                () = shutdown.requested() => return,
                _ = ticks.tick() => heard = Heard::Anybody,
                () = self.seats.freed(), if next == Next::WhenPlacesComeFree => {}
                () = std::future::ready(()), if next == Next::AtOnce => {}
                Some(event) = events.next() => {
                    heard = self.waiting.hear(event);
                    // A burst of signals is one reason to look, not many.
                    while let Some(Some(event)) = events.next().now_or_never() {
                        heard = heard.max(self.waiting.hear(event));
                    }
                    if heard == Heard::Nothing {
                        continue;
                    }
                }
            }
            let (looks_around, began) = (heard == Heard::Anybody, std::time::Instant::now());
            let claimed = self.claim_all(looks_around).await;
            if looks_around {
                // Where thousands of webhooks wait for their retries, a look takes its time: a tenth of all time, no more.
                let rest =
                    if claimed.is_ok() { (began.elapsed() * 10).min(REST_LONGEST) } else { Duration::ZERO };
                ticks.reset_after(self.config.look_every.max(rest));
            }
            match claimed {
                Ok(has_asked) => {
                    next = self.next();
                    if !has_asked {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), "due deliveries wait for the next look");
                    next = Next::AtTheTick;
                }
            }
            let _asked_to_stop = shutdown.unless_requested(gather(self.config.gather_for)).await;
        }
    }

    fn next(&self) -> Next {
        if self.waiting.is_empty() {
            Next::AtTheTick
        } else if self.rooms().is_empty() {
            Next::WhenPlacesComeFree
        } else {
            Next::AtOnce
        }
    }

    /// Claims what is due, as far as there are places; gives whether Postgres had to be asked.
    async fn claim_all(&mut self, looks_around: bool) -> anyhow::Result<bool> {
        let mut rooms = self.rooms();
        if !looks_around && rooms.is_empty() {
            return Ok(false);
        }
        let mut conn = store::acquire(&self.runner.deliveries_db).await?;
        if looks_around {
            self.waiting.set(deliveries::list_due(&mut conn, self.runner.clock.now()).await?);
            rooms = self.rooms();
        }
        if !rooms.is_empty() {
            let attempts = deliveries::claim(&mut conn, &self.lease(), &rooms).await?;
            self.waiting.served(&rooms, &attempts);
            self.begin(attempts);
        }
        Ok(true)
    }

    fn rooms(&self) -> Vec<Room> {
        self.seats.rooms_of(self.waiting.in_turn(), self.seats.free())
    }

    fn lease(&self) -> Lease {
        let now = self.runner.clock.now();
        Lease { now, until: now + self.config.timeout + LEASE_MARGIN }
    }

    fn begin(&self, attempts: Vec<Attempt>) {
        for attempt in attempts {
            let seat = self.seats.take(attempt.webhook_id);
            let id = format!("delivery:{}:{}", attempt.delivery_id, attempt.attempt);
            // Refused only at the very end; then it is due again when its lease is over.
            let _ended = self.in_process.start(id, Begun { attempt, seat });
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "what gathers meanwhile goes together")]
async fn gather(time: Duration) {
    tokio::time::sleep(time).await;
}
