//! A sink for traces: what an OpenTelemetry collector would be sent.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::StatusCode;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use tokio::net::TcpListener;

/// A span as it was exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The trace it belongs to.
    pub trace_id: Vec<u8>,
    /// Its name.
    pub name: String,
    /// The process that made it.
    pub service: String,
}

type Spans = Arc<Mutex<Vec<Span>>>;

/// Takes OTLP over HTTP on this machine.
#[derive(Debug, Clone)]
pub struct TraceSink {
    /// What services are told as `telemetry.otlp_endpoint`.
    pub endpoint: String,
    spans: Spans,
}

impl TraceSink {
    /// Listens on a free port.
    ///
    /// # Errors
    /// There is none.
    pub async fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let spans = Spans::default();
        let app = Router::new()
            .route("/v1/traces", post(take))
            .fallback(async || StatusCode::OK)
            .with_state(Arc::clone(&spans));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { endpoint, spans })
    }

    /// Every span so far.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().map(|spans| spans.clone()).unwrap_or_default()
    }
}

async fn take(State(spans): State<Spans>, body: Bytes) -> StatusCode {
    let Ok(request) = ExportTraceServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
    let Ok(mut all) = spans.lock() else { return StatusCode::INTERNAL_SERVER_ERROR };
    for resource in request.resource_spans {
        let attributes = resource.resource.map(|resource| resource.attributes).unwrap_or_default();
        let service =
            attributes.into_iter().find(|pair| pair.key == "service.name").and_then(|pair| pair.value);
        let service = service.map(|value| format!("{value:?}")).unwrap_or_default();
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            all.push(Span { trace_id: span.trace_id, name: span.name, service: service.clone() });
        }
    }
    StatusCode::OK
}
