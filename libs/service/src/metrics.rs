//! Counters, histograms and gauges. One set of instruments feeds both `/metrics` (Prometheus) and OTLP, so the two
//! can't disagree.
//!
//! Names follow `<service>_<noun>_<verb>_total`, with units in the names of all but counters (`…_ms`, `…_bytes`,
//! `…_seconds`). Labels take few values: never an id, an address or a path.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{self as otel, Meter, MeterProvider as _};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use prometheus::process_collector::ProcessCollector;
use prometheus::{Registry, TextEncoder};

/// A label's name and value.
pub type Label<'a> = (&'static str, &'a str);

/// Counts up.
#[derive(Clone, Debug)]
pub struct Counter(otel::Counter<u64>);

/// Counts values by size.
#[derive(Clone, Debug)]
pub struct Histogram {
    instrument: otel::Histogram<f64>,
    name: &'static str,
}

/// Counts up, as cheaply as can be. See [`fast_counters`].
#[derive(Clone, Debug, Default)]
pub struct FastCounter(Arc<[Shard; SHARDS]>);

/// Threads count in different places, each a cache line of its own, so that they don't wait for one another.
const SHARDS: usize = 8;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(AtomicU64);

/// Holds the last value it was given.
#[derive(Clone, Debug)]
pub struct Gauge(otel::Gauge<f64>);

impl Counter {
    /// Adds `amount` under these labels.
    pub fn add(&self, amount: u64, labels: &[Label<'_>]) {
        self.0.add(amount, &attributes(labels));
    }
}

impl FastCounter {
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

static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);

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

/// The counter of that name, made when first asked for.
#[must_use]
pub fn counter(name: &'static str) -> Counter {
    let instruments = instruments();
    cached(&instruments.counters, name, || Counter(instruments.meter.u64_counter(name).build()))
}

/// The histogram of that name, with boundaries that fit the unit it ends in.
#[must_use]
pub fn histogram(name: &'static str) -> Histogram {
    let instruments = instruments();
    cached(&instruments.histograms, name, || {
        let instrument = instruments.meter.f64_histogram(name).with_boundaries(boundaries(name)).build();
        Histogram { instrument, name }
    })
}

/// The gauge of that name.
#[must_use]
pub fn gauge(name: &'static str) -> Gauge {
    let instruments = instruments();
    cached(&instruments.gauges, name, || Gauge(instruments.meter.f64_gauge(name).build()))
}

/// One counter for each value of a label, to be held by whoever counts on a hot path: [`FastCounter::add`] is one step of
/// one number, with no look-up. Made when first asked for.
#[must_use]
pub fn fast_counters<const N: usize>(
    name: &'static str,
    label: &'static str,
    values: [&'static str; N],
) -> [FastCounter; N] {
    let instruments = instruments();
    let made = cached(&instruments.fast_counters, name, || {
        let fast_counters: Vec<(&'static str, FastCounter)> =
            values.map(|value| (value, FastCounter::default())).into();
        let read = fast_counters.clone();
        let observe = move |into: &dyn otel::AsyncInstrument<u64>| {
            for (value, counter) in &read {
                into.observe(counter.read(), &[KeyValue::new(label, *value)]);
            }
        };
        let _counter_lives_in_the_meter =
            instruments.meter.u64_observable_counter(name).with_callback(observe).build();
        fast_counters
    });
    values.map(|value| {
        let found = made.iter().find(|(known, _)| *known == value);
        found.map_or_else(FastCounter::default, |(_, counter)| counter.clone())
    })
}

/// Everything counted so far, and the process's own figures, as Prometheus reads it.
#[must_use]
pub fn render() -> String {
    let families = instruments().registry.gather();
    TextEncoder::new().encode_to_string(&families).unwrap_or_else(|error| format!("# {error}\n"))
}

struct Instruments {
    provider: SdkMeterProvider,
    registry: Registry,
    meter: Meter,
    counters: RwLock<HashMap<&'static str, Counter>>,
    histograms: RwLock<HashMap<&'static str, Histogram>>,
    gauges: RwLock<HashMap<&'static str, Gauge>>,
    fast_counters: RwLock<HashMap<&'static str, Vec<(&'static str, FastCounter)>>>,
}

static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();

fn instruments() -> &'static Instruments {
    INSTRUMENTS.get_or_init(|| Instruments::new(None, Resource::builder().build()))
}

/// Sends the same instruments over OTLP too. Only possible before the first of them is used.
pub(crate) fn export_to(exporter: MetricExporter, every: Duration, resource: Resource) -> SdkMeterProvider {
    let reader = PeriodicReader::builder(exporter).with_interval(every).build();
    let mut reader = Some(reader);
    let instruments = INSTRUMENTS.get_or_init(|| Instruments::new(reader.take(), resource));
    if reader.is_some() {
        tracing::warn!("metrics were used before telemetry was set up: they stay out of OTLP");
    }
    instruments.provider.clone()
}

impl Instruments {
    fn new(otlp: Option<PeriodicReader<MetricExporter>>, resource: Resource) -> Self {
        let registry = Registry::new();
        if let Err(error) = registry.register(Box::new(ProcessCollector::for_self())) {
            tracing::warn!(%error, "no figures of the process");
        }
        let mut provider = SdkMeterProvider::builder().with_resource(resource);
        let prometheus = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .without_counter_suffixes()
            .without_units()
            .without_target_info()
            .scope_info_enabled(false)
            .build();
        match prometheus {
            Ok(reader) => provider = provider.with_reader(reader),
            Err(error) => tracing::warn!(%error, "no metrics for Prometheus"),
        }
        if let Some(reader) = otlp {
            provider = provider.with_reader(reader);
        }
        let provider = provider.build();
        let meter = provider.meter("webruntime");
        let (counters, histograms, gauges, fast_counters) = Default::default();
        Self { provider, registry, meter, counters, histograms, gauges, fast_counters }
    }
}

fn cached<K: Copy + Eq + Hash, V: Clone>(map: &RwLock<HashMap<K, V>>, key: K, make: impl FnOnce() -> V) -> V {
    if let Some(found) = map.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return found.clone();
    }
    map.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert_with(make).clone()
}

fn attributes(labels: &[Label<'_>]) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| KeyValue::new(*name, (*value).to_owned())).collect()
}

fn boundaries(name: &str) -> Vec<f64> {
    const MILLISECONDS: [f64; 16] =
        [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 10e3, 20e3, 60e3];
    const BYTES: [f64; 9] =
        [64.0, 256.0, 1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0];
    match name {
        name if name.ends_with("_seconds") => MILLISECONDS.iter().map(|ms| ms / 1e3).collect(),
        name if name.ends_with("_bytes") => BYTES.to_vec(),
        _ => MILLISECONDS.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_of_one_name_are_one_whoever_holds_them_and_are_shown_by_label() {
        let [a, b] = fast_counters("test_thing_count_total", "kind", ["a", "b"]);
        let [again, _] = fast_counters("test_thing_count_total", "kind", ["a", "b"]);
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let a = a.clone();
                std::thread::spawn(move || (0..100).for_each(|_| a.add(1)))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        again.add(1);
        b.add(7);
        let shown = render();
        assert!(shown.contains("test_thing_count_total{kind=\"a\"} 2001"), "{shown}");
        assert!(shown.contains("test_thing_count_total{kind=\"b\"} 7"), "{shown}");
    }
}
