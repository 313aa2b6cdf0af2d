//! The instruments of connections to Redis. The duration of requests is one of `instruments`.

use instruments::{Counter, Instrument};

/// Counted once a connection that was lost works again.
pub static RECONNECTS: Counter = Counter::new(
    "webruntime_redis_reconnects_total",
    "Connections to Redis that were lost and made again.",
    &[],
);

/// All instruments of this crate.
pub static ALL: &[&dyn Instrument] = &[&RECONNECTS];
