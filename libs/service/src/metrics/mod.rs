//! The instruments of `libs/instruments`, and those that follow OpenTelemetry's convention for HTTP.

mod http_server;

pub use http_server::{HttpServerRequestDuration, http_server_request_duration};
pub(crate) use instruments::export_to;
pub use instruments::{
    Counter, FastCounter, FastCounterTable, FastCounters, Gauge, Histogram, Instrument, Label, LabelValues,
    MeasuredStore, ObservableGauge, Series, VERSION, declare, render,
};
