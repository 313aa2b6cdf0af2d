//! The instruments of Postgres. Statements are not measured here: `pg_stat_statements` knows more about them.

use instruments::{Histogram, Instrument, ObservableGauge};

use crate::db::{connections_by_state, max_connections};

/// Use counts from the moment at which a connection begins to be opened until it is back in its pool.
static CONNECTIONS: ObservableGauge = ObservableGauge::new(
    "webruntime_postgres_connections",
    "Open connections to Postgres, of all pools of this process, by state.",
    connections_by_state,
);
static CONNECTIONS_MAX: ObservableGauge = ObservableGauge::new(
    "webruntime_postgres_connections_max",
    "Connections to Postgres that all pools of this process may open.",
    max_connections,
);
pub(crate) static ACQUIRE_SECONDS: Histogram = Histogram::new(
    "webruntime_postgres_acquire_seconds",
    "Time until a pool hands out a connection to Postgres, or the caller gives up.",
);

/// All instruments of this crate.
pub static ALL: &[&dyn Instrument] = &[&CONNECTIONS, &CONNECTIONS_MAX, &ACQUIRE_SECONDS];
