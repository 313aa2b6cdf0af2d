//! The rooms behind the door: by `Host`, a request is for a site, for the base host, or for nobody here.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http::{StatusCode, header};
use service::metrics::HttpServerRequestDuration;
use tower::ServiceExt;
use web::{Code, CompletedRequest, Frame, Problem};

use crate::forms::{challenges, embed, results};
use crate::sites::classify_host::HostKind;
use crate::sites::classify_host::SiteHost;
use crate::sites::files::assets;
use crate::sites::pages::tracker;
use crate::sites::{classify_host, short_urls, site_handler};
use crate::state::EdgeState;
use crate::submissions::handler as submissions;
use crate::uploads::form_files::{download, presign};
use crate::uploads::signed_uploads;
use crate::{forms, proxy};

/// Everything that isn't answered at the door. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HostRouter {
    edge: EdgeState,
    base: Router,
}

impl HostRouter {
    pub(crate) fn new(edge: &EdgeState) -> Self {
        Self { edge: edge.clone(), base: base_router(edge) }
    }

    /// Answers a request, whatever it is.
    pub(crate) async fn answer(self, request: Request) -> Response {
        let Some(host) = classify_host::asked(request.headers(), request.uri()) else {
            return (StatusCode::BAD_REQUEST, "A request has one Host.\n").into_response();
        };
        match classify_host::classify_host(&self.edge.addresses, &host) {
            HostKind::Site(SiteHost::Subdomain(assets::NAME)) => {
                assets::serve(&self.edge, &request.into_parts().0).await
            }
            HostKind::Site(host) => site_handler::serve(&self.edge, host, request).await,
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

/// Kept, because the lookup by name would cost on every request.
static REQUEST_DURATION: LazyLock<HttpServerRequestDuration> =
    LazyLock::new(service::metrics::http_server_request_duration);

fn base_router(edge: &EdgeState) -> Router {
    let ids = edge.clone();
    let frame = Frame {
        new_request_id: Arc::new(move || ids.rng.uuid_v7(ids.clock.now()).simple().to_string()),
        // A stranger's trace is not ours to continue.
        continue_trace: |_, _| {},
        count: |answered| {
            let CompletedRequest { method, route, status, elapsed } = *answered;
            REQUEST_DURATION.record(method, route, status, elapsed);
        },
    };
    Router::new()
        .route("/api/forms/{id}/submit", submissions::route())
        .route(
            "/api/forms/{id}/challenge",
            get(challenges::give).layer(map_response(submissions::to_everybody)),
        )
        .route("/api/forms/{id}/upload", presign::route())
        .route("/api/forms/{id}/files/{oid}", get(download::fetch))
        .route("/downloads/{id}", get(download::download))
        .route("/api/forms/{id}/results", results::route())
        .route("/uploads/{id}", signed_uploads::route())
        .route("/f/{id}", get(forms::show))
        .route("/f/{id}/thanks", get(forms::thank))
        .route("/embed.js", get(embed::embed))
        .route("/form.js", get(embed::form))
        .route("/proof.js", get(embed::proof))
        .route("/p/{*slug}", get(short_urls::show))
        .route("/api/collect", any(proxy::to_collector))
        .route(tracker::PUBLIC_PATH, any(proxy::to_collector))
        // A counted page under `/p/` finds the tracker here.
        .route(tracker::SCRIPT_PATH, any(proxy::to_collector))
        .route(tracker::FORMER_PATH, any(proxy::to_collector))
        .route(tracker::COLLECT_PATH, any(proxy::to_collector))
        .route("/api/{*rest}", any(proxy::to_control_plane))
        .merge(signing_in())
        .route("/", get(home))
        .fallback(async || Problem::new(Code::NotFound, "there is no such path"))
        .layer(from_fn_with_state(frame, web::frame))
        .with_state(edge.clone())
}

/// The pages of people who sign in; the control plane has them.
fn signing_in() -> Router<EdgeState> {
    let paths = ["/login", "/login/{*rest}", "/logout", "/claim/{*rest}", "/account", "/account/{*rest}"];
    paths.into_iter().fold(Router::new(), |router, path| router.route(path, any(proxy::to_control_plane)))
}

async fn home(State(edge): State<EdgeState>) -> Response {
    let base = edge.addresses.base();
    let text = format!(
        "Web Runtime\n\nGet a key:      curl -X POST {base}/api/trial\nRead the API:   {base}/api/openapi.json\n"
    );
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], Body::from(text)).into_response()
}
