//! A telemetry sink: records the spans and log lines that services export over OTLP.

use std::io::Read as _;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use flate2::read::GzDecoder;
use http::{HeaderMap, StatusCode, header};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use tokio::net::TcpListener;

/// An exported span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace_id: Vec<u8>,
    pub span_id: Vec<u8>,
    /// Empty for the first span of a trace.
    pub parent_span_id: Vec<u8>,
    pub name: String,
    /// The resource attribute `service.name`.
    pub service: String,
    /// The attribute `step.path` of an automation's step, or an empty string.
    pub step: String,
}

/// An exported log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Empty outside a span.
    pub trace_id: Vec<u8>,
    pub text: String,
    /// The resource attribute `service.name`.
    pub service: String,
}

#[derive(Debug, Default)]
struct Received {
    spans: Vec<Span>,
    lines: Vec<LogLine>,
}

type Shared = Arc<Mutex<Received>>;

/// An OTLP/HTTP receiver on this machine.
#[derive(Debug, Clone)]
pub struct TraceSink {
    /// The value for the setting `telemetry.otlp_endpoint`.
    pub endpoint: String,
    received: Shared,
}

impl TraceSink {
    /// Listens on a free port.
    pub async fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let received = Shared::default();
        let app = Router::new()
            .route("/v1/traces", post(receive_spans))
            .route("/v1/logs", post(receive_lines))
            .fallback(async || StatusCode::OK)
            .with_state(Arc::clone(&received));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { endpoint, received })
    }

    /// All spans received so far.
    pub fn spans(&self) -> Vec<Span> {
        self.received.lock().map(|received| received.spans.clone()).unwrap_or_default()
    }

    /// All log lines received so far.
    pub fn lines(&self) -> Vec<LogLine> {
        self.received.lock().map(|received| received.lines.clone()).unwrap_or_default()
    }
}

async fn receive_spans(State(received): State<Shared>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let Some(request) = decoded::<ExportTraceServiceRequest>(&headers, &body) else {
        return StatusCode::BAD_REQUEST;
    };
    let Ok(mut received) = received.lock() else { return StatusCode::INTERNAL_SERVER_ERROR };
    for resource in request.resource_spans {
        let service = service_name(resource.resource);
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            received.spans.push(Span {
                trace_id: span.trace_id,
                span_id: span.span_id,
                parent_span_id: span.parent_span_id,
                name: span.name,
                service: service.clone(),
                step: text_of(span.attributes, "step.path"),
            });
        }
    }
    StatusCode::OK
}

async fn receive_lines(State(received): State<Shared>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let Some(request) = decoded::<ExportLogsServiceRequest>(&headers, &body) else {
        return StatusCode::BAD_REQUEST;
    };
    let Ok(mut received) = received.lock() else { return StatusCode::INTERNAL_SERVER_ERROR };
    for resource in request.resource_logs {
        let service = service_name(resource.resource);
        for line in resource.scope_logs.into_iter().flat_map(|scope| scope.log_records) {
            let text = text(line.body);
            received.lines.push(LogLine { trace_id: line.trace_id, text, service: service.clone() });
        }
    }
    StatusCode::OK
}

/// Decodes a message that may be compressed.
fn decoded<M: Message + Default>(headers: &HeaderMap, body: &[u8]) -> Option<M> {
    if headers.get(header::CONTENT_ENCODING).is_none_or(|coding| coding != "gzip") {
        return M::decode(body).ok();
    }
    let mut plain = Vec::new();
    GzDecoder::new(body).read_to_end(&mut plain).ok()?;
    M::decode(&*plain).ok()
}

fn service_name(resource: Option<Resource>) -> String {
    text_of(resource.map(|resource| resource.attributes).unwrap_or_default(), "service.name")
}

fn text_of(attributes: Vec<KeyValue>, key: &str) -> String {
    text(attributes.into_iter().find(|pair| pair.key == key).and_then(|pair| pair.value))
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        _ => String::new(),
    }
}
