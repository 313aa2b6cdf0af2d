//! From the rows of due deliveries to attempts and back: claimed in Postgres many at a time, run by apalis, their ends
//! written many at a time. No delivery passes through Redis; it only says sooner that there is something to claim.
//!
//! Killed at any moment, this loses nothing: whatever was claimed and not ended is due again when its lease is over.

mod endings;
mod seats;

use std::collections::VecDeque;
use std::time::Duration;

use cache::BusEvent;
use contract::Signal;
use domain::places::pace;
use endings::Ended;
use futures::{FutureExt, StreamExt};
use queue::Lane;
use seats::{Seat, Seats};
use service::Shutdown;
use store::deliveries::{self, Attempt, Claim, Places};
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;
use uuid::Uuid;

use crate::config::Webhooks;
use crate::{Runner, jobs};

/// What a lease is longer than the request's timeout: time to write the end down.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// An attempt that has been claimed.
struct Begun {
    attempt: Attempt,
    seat: Seat,
}

pub(crate) async fn run(runner: Runner, config: Webhooks, shutdown: Shutdown) -> anyhow::Result<()> {
    let lane = Lane::new("deliveries");
    let (end, ended) = mpsc::unbounded_channel();
    let handler = {
        let (runner, timeout) = (runner.clone(), config.timeout);
        move |begun| carry_out(runner.clone(), timeout, begun, end.clone())
    };
    let writing = tokio::spawn(endings::run(runner.clone(), LEASE_MARGIN, config.gather_for, ended));
    let mut claims = Claims {
        seats: Seats::new(config.concurrency, config.per_webhook),
        crowded: VecDeque::new(),
        lane: lane.clone(),
        runner: runner.clone(),
        config,
    };
    let ((), unbegun) = tokio::join!(claims.run(&shutdown), lane.work(handler, shutdown.requested()));
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

/// Whether a look has left something that is due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    Nothing,
    WhenPlacesComeFree,
    AtOnce,
}

/// Finds what is due, as far as there are places.
struct Claims {
    runner: Runner,
    config: Webhooks,
    lane: Lane<Begun>,
    seats: Seats,
    /// Webhooks that have parked deliveries which are due. Those at the front are asked first.
    crowded: VecDeque<Uuid>,
}

impl Claims {
    async fn run(&mut self, shutdown: &Shutdown) {
        let mut events = std::pin::pin!(self.runner.bus.subscribe());
        let mut ticks = tokio::time::interval(self.config.look_every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut more = More::Nothing;
        loop {
            let mut looks_around = false;
            tokio::select! {
                () = shutdown.requested() => return,
                _ = ticks.tick() => looks_around = true,
                () = self.seats.freed(), if more == More::WhenPlacesComeFree => {}
                () = std::future::ready(()), if more == More::AtOnce => {}
                Some(event) = events.next() => {
                    if !matches!(event, BusEvent::Message(Signal::DeliveriesDue) | BusEvent::MayHaveMissed) {
                        continue;
                    }
                    // A burst of signals is one reason to look, not many.
                    while let Some(Some(_)) = events.next().now_or_never() {}
                }
            }
            more = self.claim_all(looks_around).await.unwrap_or_else(|error| {
                tracing::warn!(error = format!("{error:#}"), "due deliveries wait for the next look");
                More::Nothing
            });
            let _asked_to_stop = shutdown.unless_requested(gather(self.config.gather_for)).await;
        }
    }

    /// Claims what is due, as far as there are places; gives whether something may be left.
    async fn claim_all(&mut self, looks_around: bool) -> anyhow::Result<More> {
        let mut conn = store::acquire(&self.runner.deliveries_db).await?;
        if looks_around {
            self.crowded = deliveries::list_crowded(&mut conn, self.runner.clock.now()).await?.into();
        }
        // Half of what is free, so that those that were parked do not stand before all that come due.
        let parked = self.claim_parked(&mut conn, self.seats.free().div_ceil(2)).await?;
        if self.seats.free() == 0 {
            return Ok(More::WhenPlacesComeFree);
        }
        let rooms = self.seats.rooms();
        let places = Places {
            all: self.seats.free().into(),
            of_slow: self.seats.free_of_slow().into(),
            rooms: &rooms,
            of_others: i32::try_from(self.seats.places_of_others())?,
        };
        let due = deliveries::claim_due(&mut conn, &self.claim(), &places).await?;
        let is_more_seen = !due.crowded.is_empty();
        for webhook_id in due.crowded {
            if !self.crowded.contains(&webhook_id) {
                self.crowded.push_back(webhook_id);
            }
        }
        self.begin(due.attempts);
        Ok(if is_more_seen || parked > 0 {
            More::AtOnce
        } else if !self.crowded.is_empty() || self.seats.is_any_full() {
            More::WhenPlacesComeFree
        } else {
            More::Nothing
        })
    }

    /// Takes up parked deliveries of webhooks that have places again; gives how many.
    async fn claim_parked(&mut self, conn: &mut store::Conn, most: u32) -> anyhow::Result<usize> {
        let rooms = self.seats.rooms_of(self.crowded.iter().copied(), most);
        if rooms.is_empty() {
            return Ok(0);
        }
        let claimed = deliveries::claim_parked(conn, &self.claim(), &rooms).await?;
        let brought = |id: Uuid| claimed.iter().filter(|attempt| attempt.webhook_id == id).count();
        let exhausted: Vec<_> = rooms
            .iter()
            .filter(|room| usize::try_from(room.places).is_ok_and(|places| brought(room.webhook_id) < places))
            .map(|room| room.webhook_id)
            .collect();
        self.crowded.retain(|id| !exhausted.contains(id));
        if !self.crowded.is_empty() {
            self.crowded.rotate_left(1);
        }
        let count = claimed.len();
        self.begin(claimed);
        Ok(count)
    }

    fn claim(&self) -> Claim {
        let now = self.runner.clock.now();
        Claim { now, leased_until: now + self.config.timeout + LEASE_MARGIN }
    }

    fn begin(&self, attempts: Vec<Attempt>) {
        for attempt in attempts {
            let seat = self.seats.take(attempt.webhook_id);
            let id = format!("delivery:{}:{}", attempt.delivery_id, attempt.attempt);
            // Refused only at the very end; then it is due again when its lease is over.
            let _ended = self.lane.start(id, Begun { attempt, seat });
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "what gathers meanwhile goes together")]
async fn gather(time: Duration) {
    tokio::time::sleep(time).await;
}
