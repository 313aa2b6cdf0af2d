//! Instruments. Each is a `static`, so that its name, its help and its labels stand in one place, and a misspelt name does
//! not compile.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics as otel;

use crate::registry::meter;

/// A label's name and value.
pub type Label<'a> = (&'static str, &'a str);

/// The labels of a counter: each with a function that returns all of its values.
pub type LabelValues = &'static [(&'static str, fn() -> Vec<&'static str>)];

/// Bucket boundaries of durations, in seconds. A page from memory takes microseconds, a delivery up to a minute.
pub const SECONDS: [f64; 21] = [
    1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 20.0, 60.0,
];

/// An instrument that exists from the start of its service, see [`declare`](crate::declare).
pub trait Instrument: Sync {
    /// Returns its name in Prometheus.
    fn name(&self) -> &'static str;

    /// Creates it. A counter gets all of its series, with zero.
    fn create(&'static self);
}

/// A counter of events. Its name ends in `_total`.
#[derive(Debug)]
pub struct Counter {
    name: &'static str,
    help: &'static str,
    labels: LabelValues,
    instrument: OnceLock<otel::Counter<u64>>,
}

impl Counter {
    /// A counter with a sentence of help and all values of its labels.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, labels: LabelValues) -> Self {
        Self { name, help, labels, instrument: OnceLock::new() }
    }

    /// Adds `amount` under these labels.
    pub fn add(&self, amount: u64, labels: &[Label<'_>]) {
        self.instrument().add(amount, &attributes(labels));
    }

    fn instrument(&self) -> &otel::Counter<u64> {
        self.instrument.get_or_init(|| {
            let created = meter().u64_counter(self.name).with_description(self.help).build();
            // A series that begins with its first event has no rate for it, and an alert on it has nothing to look at.
            for series in combinations(self.labels) {
                created.add(0, &attributes(&series));
            }
            created
        })
    }
}

impl Instrument for Counter {
    fn name(&self) -> &'static str {
        self.name
    }

    fn create(&'static self) {
        self.instrument();
    }
}

/// A histogram of durations. Its name ends in `_seconds`.
#[derive(Debug)]
pub struct Histogram {
    name: &'static str,
    help: &'static str,
    instrument: OnceLock<otel::Histogram<f64>>,
}

impl Histogram {
    /// A histogram with a sentence of help.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, instrument: OnceLock::new() }
    }

    /// Records a duration under these labels.
    pub fn record(&self, elapsed: Duration, labels: &[Label<'_>]) {
        self.instrument().record(elapsed.as_secs_f64(), &attributes(labels));
    }

    fn instrument(&self) -> &otel::Histogram<f64> {
        self.instrument.get_or_init(|| {
            let builder = meter().f64_histogram(self.name).with_description(self.help);
            builder.with_boundaries(SECONDS.to_vec()).build()
        })
    }
}

impl Instrument for Histogram {
    fn name(&self) -> &'static str {
        self.name
    }

    fn create(&'static self) {
        self.instrument();
    }
}

/// A gauge. Each of its series holds the last value that was set, until [`Gauge::set_all`] leaves it out.
#[derive(Debug)]
pub struct Gauge {
    name: &'static str,
    help: &'static str,
    series: Mutex<BTreeMap<Vec<(&'static str, String)>, f64>>,
    instrument: OnceLock<otel::ObservableGauge<f64>>,
}

impl Gauge {
    /// A gauge with a sentence of help.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, help, series: Mutex::new(BTreeMap::new()), instrument: OnceLock::new() }
    }

    /// Sets the value under these labels.
    pub fn set(&'static self, value: f64, labels: &[Label<'_>]) {
        self.change(|series| {
            series.insert(owned(labels), value);
        });
    }

    /// Replaces all series. Without any, the gauge has no value: better than one that is no longer true.
    pub fn set_all<'a>(&'static self, all: impl IntoIterator<Item = (&'a [Label<'a>], f64)>) {
        let all = all.into_iter().map(|(labels, value)| (owned(labels), value)).collect();
        self.change(|series| *series = all);
    }

    fn change(&'static self, change: impl FnOnce(&mut BTreeMap<Vec<(&'static str, String)>, f64>)) {
        self.create();
        change(&mut self.series.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn observe(&self, observer: &dyn otel::AsyncInstrument<f64>) {
        for (labels, value) in &*self.series.lock().unwrap_or_else(PoisonError::into_inner) {
            let attributes: Vec<KeyValue> =
                labels.iter().map(|(name, value)| KeyValue::new(*name, value.clone())).collect();
            observer.observe(*value, &attributes);
        }
    }
}

impl Instrument for Gauge {
    fn name(&self) -> &'static str {
        self.name
    }

    fn create(&'static self) {
        self.instrument.get_or_init(|| {
            let builder = meter().f64_observable_gauge(self.name).with_description(self.help);
            builder.with_callback(|observer| self.observe(observer)).build()
        });
    }
}

pub(crate) fn attributes(labels: &[Label<'_>]) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| KeyValue::new(*name, (*value).to_owned())).collect()
}

fn owned(labels: &[Label<'_>]) -> Vec<(&'static str, String)> {
    labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// Returns every combination of the labels' values; one without labels if there are none.
fn combinations(labels: LabelValues) -> Vec<Vec<Label<'static>>> {
    labels.iter().fold(vec![Vec::new()], |series, (name, values)| {
        let values = values();
        let with = |one: &Vec<Label<'static>>, value| [one.as_slice(), &[(*name, value)]].concat();
        series.iter().flat_map(|one| values.iter().map(move |value| with(one, *value))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{declare, render};

    static SENT: Counter = Counter::new(
        "test_mails_sent_total",
        "Mails by kind and result.",
        &[("kind", || vec!["a", "b"]), ("result", || vec!["sent", "failed"])],
    );
    static DEPTH: Gauge = Gauge::new("test_queue_rows", "Rows by queue.");

    #[test]
    fn a_declared_counter_has_all_series_and_help_before_its_first_event() {
        declare(&[&[&SENT]]);
        let text = render();
        assert!(text.contains("# HELP test_mails_sent_total Mails by kind and result.\n"), "{text}");
        for labels in [r#"kind="a",result="sent""#, r#"kind="b",result="failed""#] {
            assert!(text.contains(&format!("test_mails_sent_total{{{labels}}} 0\n")), "{text}");
        }
        assert_eq!(text.matches("test_mails_sent_total{").count(), 4);
        SENT.add(2, &[("kind", "a"), ("result", "sent")]);
        assert!(render().contains("test_mails_sent_total{kind=\"a\",result=\"sent\"} 2\n"));
    }

    #[test]
    fn a_gauge_forgets_the_series_that_are_left_out() {
        DEPTH.set(4.0, &[("queue", "mails")]);
        assert!(render().contains("test_queue_rows{queue=\"mails\"} 4\n"));
        DEPTH.set_all([(&[("queue", "runs")][..], 2.0)]);
        let text = render();
        assert!(
            text.contains("test_queue_rows{queue=\"runs\"} 2\n") && !text.contains("queue=\"mails\""),
            "{text}"
        );
        DEPTH.set_all([]);
        assert!(!render().contains("test_queue_rows{"));
    }
}
