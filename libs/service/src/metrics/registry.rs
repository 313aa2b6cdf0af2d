//! The process's meter, and its export.

use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use prometheus::process_collector::ProcessCollector;
use prometheus::{Registry as PrometheusRegistry, TextEncoder};

/// All instruments of the process.
struct Registry {
    provider: SdkMeterProvider,
    prometheus: PrometheusRegistry,
    meter: Meter,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

fn registry() -> &'static Registry {
    REGISTRY.get_or_init(|| Registry::new(None, Resource::builder().build()))
}

/// Returns the meter that creates instruments.
pub(super) fn meter() -> &'static Meter {
    &registry().meter
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
        Self { provider, prometheus, meter }
    }
}
