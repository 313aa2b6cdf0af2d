//! Counters, histograms and gauges. One set of instruments feeds both `/metrics` (Prometheus) and OTLP, so the two
//! can't disagree.
//!
//! Each crate lists its own in one file, `metrics.rs`, and the services [`declare`] them at their start.
//!
//! Where OpenTelemetry has a semantic convention, the instrument has its name: `http.server.request.duration` in OTLP,
//! `http_server_request_duration_seconds` in Prometheus. Our own names are `<service>_<nouns>_<past participle>_total`
//! for counters and end in the unit for others (`…_bytes`, `…_seconds`); what several services have begins with
//! `webruntime_`. Labels have few values: never an id, an address or a path.

mod build_info;
mod declaration;
mod fast_counters;
mod instruments;
mod metrics;
mod observable_gauge;
mod registry;
mod store_request;

pub use build_info::VERSION;
pub use declaration::declare;
pub use fast_counters::{FastCounter, FastCounterTable, FastCounters};
pub use instruments::{Counter, Gauge, Histogram, Instrument, Label, LabelValues, SECONDS};
pub use observable_gauge::{ObservableGauge, Series};
pub use registry::{export_to, meter, render};
pub use store_request::MeasuredStore;
