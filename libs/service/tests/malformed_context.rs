//! A `traceparent` header from outside is untrusted input.

use service::telemetry;

#[test]
fn with_otlp_off_no_traceparent_is_read_or_created() {
    let mut headers = http::HeaderMap::new();
    headers.insert("traceparent", http::HeaderValue::from_static("00-zz-zz-01"));
    assert_eq!(telemetry::extract(&headers), None);
    let span = tracing::info_span!("attempt");
    telemetry::continue_from(&span, Some("00-zz-zz-01"));
    assert_eq!(span.in_scope(telemetry::traceparent), None);
}
