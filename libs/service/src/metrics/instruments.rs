//! Instruments with labels.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics as otel;

/// A label's name and value.
pub type Label<'a> = (&'static str, &'a str);

/// A counter of events.
#[derive(Clone, Debug)]
pub struct Counter(pub(super) otel::Counter<u64>);

/// A histogram of values.
#[derive(Clone, Debug)]
pub struct Histogram {
    pub(super) instrument: otel::Histogram<f64>,
    pub(super) name: &'static str,
}

/// A gauge. It holds the last value that was set.
#[derive(Clone, Debug)]
pub struct Gauge(pub(super) otel::Gauge<f64>);

impl Counter {
    /// Adds `amount` under these labels.
    pub fn add(&self, amount: u64, labels: &[Label<'_>]) {
        self.0.add(amount, &attributes(labels));
    }
}

impl Histogram {
    /// Records one value, in the unit of the instrument's name.
    pub fn record(&self, value: f64, labels: &[Label<'_>]) {
        self.instrument.record(value, &attributes(labels));
    }

    /// Records a duration, in seconds if the instrument's name ends in `_seconds`, else in milliseconds.
    pub fn record_elapsed(&self, elapsed: Duration, labels: &[Label<'_>]) {
        let seconds = elapsed.as_secs_f64();
        self.record(if self.name.ends_with("_seconds") { seconds } else { seconds * 1_000.0 }, labels);
    }
}

impl Gauge {
    /// Sets the value under these labels.
    pub fn set(&self, value: f64, labels: &[Label<'_>]) {
        self.0.record(value, &attributes(labels));
    }
}

fn attributes(labels: &[Label<'_>]) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| KeyValue::new(*name, (*value).to_owned())).collect()
}
