//! The management API: the list of its resources, its router and its document.

mod account;
mod activity;
mod analytics;
mod assets;
mod automations;
mod csv_file;
mod deploys;
mod domains;
mod elsewhere;
mod entries;
mod folders;
mod forms;
mod help;
mod keys;
mod launch;
mod pages;
mod pipeline;
mod sessions;
mod status;
mod subdomains;
mod submissions;
mod system;
mod time_range;
mod trial;
mod webhooks;
mod workflows;

use std::sync::{Arc, LazyLock};

use aide::openapi::{OpenApi, Server};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use http::{HeaderValue, header};
use service::metrics::HttpServerRequestDuration;
use web::{Code, CompletedRequest, Frame, Problem, Resource};

use crate::App;
use crate::catalog::{CATALOG, Catalog};

const DESCRIPTION: &str = "Send HTML, get a live URL; describe a form, get a page, an embed and an endpoint; \
    with privacy-first analytics and signed webhooks. Start with POST /api/trial: it needs nothing.";

fn resources() -> Vec<Resource<App>> {
    let mut resources = vec![
        trial::resource(),
        launch::resource(),
        pipeline::resource(),
        status::resource(),
        account::resource(),
        sessions::resource(),
        activity::resource(),
        help::resource(),
        keys::resource(),
        subdomains::resource(),
        domains::resource(),
        folders::resource(),
        assets::resource(),
        deploys::resource(),
        pages::resource(),
        entries::resource(),
        pages::versions::resource(),
        forms::resource(),
        submissions::resource(),
        workflows::resource(),
        webhooks::resource(),
        webhooks::deliveries::resource(),
        analytics::resource(),
        automations::resource(),
        system::resource(),
    ];
    resources.extend(elsewhere::resources());
    resources
}

/// The OpenAPI document.
pub fn document() -> OpenApi {
    web::document_of("Web Runtime", DESCRIPTION, resources()).1
}

/// Held here, because a lookup by name is measurable on every request.
static REQUEST_DURATION: LazyLock<HttpServerRequestDuration> =
    LazyLock::new(service::metrics::http_server_request_duration);

/// Responses hold an account's data and are never anything but their declared type, unless a handler says otherwise.
async fn add_default_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Stores the files that the console's forms carry.
fn file_store(app: &App) -> console::FileStore {
    let app = app.clone();
    console::FileStore::new(move |url, file| {
        let app = app.clone();
        async move { crate::uploads::receive(&app, &url, file).await }
    })
}

/// The API's router, with the frame around every request.
pub fn router(app: &App) -> Router {
    let (router, mut document) = web::document_of("Web Runtime", DESCRIPTION, resources());
    document.servers = vec![Server { url: app.addresses.base().to_owned(), ..Server::default() }];
    let catalog = Arc::clone(CATALOG.get_or_init(|| Arc::new(Catalog::new(&document))));
    app.reference.describe(&catalog);
    let ids = app.clone();
    let frame = Frame {
        new_request_id: Arc::new(move || ids.rng.uuid_v7(ids.clock.now()).simple().to_string()),
        continue_trace: |span, headers| {
            service::telemetry::continue_from(span, service::telemetry::extract(headers).as_deref());
        },
        count: |answered| {
            let CompletedRequest { method, route, status, elapsed } = *answered;
            REQUEST_DURATION.record(method, route, status, elapsed);
        },
    };
    let api = router
        .merge(system::document_routes(&document))
        .route_layer(crate::idempotency::IdempotencyLayer(app.clone()))
        .route_layer(crate::compression::layer())
        .route_layer(from_fn_with_state(app.clone(), crate::admission::admit));
    // The endpoint admits its requests by itself; the calls that they carry are admitted with them.
    let limit = DefaultBodyLimit::max(web::MAX_BODY_BYTES);
    let unframed = api.clone().layer(limit).with_state(app.clone());
    let mcp = crate::mcp::routes(app, unframed.clone(), frame.count, catalog);
    // Its screens are clients: each of their calls is authenticated and admitted by itself.
    let console = console::routes(console::Setup {
        assets: Arc::clone(&app.console),
        api: unframed,
        count: frame.count,
        document: serde_json::to_value(&document).unwrap_or_default(),
        file_store: file_store(app),
        clock: app.clock.clone(),
        rng: app.rng.clone(),
    });
    api.merge(mcp)
        .merge(console)
        .merge(automations::public::routes())
        .merge(crate::signin::routes(app))
        .fallback(async || {
            Problem::new(Code::NotFound, "there is no such path; GET /api/openapi.json lists all paths")
        })
        .layer(limit)
        .layer(from_fn_with_state(frame, web::frame))
        .layer(map_response(add_default_headers))
        .with_state(app.clone())
}
