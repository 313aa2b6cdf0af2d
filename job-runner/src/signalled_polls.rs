//! Polls at an interval, which a signal on the bus starts earlier.

use std::time::Duration;

use cache::BusEvent;
use contract::Signal;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use service::{Shutdown, ticks};
use tokio::time::Interval;

use crate::state::JobState;

/// The times at which a loop polls.
pub(crate) struct SignalledPolls {
    ticks: Interval,
    signal: Signal,
    events: BoxStream<'static, BusEvent<Signal>>,
}

impl SignalledPolls {
    /// Polls every `interval`, and when `signal` arrives or may have been lost.
    pub(crate) fn new(state: &JobState, interval: Duration, signal: Signal) -> Self {
        Self { ticks: ticks(interval), signal, events: state.bus.subscribe().boxed() }
    }

    /// Waits for the next poll. `None` after shutdown was requested.
    pub(crate) async fn next(&mut self, shutdown: &Shutdown) -> Option<()> {
        loop {
            tokio::select! {
                () = shutdown.requested() => return None,
                _ = self.ticks.tick() => return Some(()),
                Some(event) = self.events.next() => {
                    let may_be_due = match event {
                        BusEvent::Message(signal) => signal == self.signal,
                        BusEvent::Lagged => true,
                        BusEvent::Disconnected => false,
                    };
                    if may_be_due {
                        // A burst of signals causes one poll.
                        while let Some(Some(_)) = self.events.next().now_or_never() {}
                        return Some(());
                    }
                }
            }
        }
    }
}
