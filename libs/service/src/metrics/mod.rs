//! Counters, histograms and gauges. One set of instruments feeds both `/metrics` (Prometheus) and OTLP, so the two
//! can't disagree.
//!
//! Each service lists its own in one file, `metrics.rs`, and [`declare`]s them at its start.
//!
//! Where OpenTelemetry has a semantic convention, the instrument has its name: `http.server.request.duration` in OTLP,
//! `http_server_request_duration_seconds` in Prometheus. Our own names are `<service>_<nouns>_<past participle>_total`
//! for counters and end in the unit for others (`…_bytes`, `…_seconds`); what every service has begins with `webruntime_`.
//! Labels have few values: never an id, an address or a path.

mod build_info;
mod declaration;
mod fast_counters;
mod http_server;
mod instruments;
mod registry;

pub use build_info::VERSION;
pub use declaration::declare;
pub use fast_counters::{FastCounter, FastCounters};
pub use http_server::{HttpServerRequestDuration, http_server_request_duration};
pub use instruments::{Counter, Gauge, Histogram, Instrument, Label, LabelValues};
pub(crate) use registry::export_to;
pub use registry::render;
