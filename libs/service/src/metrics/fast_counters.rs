//! Counters for hot paths.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use opentelemetry::KeyValue;
use opentelemetry::metrics as otel;

use super::instruments::Instrument;
use super::registry::meter;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::render;

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
}
