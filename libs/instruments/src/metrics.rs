//! The instruments that every service has.

use crate::instruments::{Gauge, Histogram, Instrument};

pub(crate) static BUILD_INFO: Gauge =
    Gauge::new("webruntime_build_info", "Always 1. Its labels say what was built: version and commit.");
pub(crate) static STORE_REQUEST_SECONDS: Histogram = Histogram::new(
    "webruntime_store_request_seconds",
    "Duration of requests to Redis, ClickHouse and the blob store, by store and result.",
);

pub(crate) static ALL: &[&dyn Instrument] = &[&BUILD_INFO, &STORE_REQUEST_SECONDS];
