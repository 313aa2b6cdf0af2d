//! Export of traces, logs and metrics by OTLP over HTTP and protobuf. The exporters have threads of their own, on which
//! only the blocking HTTP client works.

use std::time::Duration;

use anyhow::Context as _;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{LogExporter, MetricExporter, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

use super::config::Config;
use crate::{Clock, Rng, metrics};

/// The filter of exported signals, independent of the log level. It excludes the exporters' own HTTP client: each export
/// would create a span to export, without end.
const EXPORTED: &str = "info,hyper=off,hyper_util=off,h2=off,reqwest=off,rustls=off,opentelemetry=off";

/// Timeout of the last export, at shutdown.
const LAST_EXPORT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(super) struct Providers {
    tracer: SdkTracerProvider,
    logger: SdkLoggerProvider,
    meter: SdkMeterProvider,
}

impl Providers {
    pub(super) fn connect(config: &Config, service_name: &str) -> anyhow::Result<Self> {
        let base = config.otlp_endpoint.trim_end_matches('/');
        let context = || format!("telemetry.otlp_endpoint = {base:?}");
        // Replicas have the same name: without an id of its own, each would overwrite the series of the others.
        let resource = Resource::builder()
            .with_service_name(service_name.to_owned())
            .with_attributes([
                KeyValue::new("service.version", metrics::VERSION),
                KeyValue::new(
                    "service.instance.id",
                    Rng::system().uuid_v7(Clock::system().now()).to_string(),
                ),
            ])
            .build();

        let spans = SpanExporter::builder().with_http().with_endpoint(format!("{base}/v1/traces")).build();
        let tracer = SdkTracerProvider::builder()
            .with_batch_exporter(spans.with_context(context)?)
            .with_resource(resource.clone())
            .build();
        let logs = LogExporter::builder().with_http().with_endpoint(format!("{base}/v1/logs")).build();
        let logger = SdkLoggerProvider::builder()
            .with_batch_exporter(logs.with_context(context)?)
            .with_resource(resource.clone())
            .build();
        let metrics_exporter =
            MetricExporter::builder().with_http().with_endpoint(format!("{base}/v1/metrics")).build();
        let meter = metrics::export_to(
            metrics_exporter.with_context(context)?,
            config.otlp_metrics_interval,
            resource,
        );
        Ok(Self { tracer, logger, meter })
    }

    pub(super) fn spans<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer = self.tracer.tracer("webruntime");
        tracing_opentelemetry::layer().with_tracer(tracer).with_filter(EnvFilter::new(EXPORTED))
    }

    pub(super) fn logs<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        OpenTelemetryTracingBridge::new(&self.logger).with_filter(EnvFilter::new(EXPORTED))
    }

    pub(super) fn flush(&self) {
        let results = [self.tracer.force_flush(), self.logger.force_flush(), self.meter.force_flush()];
        for error in results.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "telemetry could not be exported");
        }
    }

    pub(super) fn shut_down(&self) {
        let results = [
            self.tracer.shutdown_with_timeout(LAST_EXPORT),
            self.logger.shutdown_with_timeout(LAST_EXPORT),
            self.meter.shutdown_with_timeout(LAST_EXPORT),
        ];
        for error in results.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "the last telemetry could not be exported");
        }
    }
}
