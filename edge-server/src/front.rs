//! The front door: by `Host`, a request is for a site, for the base host, or for nobody here.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http::{HeaderMap, StatusCode, Uri, header};
use tower::ServiceExt;
use web::{Code, Frame, Problem};

use crate::edge::Edge;
use crate::{assets, forms, pages, proxy, short, submissions, uploads};

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
    let Some(host) = host_of(request.headers(), request.uri()) else {
        return (StatusCode::BAD_REQUEST, "A request has one Host.\n").into_response();
    };
    let addresses = &door.edge.addresses;
    if let Some(name) = addresses.subdomain_of(&host) {
        let (asked, _) = request.into_parts();
        if name == assets::NAME {
            return assets::serve(&door.edge, &asked).await;
        }
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

/// The host asked for, in lower case and without its port. A target that names it itself goes before the
/// header (RFC 9112, 3.2.2). `None` if the header stands there twice: whoever passed the request on to us may
/// have gone by the other one.
fn host_of(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let mut named = headers.get_all(header::HOST).iter();
    let header = named.next().map(|value| value.to_str().unwrap_or_default()).unwrap_or_default();
    if named.next().is_some() {
        return None;
    }
    let authority = uri.authority().map_or(header, http::uri::Authority::as_str);
    let port = authority.rfind(':').filter(|at| authority[at + 1..].chars().all(|c| c.is_ascii_digit()));
    let host = &authority[..port.unwrap_or(authority.len())];
    Some(host.trim_end_matches('.').to_ascii_lowercase())
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
        count: |answered| {
            let labels = [("route", answered.route), ("status", answered.status.as_str())];
            service::metrics::histogram("edge_request_answer_seconds")
                .record_elapsed(answered.elapsed, &labels);
        },
    };
    Router::new()
        .route("/api/forms/{id}/submit", submissions::route())
        .route("/uploads/{id}", uploads::route())
        .route("/f/{id}", get(forms::show))
        .route("/p/{*slug}", get(short::show))
        .route("/api/collect", any(proxy::to_collector))
        .route("/api/{*rest}", any(proxy::to_control_plane))
        .merge(signing_in())
        .route("/", get(home))
        .fallback(async || Problem::new(Code::NotFound, "there is no such path"))
        .layer(from_fn_with_state(frame, web::frame))
        .with_state(edge.clone())
}

/// The pages of people who sign in; the control plane has them.
fn signing_in() -> Router<Edge> {
    let paths = ["/login", "/login/{*rest}", "/logout", "/claim/{*rest}", "/account", "/account/{*rest}"];
    paths.into_iter().fold(Router::new(), |router, path| router.route(path, any(proxy::to_control_plane)))
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

    fn asked(hosts: &[&str], target: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        host_of(&headers, &Uri::from_static(target))
    }

    #[test]
    fn a_host_is_read_without_port_and_case() {
        for (written, host) in [
            ("A-b.LocalHost:8080", "a-b.localhost"),
            ("a.test.", "a.test"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(asked(&[written], "/").as_deref(), Some(host));
        }
        assert_eq!(asked(&[], "/").as_deref(), Some(""));
    }

    #[test]
    fn a_target_with_a_host_goes_before_the_header() {
        assert_eq!(asked(&[], "http://x.test:1/").as_deref(), Some("x.test"));
        assert_eq!(asked(&["y.test"], "http://x.test/").as_deref(), Some("x.test"));
    }

    #[test]
    fn two_hosts_are_none() {
        assert_eq!(asked(&["x.test", "y.test"], "/"), None);
        assert_eq!(asked(&["x.test", "x.test"], "/"), None);
    }
}
