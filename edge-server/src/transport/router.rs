//! Routes requests by `Host`: to a site, to the asset host, or to the base host's routes.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use http::{HeaderValue, StatusCode, header};
use service::metrics::HttpServerRequestDuration;
use tower::ServiceExt;
use web::{Code, CompletedRequest, Frame, Problem};

use crate::cors::allow_any_origin;
use crate::forms::{challenges, drafts, embed, handlers as forms, results};
use crate::proxy;
use crate::sites::classify_host::{HostKind, SiteHost, classify_host, requested_host};
use crate::sites::files::assets;
use crate::sites::pages::tracker;
use crate::sites::{short_urls, site_handler};
use crate::state::EdgeState;
use crate::submissions::{confirmation, handler as submissions};
use crate::tls::is_http_challenge;
use crate::uploads::form_files::{download, presign};
use crate::uploads::signed_uploads;

/// Routes every request that is not answered from the caches. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HostRouter {
    state: EdgeState,
    base: Router,
}

impl HostRouter {
    pub(crate) fn new(state: &EdgeState) -> Self {
        Self { state: state.clone(), base: base_router(state) }
    }

    /// Returns the response to any request.
    pub(crate) async fn route(self, request: Request) -> Response {
        let Some(host) = requested_host(request.version(), request.headers(), request.uri()) else {
            return (StatusCode::BAD_REQUEST, "A request has one Host.\n").into_response();
        };
        let path = request.uri().path();
        if is_http_challenge(path)
            && let Some(response) = self.state.challenges.respond(&host, path).await
        {
            return response;
        }
        match classify_host(&self.state.addresses, &host) {
            HostKind::Site(SiteHost::Subdomain(assets::NAME)) => {
                let (request, _body) = request.into_parts();
                self.state.assets.respond(&self.state.file_bodies, &request, &self.state.rng).await
            }
            HostKind::Site(host) => site_handler::serve(&self.state, host, request).await,
            HostKind::Unknown => {
                (StatusCode::NOT_FOUND, "There is no site at this address.\n").into_response()
            }
            HostKind::Base => match self.base.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
        }
    }
}

/// Looked up once, because a lookup by name would cost time on every request.
static REQUEST_DURATION: LazyLock<HttpServerRequestDuration> =
    LazyLock::new(service::metrics::http_server_request_duration);

fn base_router(state: &EdgeState) -> Router {
    let ids = state.clone();
    let frame = Frame {
        new_request_id: Arc::new(move || ids.rng.uuid_v7(ids.clock.now()).simple().to_string()),
        // The edge starts every trace; it does not continue a client's.
        continue_trace: |_, _| {},
        count: |answered| {
            let CompletedRequest { method, route, status, elapsed } = *answered;
            REQUEST_DURATION.record(method, route, status, elapsed);
        },
    };
    Router::new()
        .route("/api/forms/{id}/submit", submissions::route())
        .route("/api/forms/{id}/confirm", confirmation::route())
        .route("/api/forms/{id}/challenge", get(challenges::issue).layer(map_response(allow_any_origin)))
        .route("/api/forms/{id}/upload", presign::route())
        .route("/api/forms/{id}/files/{oid}", get(download::redirect))
        .route("/downloads/{id}", get(download::download))
        .route("/api/forms/{id}/results", results::route())
        .route("/uploads/{id}", signed_uploads::route())
        .route("/f/preview", post(drafts::show))
        .route("/f/{id}", get(forms::show))
        .route("/f/{id}/thanks", get(forms::thank))
        .route("/embed.js", get(embed::embed))
        .route("/form.js", get(embed::form))
        .route("/proof.js", get(embed::proof))
        .route("/p/{*slug}", get(short_urls::show))
        .route("/api/collect", any(proxy::to_collector))
        .route(tracker::PUBLIC_PATH, any(proxy::to_collector))
        // Pages under `/p/` load the tracker from this host.
        .route(tracker::SCRIPT_PATH, any(proxy::to_collector))
        .route(tracker::FORMER_PATH, any(proxy::to_collector))
        .route(tracker::COLLECT_PATH, any(proxy::to_collector))
        .route("/api/{*rest}", any(proxy::to_control_plane))
        .merge(pages_for_people())
        .merge(reference_routes())
        .route("/", get(home))
        .fallback(async || Problem::new(Code::NotFound, "there is no such path"))
        .layer(from_fn_with_state(frame, web::frame))
        .with_state(state.clone())
}

/// The pages for sign-in and accounts and the console, which the control plane serves.
fn pages_for_people() -> Router<EdgeState> {
    let sign_in = ["/login", "/login/{*rest}", "/logout", "/claim/{*rest}", "/account", "/account/{*rest}"];
    let paths = sign_in.into_iter().chain(["/console", "/console/{*rest}"]);
    paths.fold(Router::new(), |router, path| router.route(path, any(proxy::to_control_plane)))
}

/// The reference and what clients look up under fixed paths, which the control plane serves.
fn reference_routes() -> Router<EdgeState> {
    let metadata = ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/{*rest}"];
    let paths = ["/docs", "/docs/{*rest}", "/llms.txt"].into_iter().chain(metadata);
    paths.fold(Router::new(), |router, path| router.route(path, any(proxy::to_control_plane)))
}

/// Answers browsers with a page of the control plane, and other clients with text.
async fn home(State(state): State<EdgeState>, request: Request) -> Response {
    let accepted = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|accepted| accepted.contains("text/html")) {
        let mut response = proxy::to_control_plane(State(state), request).await;
        response.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
        return response;
    }
    let base = state.addresses.base();
    let text = format!(
        "Web Runtime\n\nGet a key:      curl -X POST {base}/api/trial\nRead the API:   {base}/docs, {base}/api/openapi.json\n\
        Agents:         {base}/llms.txt, {base}/api/mcp\n"
    );
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::VARY, "accept")];
    (headers, Body::from(text)).into_response()
}
