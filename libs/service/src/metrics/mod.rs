//! Counters, histograms and gauges. One set of instruments feeds both `/metrics` (Prometheus) and OTLP, so the two
//! can't disagree.
//!
//! Where OpenTelemetry has a semantic convention, the instrument has its name: `http.server.request.duration` in OTLP,
//! `http_server_request_duration_seconds` in Prometheus. Our own names are `<service>_<nouns>_<past participle>_total`
//! for counters and end in the unit for others (`…_ms`, `…_bytes`, `…_seconds`). Labels have few values: never an id,
//! an address or a path.

mod fast_counter;
mod http_server;
mod instruments;
mod registry;

pub use fast_counter::FastCounter;
pub use http_server::{HttpServerRequestDuration, http_server_request_duration};
pub use instruments::{Counter, Gauge, Histogram, Label};
pub(crate) use registry::export_to;
pub use registry::{counter, fast_counters, gauge, histogram, render};
