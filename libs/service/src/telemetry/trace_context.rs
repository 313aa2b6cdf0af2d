//! W3C trace context: extracted from a request or job and propagated to the next one. With OTLP off, each function costs
//! one atomic read.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::state::tracing_is_on;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Returns the current span as a `traceparent` value for a job or a request. Returns `None` with OTLP off or outside an
/// exported span.
#[must_use]
pub fn traceparent() -> Option<String> {
    if !tracing_is_on() {
        return None;
    }
    let context = Span::current().context();
    let span = context.span().span_context().clone();
    let flags = span.trace_flags().to_u8();
    span.is_valid().then(|| format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id()))
}

/// Adds the current span's `traceparent`, if it has one, to the headers of an outgoing request.
pub fn inject(headers: &mut HeaderMap) {
    if let Some(value) = traceparent().and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(TRACEPARENT, value);
    }
}

/// Returns the `traceparent` of an incoming request, or `None` with OTLP off. The caller decides whether to trust the
/// sender.
#[must_use]
pub fn extract(headers: &HeaderMap) -> Option<String> {
    if !tracing_is_on() {
        return None;
    }
    headers.get(TRACEPARENT)?.to_str().ok().map(str::to_owned)
}

/// Adds `span` to the trace of `traceparent`. Call it before the span is entered. With an invalid value, the span starts a
/// trace of its own.
pub fn continue_from(span: &Span, traceparent: Option<&str>) {
    let Some(traceparent) = traceparent.filter(|_| tracing_is_on()) else { return };
    let carrier =
        std::collections::HashMap::from([(TRACEPARENT.as_str().to_owned(), traceparent.to_owned())]);
    let parent = TraceContextPropagator::new().extract(&carrier);
    if parent.span().span_context().is_valid() {
        // Fails only for a span that is not exported and so needs no parent.
        let _not_exported = span.set_parent(parent);
    }
}
