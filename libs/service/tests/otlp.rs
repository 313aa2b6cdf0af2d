//! With an OTLP endpoint configured, one trace spans two services and is exported. The only test in its file, because
//! telemetry is initialized once per process.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use http::HeaderMap;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use service::config::{self, Sources};
use service::metrics::Counter;
use service::{Listeners, Shutdown, telemetry};

static ACCEPTED: Counter = Counter::new("test_submission_accepted_total", "Accepted.", &[]);
use tokio::sync::mpsc;

#[derive(Debug, serde::Deserialize)]
struct NoConfig {}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A collector that forwards the spans of `/v1/traces` and reports the arrival of the other two signals.
async fn collector() -> (String, mpsc::UnboundedReceiver<Span>, mpsc::UnboundedReceiver<&'static str>) {
    let listeners = Listeners::on_free_ports().unwrap();
    let address = listeners.main.local_addr().unwrap();
    let (spans, received) = mpsc::unbounded_channel();
    let (signals, arrived) = mpsc::unbounded_channel();
    let (logs, metrics) = (signals.clone(), signals);
    let app = Router::new()
        .route(
            "/v1/traces",
            post(async move |body: Bytes| {
                let request = ExportTraceServiceRequest::decode(body).unwrap();
                let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
                scopes.flat_map(|scope| scope.spans).for_each(|span| spans.send(span).unwrap());
            }),
        )
        .route("/v1/logs", post(async move |_: Bytes| logs.send("logs").unwrap()))
        .route("/v1/metrics", post(async move |_: Bytes| metrics.send("metrics").unwrap()));
    tokio::spawn(service::http::serve(listeners.main, app, Shutdown::new(), listeners.drain));
    (format!("http://{address}"), received, arrived)
}

async fn next<T>(received: &mut mpsc::UnboundedReceiver<T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), received.recv()).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_spans_both_services_and_reaches_the_collector() {
    let mut headers = HeaderMap::new();
    tracing::info_span!("before telemetry").in_scope(|| telemetry::inject(&mut headers));
    assert!(headers.is_empty() && telemetry::traceparent().is_none(), "off until initialized");

    let (endpoint, mut spans, mut signals) = collector().await;
    let set = vec![format!("telemetry.otlp_endpoint={endpoint}"), "telemetry.log=error".into()];
    let loaded = config::load::<NoConfig>("", &Sources { set, ..Sources::default() }).unwrap();
    let guard = telemetry::init(&loaded.base.telemetry, "test").unwrap();

    // The first service propagates its context by header.
    let sent = tracing::info_span!("submit").in_scope(|| {
        ACCEPTED.add(1, &[]);
        tracing::info!("accepted");
        telemetry::inject(&mut headers);
        telemetry::traceparent().unwrap()
    });
    // The second service continues the trace from the header.
    let received = telemetry::extract(&headers).unwrap();
    assert_eq!(received, sent);
    let attempt = tracing::info_span!("attempt");
    telemetry::continue_from(&attempt, Some(&received));
    let onward = attempt.in_scope(|| telemetry::traceparent().unwrap());
    drop(attempt);
    assert_eq!(onward.split('-').nth(1), sent.split('-').nth(1), "the same trace");
    assert_ne!(onward.split('-').nth(2), sent.split('-').nth(2), "another span");

    let flush = tokio::spawn(async move {
        guard.flush().await;
        guard
    });
    let (one, other) = (next(&mut spans).await, next(&mut spans).await);
    let (submit, attempt) = if one.name == "submit" { (one, other) } else { (other, one) };
    assert_eq!((submit.name.as_str(), attempt.name.as_str()), ("submit", "attempt"));
    assert_eq!(submit.trace_id, attempt.trace_id);
    assert_eq!(attempt.parent_span_id, submit.span_id);
    assert_eq!(format!("00-{}-{}-01", hex(&submit.trace_id), hex(&submit.span_id)), sent);
    let both = [next(&mut signals).await, next(&mut signals).await];
    assert!(both.contains(&"logs") && both.contains(&"metrics"), "{both:?}");

    // A second initialization in the same process has no effect.
    drop(telemetry::init(&loaded.base.telemetry, "second").unwrap());
    let guard = flush.await.unwrap();
    tracing::info_span!("last span").in_scope(|| {});
    tokio::task::spawn_blocking(move || drop(guard)).await.unwrap();
    assert_eq!(next(&mut spans).await.name, "last span", "dropping the guard exports the buffered spans");
}
