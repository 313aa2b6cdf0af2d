//! The front door: by `Host`, a request is for a site, for the base host, or for nobody here.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use http::{HeaderMap, StatusCode, Uri, header};
use tower::ServiceExt;
use web::{Code, Frame, Problem};

use crate::edge::Edge;
use crate::{forms, pages, proxy, short, submissions};

/// Everything the edge answers.
pub(crate) fn router(edge: &Edge) -> Router {
    let door = Door { edge: edge.clone(), base: base_router(edge) };
    Router::new().fallback(enter).with_state(door)
}

#[derive(Clone)]
struct Door {
    edge: Edge,
    base: Router,
}

async fn enter(State(door): State<Door>, request: Request) -> Response {
    let host = host_of(request.headers(), request.uri());
    let addresses = &door.edge.addresses;
    if let Some(name) = addresses.subdomain_of(&host) {
        let (asked, _) = request.into_parts();
        return pages::serve(&door.edge, name, &asked).await;
    }
    let is_base = host == addresses.base_host() || (addresses.is_local() && is_loopback(&host));
    if !is_base {
        return (StatusCode::NOT_FOUND, "There is no site at this address.\n").into_response();
    }
    match door.base.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The host asked for, in lower case and without its port.
fn host_of(headers: &HeaderMap, uri: &Uri) -> String {
    let named = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let authority = named.or_else(|| uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default();
    let port = authority.rfind(':').filter(|at| authority[at + 1..].chars().all(|c| c.is_ascii_digit()));
    let host = &authority[..port.unwrap_or(authority.len())];
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn is_loopback(host: &str) -> bool {
    host == "127.0.0.1" || host == "[::1]" || host == "localhost"
}

fn base_router(edge: &Edge) -> Router {
    let ids = edge.clone();
    let frame = Frame {
        new_request_id: Arc::new(move || ids.rng.uuid_v7(ids.clock.now()).simple().to_string()),
        // A stranger's trace is not ours to continue.
        continue_trace: |_, _| {},
    };
    Router::new()
        .route("/api/forms/{id}/submit", post(submissions::submit).options(submissions::preflight))
        .route("/f/{id}", get(forms::show))
        .route("/p/{*slug}", get(short::show))
        .route("/api/collect", any(proxy::to_collector))
        .route("/api/{*rest}", any(proxy::to_control_plane))
        .route("/", get(home))
        .fallback(async || Problem::new(Code::NotFound, "there is no such path"))
        .layer(from_fn_with_state(frame, web::frame))
        .with_state(edge.clone())
}

async fn home(State(edge): State<Edge>) -> Response {
    let base = edge.addresses.base();
    let text = format!(
        "Web Runtime\n\nGet a key:      curl -X POST {base}/api/trial\nRead the API:   {base}/api/openapi.json\n"
    );
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], Body::from(text)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_without_port_and_case() {
        let host = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, value.parse().unwrap());
            host_of(&headers, &Uri::from_static("/"))
        };
        assert_eq!(host("A-b.LocalHost:8080"), "a-b.localhost");
        assert_eq!(host("a.test."), "a.test");
        assert_eq!(host("[::1]:8080"), "[::1]");
        assert_eq!(host("[::1]"), "[::1]");
        assert_eq!(host_of(&HeaderMap::new(), &Uri::from_static("http://x.test:1/")), "x.test");
    }
}
