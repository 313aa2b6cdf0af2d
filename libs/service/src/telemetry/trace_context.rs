//! W3C trace context at the doors: taken from a request or a job, handed on to the next one. With OTLP off there
//! is nothing to hand on, and these cost one atomic read.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::tracing_is_on;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The current span as a `traceparent` value, to travel with a job or a request; `None` with OTLP off or outside
/// any exported span.
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

/// Puts the current span's `traceparent` on an outgoing request, if there is one.
pub fn inject(headers: &mut HeaderMap) {
    if let Some(value) = traceparent().and_then(|text| HeaderValue::try_from(text).ok()) {
        headers.insert(TRACEPARENT, value);
    }
}

/// The `traceparent` of an incoming request; `None` with OTLP off. Whether the sender may be believed is for the
/// caller to say.
#[must_use]
pub fn extract(headers: &HeaderMap) -> Option<String> {
    if !tracing_is_on() {
        return None;
    }
    headers.get(TRACEPARENT)?.to_str().ok().map(str::to_owned)
}

/// Makes `span` part of the trace that `traceparent` names. Call it before the span is entered; what can't be
/// parsed is passed over, and the span starts a trace of its own.
pub fn continue_from(span: &Span, traceparent: Option<&str>) {
    let Some(traceparent) = traceparent.filter(|_| tracing_is_on()) else { return };
    let carrier =
        std::collections::HashMap::from([(TRACEPARENT.as_str().to_owned(), traceparent.to_owned())]);
    let parent = TraceContextPropagator::new().extract(&carrier);
    if parent.span().span_context().is_valid() {
        // Refused only for a span nobody exports, which needs no parent.
        let _not_exported = span.set_parent(parent);
    }
}
