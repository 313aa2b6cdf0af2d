//! Counters for hot paths.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use opentelemetry::KeyValue;
use opentelemetry::metrics as otel;

use crate::instruments::Instrument;
use crate::registry::meter;

/// Threads count in different shards, each a cache line of its own, so that they don't contend.
const SHARDS: usize = 8;

static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);

/// A counter without a lookup: [`FastCounter::add`] is one atomic addition.
#[derive(Debug)]
pub struct FastCounter([Shard; SHARDS]);

#[derive(Debug)]
#[repr(align(128))]
struct Shard(AtomicU64);

impl FastCounter {
    const fn new() -> Self {
        Self([const { Shard(AtomicU64::new(0)) }; SHARDS])
    }

    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        thread_local! {
            static SHARD: usize = NEXT_SHARD.fetch_add(1, Ordering::Relaxed) % SHARDS;
        }
        let shard = SHARD.with(|shard| *shard);
        self.0[shard].0.fetch_add(amount, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.iter().map(|shard| shard.0.load(Ordering::Relaxed)).sum()
    }
}

/// One [`FastCounter`] for each value of a label.
#[derive(Debug)]
pub struct FastCounters<const N: usize> {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    values: [&'static str; N],
    counters: [FastCounter; N],
    instrument: OnceLock<otel::ObservableCounter<u64>>,
}

impl<const N: usize> FastCounters<N> {
    /// Counters with a sentence of help, for these values of a label.
    #[must_use]
    pub const fn new(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: [&'static str; N],
    ) -> Self {
        let counters = [const { FastCounter::new() }; N];
        Self { name, help, label, values, counters, instrument: OnceLock::new() }
    }

    /// Returns the label's values.
    pub fn values(&self) -> [&'static str; N] {
        self.values
    }

    /// Returns the counters, in the order of the label's values.
    pub fn counters(&'static self) -> &'static [FastCounter; N] {
        self.create();
        &self.counters
    }
}

impl<const N: usize> Instrument for FastCounters<N> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn create(&'static self) {
        self.instrument.get_or_init(|| {
            let observe = |observer: &dyn otel::AsyncInstrument<u64>| {
                for (value, counter) in self.values.iter().zip(&self.counters) {
                    observer.observe(counter.read(), &[KeyValue::new(self.label, *value)]);
                }
            };
            let builder = meter().u64_observable_counter(self.name).with_description(self.help);
            builder.with_callback(observe).build()
        });
    }
}

/// One [`FastCounter`] for each pair of values of two labels.
#[derive(Debug)]
pub struct FastCounterTable<const ROWS: usize, const COLUMNS: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; 2],
    rows: [&'static str; ROWS],
    columns: [&'static str; COLUMNS],
    counters: [[FastCounter; COLUMNS]; ROWS],
    instrument: OnceLock<otel::ObservableCounter<u64>>,
}

impl<const ROWS: usize, const COLUMNS: usize> FastCounterTable<ROWS, COLUMNS> {
    /// Counters with a sentence of help. The values of the first label are the rows, those of the second the columns.
    #[must_use]
    pub const fn new(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; 2],
        rows: [&'static str; ROWS],
        columns: [&'static str; COLUMNS],
    ) -> Self {
        let counters = [const { [const { FastCounter::new() }; COLUMNS] }; ROWS];
        Self { name, help, labels, rows, columns, counters, instrument: OnceLock::new() }
    }

    /// Returns the counters: rows and columns are in the order of the labels' values.
    pub fn counters(&'static self) -> &'static [[FastCounter; COLUMNS]; ROWS] {
        self.create();
        &self.counters
    }
}

impl<const ROWS: usize, const COLUMNS: usize> Instrument for FastCounterTable<ROWS, COLUMNS> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn create(&'static self) {
        self.instrument.get_or_init(|| {
            let [first, second] = self.labels;
            let observe = move |observer: &dyn otel::AsyncInstrument<u64>| {
                for (row, counters) in self.rows.iter().zip(&self.counters) {
                    for (column, counter) in self.columns.iter().zip(counters) {
                        let labels = [KeyValue::new(first, *row), KeyValue::new(second, *column)];
                        observer.observe(counter.read(), &labels);
                    }
                }
            };
            let builder = meter().u64_observable_counter(self.name).with_description(self.help);
            builder.with_callback(observe).build()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;

    static THINGS: FastCounters<2> = FastCounters::new("test_things_total", "Things.", "kind", ["a", "b"]);

    #[test]
    fn additions_of_all_threads_are_rendered_by_label() {
        let [a, b] = THINGS.counters();
        let threads: Vec<_> =
            (0..20).map(|_| std::thread::spawn(move || (0..100).for_each(|_| a.add(1)))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        b.add(7);
        let text = render();
        assert!(text.contains("test_things_total{kind=\"a\"} 2000"), "{text}");
        assert!(text.contains("test_things_total{kind=\"b\"} 7"), "{text}");
    }

    static SENT: FastCounterTable<2, 2> =
        FastCounterTable::new("test_sent_total", "Sent.", ["to", "result"], ["x", "y"], ["ok", "error"]);

    #[test]
    fn a_table_has_all_pairs_of_labels() {
        SENT.counters()[1][0].add(3);
        let text = render();
        for (labels, count) in [
            ("result=\"ok\",to=\"x\"", 0),
            ("result=\"error\",to=\"x\"", 0),
            ("result=\"ok\",to=\"y\"", 3),
            ("result=\"error\",to=\"y\"", 0),
        ] {
            assert!(text.contains(&format!("test_sent_total{{{labels}}} {count}\n")), "{text}");
        }
    }
}
