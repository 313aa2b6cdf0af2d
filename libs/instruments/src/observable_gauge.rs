//! Gauges of values that exist already, such as the sizes of a pool.

use std::sync::OnceLock;

use opentelemetry::metrics as otel;

use crate::instruments::{Instrument, Label, attributes};
use crate::registry::meter;

/// The labels and the value of one series.
pub type Series = (Vec<Label<'static>>, f64);

/// A gauge that reads its values at each scrape and each export. So they are current, and changing them costs nothing.
#[derive(Debug)]
pub struct ObservableGauge {
    name: &'static str,
    help: &'static str,
    read: fn() -> Vec<Series>,
    instrument: OnceLock<otel::ObservableGauge<f64>>,
}

impl ObservableGauge {
    /// A gauge with a sentence of help. `read` returns all series. It must not block.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, read: fn() -> Vec<Series>) -> Self {
        Self { name, help, read, instrument: OnceLock::new() }
    }
}

impl Instrument for ObservableGauge {
    fn name(&self) -> &'static str {
        self.name
    }

    fn create(&'static self) {
        self.instrument.get_or_init(|| {
            let builder = meter().f64_observable_gauge(self.name).with_description(self.help);
            let observe = |observer: &dyn otel::AsyncInstrument<f64>| {
                for (labels, value) in (self.read)() {
                    observer.observe(value, &attributes(&labels));
                }
            };
            builder.with_callback(observe).build()
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::{declare, render};

    static SIZE: AtomicU32 = AtomicU32::new(3);
    static ROWS: ObservableGauge = ObservableGauge::new("test_rows", "Rows by state.", || {
        vec![(vec![("state", "idle")], f64::from(SIZE.load(Ordering::Relaxed)))]
    });

    #[test]
    fn each_scrape_reads_the_value() {
        declare(&[&[&ROWS]]);
        assert!(render().contains("test_rows{state=\"idle\"} 3\n"));
        SIZE.store(5, Ordering::Relaxed);
        assert!(render().contains("test_rows{state=\"idle\"} 5\n"));
    }
}
