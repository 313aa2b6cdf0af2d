//! A trace sink: records the spans that services export over OTLP.

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

/// An exported span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace_id: Vec<u8>,
    pub name: String,
    /// The resource attribute `service.name`.
    pub service: String,
}

type Spans = Arc<Mutex<Vec<Span>>>;

/// An OTLP/HTTP receiver on this machine.
#[derive(Debug, Clone)]
pub struct TraceSink {
    /// The value for the setting `telemetry.otlp_endpoint`.
    pub endpoint: String,
    spans: Spans,
}

impl TraceSink {
    /// Listens on a free port.
    pub async fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let spans = Spans::default();
        let app = Router::new()
            .route("/v1/traces", post(receive))
            .fallback(async || StatusCode::OK)
            .with_state(Arc::clone(&spans));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { endpoint, spans })
    }

    /// All spans received so far.
    pub fn spans(&self) -> Vec<Span> {
        self.spans.lock().map(|spans| spans.clone()).unwrap_or_default()
    }
}

async fn receive(State(spans): State<Spans>, body: Bytes) -> StatusCode {
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
