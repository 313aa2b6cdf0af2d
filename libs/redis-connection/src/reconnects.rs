//! Whether a connection works, as its last call showed.

use std::sync::{Arc, Mutex, PoisonError};

use redis::RedisError;

use crate::metrics::RECONNECTS;

/// What is known about a connection. Clones share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    NeverConnected,
    Connected,
    Lost,
}

/// Counts the reconnects of a connection: one for each loss, however many calls fail until Redis answers again.
#[derive(Clone, Debug, Default)]
pub struct Reconnects(Arc<Mutex<State>>);

impl Reconnects {
    /// Records that Redis answered.
    pub fn record_answer(&self) {
        if self.replace(State::Connected) == State::Lost {
            RECONNECTS.add(1, &[]);
        }
    }

    /// Records that the connection was lost. A server that never answered was never connected to.
    pub fn record_loss(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == State::Connected {
            *state = State::Lost;
        }
    }

    /// Records an error of a call, after which the connection may work all the same.
    pub(crate) fn record_error(&self, error: &RedisError) {
        if error.is_unrecoverable_error() {
            self.record_loss();
        }
    }

    fn replace(&self, state: State) -> State {
        std::mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted() -> String {
        let text = instruments::render();
        text.lines()
            .find_map(|line| line.strip_prefix("webruntime_redis_reconnects_total "))
            .unwrap_or("0")
            .to_owned()
    }

    #[test]
    fn one_reconnect_is_counted_for_one_loss() {
        let never_connected = Reconnects::default();
        never_connected.record_loss();
        never_connected.record_answer();
        assert_eq!(counted(), "0", "a server that was never there is not connected to again");
        let reconnects = Reconnects::default();
        reconnects.record_answer();
        for _ in 0..3 {
            reconnects.record_loss();
        }
        for _ in 0..3 {
            reconnects.clone().record_answer();
        }
        assert_eq!(counted(), "1");
    }
}
