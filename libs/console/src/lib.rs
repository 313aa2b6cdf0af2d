//! The console: pages on which a signed-in person sees and manages an account.
//!
//! The console is a client of the API. A screen calls operations in process, through the API's own router and with the
//! viewer's session; it has no query, no rule and no session of its own.

mod api_client;
mod assets;
mod charts;
mod content_hash;
mod file_store;
mod flash;
mod form_submission;
mod formatting;
mod page;
mod same_origin;
mod screens;
mod state;
mod static_files;
mod url_query;
mod viewer;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use serde_json::Value;
use service::{Clock, Rng};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate};
use web::CompletedRequest;

pub use assets::Assets;
pub use file_store::FileStore;

use api_client::ApiClient;
use screens::{
    account, analytics, automations, builder, folders, form_details, forms, keys, overview, sites,
    static_file, submissions, theme, webhooks, welcome,
};
use state::Console;

/// What the console needs from the service that mounts it.
#[derive(Debug)]
pub struct Setup {
    pub assets: Arc<Assets>,
    /// The API without a frame: each call runs inside the frame of the page's request.
    pub api: Router,
    /// Records metrics of a completed call.
    pub count: fn(&CompletedRequest<'_>),
    /// The OpenAPI document, which types the fields of forms.
    pub document: Value,
    /// Stores files that forms carry.
    pub file_store: FileStore,
    pub clock: Clock,
    pub rng: Rng,
}

/// Returns the routes of the console, and `/`.
pub fn routes<S>(setup: Setup) -> Router<S> {
    let console = Console {
        api: ApiClient::new(setup.api, setup.count, &setup.assets.base),
        assets: setup.assets,
        document: Arc::new(setup.document),
        file_store: setup.file_store,
        clock: setup.clock,
        rng: setup.rng,
    };
    Router::new()
        .route("/", get(welcome::show))
        .route("/console", get(overview::show))
        .route("/console/theme", post(theme::update))
        .route("/console/forms", get(forms::list))
        .route("/console/keys", get(keys::list).post(keys::create))
        .route("/console/keys/{id}/rotate", post(keys::rotate))
        .route("/console/keys/{id}/revoke", post(keys::revoke))
        .merge(account::routes())
        .merge(analytics::routes())
        .merge(automations::routes())
        .merge(builder::routes())
        .merge(folders::routes())
        .merge(form_details::routes())
        .merge(sites::routes())
        .merge(submissions::routes())
        .merge(webhooks::routes())
        .route("/console/{*file}", get(static_file::serve))
        .route_layer(from_fn_with_state(console.clone(), same_origin::check))
        .layer(compression())
        .with_state(console)
}

/// Compresses pages and files. The page that shows a new key opts out.
fn compression() -> CompressionLayer<impl Predicate> {
    let predicate = DefaultPredicate::new().and(page::is_compressible);
    CompressionLayer::new().gzip(true).quality(CompressionLevel::Default).compress_when(predicate)
}
