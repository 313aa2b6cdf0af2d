//! The process's instruments by name, and their export.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{self as otel, Meter, MeterProvider as _};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use prometheus::process_collector::ProcessCollector;
use prometheus::{Registry as PrometheusRegistry, TextEncoder};

use super::fast_counter::FastCounter;
use super::instruments::{Counter, Gauge, Histogram};

/// All instruments of the process.
pub(super) struct Registry {
    provider: SdkMeterProvider,
    prometheus: PrometheusRegistry,
    meter: Meter,
    counters: RwLock<HashMap<&'static str, Counter>>,
    histograms: RwLock<HashMap<&'static str, Histogram>>,
    gauges: RwLock<HashMap<&'static str, Gauge>>,
    fast_counters: RwLock<HashMap<&'static str, ByValue>>,
}

/// Fast counters by the value of their label.
type ByValue = Vec<(&'static str, FastCounter)>;

static REGISTRY: OnceLock<Registry> = OnceLock::new();

pub(super) fn registry() -> &'static Registry {
    REGISTRY.get_or_init(|| Registry::new(None, Resource::builder().build()))
}

/// Returns the counter of that name, created on first use.
#[must_use]
pub fn counter(name: &'static str) -> Counter {
    registry().counter(name)
}

/// Returns the histogram of that name, created on first use. Its bucket boundaries fit the unit the name ends in.
#[must_use]
pub fn histogram(name: &'static str) -> Histogram {
    registry().histogram(name)
}

/// Returns the gauge of that name, created on first use.
#[must_use]
pub fn gauge(name: &'static str) -> Gauge {
    registry().gauge(name)
}

/// Returns one counter for each value of a label, created on first use. The caller keeps them and so saves the lookup
/// on its hot path.
#[must_use]
pub fn fast_counters<const N: usize>(
    name: &'static str,
    label: &'static str,
    values: [&'static str; N],
) -> [FastCounter; N] {
    let created = registry().fast_counters(name, label, &values);
    values.map(|value| {
        let found = created.iter().find(|(known, _)| *known == value);
        found.map_or_else(FastCounter::default, |(_, counter)| counter.clone())
    })
}

/// Returns all values in Prometheus's text format, the process's own metrics included.
#[must_use]
pub fn render() -> String {
    let families = registry().prometheus.gather();
    TextEncoder::new().encode_to_string(&families).unwrap_or_else(|error| format!("# {error}\n"))
}

/// Exports the instruments over OTLP as well. Must be called before the first of them is used.
pub(crate) fn export_to(
    exporter: MetricExporter,
    interval: Duration,
    resource: Resource,
) -> SdkMeterProvider {
    let mut reader = Some(PeriodicReader::builder(exporter).with_interval(interval).build());
    let registry = REGISTRY.get_or_init(|| Registry::new(reader.take(), resource));
    if reader.is_some() {
        tracing::warn!("metrics were used before telemetry was set up, so OTLP does not export them");
    }
    registry.provider.clone()
}

impl Registry {
    fn new(otlp: Option<PeriodicReader<MetricExporter>>, resource: Resource) -> Self {
        let prometheus = PrometheusRegistry::new();
        if let Err(error) = prometheus.register(Box::new(ProcessCollector::for_self())) {
            tracing::warn!(%error, "can't collect the process's own metrics");
        }
        let mut provider = SdkMeterProvider::builder().with_resource(resource);
        // An instrument with a unit gets a name with that unit in Prometheus: `…_duration` becomes `…_duration_seconds`.
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(prometheus.clone())
            .without_counter_suffixes()
            .without_target_info()
            .scope_info_enabled(false)
            .build();
        match exporter {
            Ok(reader) => provider = provider.with_reader(reader),
            Err(error) => tracing::warn!(%error, "can't export metrics for Prometheus"),
        }
        if let Some(reader) = otlp {
            provider = provider.with_reader(reader);
        }
        let provider = provider.build();
        let meter = provider.meter("webruntime");
        let (counters, histograms, gauges, fast_counters) = Default::default();
        Self { provider, prometheus, meter, counters, histograms, gauges, fast_counters }
    }

    fn counter(&self, name: &'static str) -> Counter {
        cached(&self.counters, name, || Counter(self.meter.u64_counter(name).build()))
    }

    fn histogram(&self, name: &'static str) -> Histogram {
        cached(&self.histograms, name, || {
            let instrument = self.meter.f64_histogram(name).with_boundaries(boundaries(name)).build();
            Histogram { instrument, name }
        })
    }

    /// A histogram of seconds with a conventional name, which doesn't end in its unit.
    pub(super) fn seconds(&self, name: &'static str) -> otel::Histogram<f64> {
        let created = cached(&self.histograms, name, || {
            let boundaries = boundaries("_seconds");
            let instrument =
                self.meter.f64_histogram(name).with_unit("s").with_boundaries(boundaries).build();
            Histogram { instrument, name }
        });
        created.instrument
    }

    fn gauge(&self, name: &'static str) -> Gauge {
        cached(&self.gauges, name, || Gauge(self.meter.f64_gauge(name).build()))
    }

    fn fast_counters(&self, name: &'static str, label: &'static str, values: &[&'static str]) -> ByValue {
        cached(&self.fast_counters, name, || {
            let counters: ByValue = values.iter().map(|value| (*value, FastCounter::default())).collect();
            let observed = counters.clone();
            let observe = move |observer: &dyn otel::AsyncInstrument<u64>| {
                for (value, counter) in &observed {
                    observer.observe(counter.read(), &[KeyValue::new(label, *value)]);
                }
            };
            // The meter keeps the instrument alive.
            let _instrument = self.meter.u64_observable_counter(name).with_callback(observe).build();
            counters
        })
    }
}

fn cached<K: Copy + Eq + Hash, V: Clone>(
    map: &RwLock<HashMap<K, V>>,
    key: K,
    create: impl FnOnce() -> V,
) -> V {
    if let Some(found) = map.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return found.clone();
    }
    map.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert_with(create).clone()
}

/// Bucket boundaries for the unit that a name ends in. Those of durations are finer below 5 ms than OpenTelemetry's
/// advice, because most requests here are faster.
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
    fn fast_counters_of_one_name_are_shared_and_rendered_by_label() {
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
        let text = render();
        assert!(text.contains("test_thing_count_total{kind=\"a\"} 2001"), "{text}");
        assert!(text.contains("test_thing_count_total{kind=\"b\"} 7"), "{text}");
    }
}
