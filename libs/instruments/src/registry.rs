//! The process's meter, and its export.

use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{MeterProviderBuilder, PeriodicReader, SdkMeterProvider};
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
    REGISTRY.get_or_init(|| Registry::new(SdkMeterProvider::builder(), Resource::builder().build()))
}

/// Returns the meter that creates instruments: for those that [`Counter`](crate::Counter) and the others can't describe, such as
/// a histogram of a semantic convention.
pub fn meter() -> &'static Meter {
    &registry().meter
}

/// Returns all values in Prometheus's text format, the process's own metrics included.
#[must_use]
pub fn render() -> String {
    let families = registry().prometheus.gather();
    TextEncoder::new().encode_to_string(&families).unwrap_or_else(|error| format!("# {error}\n"))
}

/// Exports the instruments over OTLP as well, at this interval. Must be called before the first of them is used.
pub fn export_to(
    exporter: impl PushMetricExporter,
    interval: Duration,
    resource: Resource,
) -> SdkMeterProvider {
    let mut reader = Some(PeriodicReader::builder(exporter).with_interval(interval).build());
    let registry = REGISTRY.get_or_init(|| {
        let provider = SdkMeterProvider::builder();
        Registry::new(reader.take().into_iter().fold(provider, MeterProviderBuilder::with_reader), resource)
    });
    if reader.is_some() {
        tracing::warn!("metrics were used before telemetry was set up, so OTLP does not export them");
    }
    registry.provider.clone()
}

impl Registry {
    fn new(provider: MeterProviderBuilder, resource: Resource) -> Self {
        let prometheus = PrometheusRegistry::new();
        if let Err(error) = prometheus.register(Box::new(ProcessCollector::for_self())) {
            tracing::warn!(%error, "can't collect the process's own metrics");
        }
        let mut provider = provider.with_resource(resource);
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
        let provider = provider.build();
        let meter = provider.meter("webruntime");
        Self { provider, prometheus, meter }
    }
}
