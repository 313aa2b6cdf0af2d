//! Sites: deploys, pages with their versions, domains, and assets.

mod assets;
mod deploys;
mod domains;
mod list;
mod pages;
mod posted_files;
mod site;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

use crate::state::Console;

/// A page's texts, urlencoded: up to three bytes for each of 704 KB.
const PAGE_FORM_BYTES_MAX: usize = 3 << 20;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    let with_texts = Router::new()
        .route("/console/sites/{id}/pages", get(pages::list).post(pages::create))
        .route("/console/sites/{id}/pages/{page}", get(pages::show).post(pages::update))
        .layer(DefaultBodyLimit::max(PAGE_FORM_BYTES_MAX));
    let with_files = Router::new()
        .route("/console/assets", get(assets::list).post(assets::create))
        .route("/console/sites/{id}/deploys", post(deploys::upload))
        .layer(DefaultBodyLimit::disable());
    Router::new()
        .route("/console/sites", get(list::list).post(list::create))
        .route("/console/sites/rename", post(list::rename))
        .route("/console/sites/{id}", get(deploys::list))
        .route("/console/sites/{id}/deploys/begin", post(deploys::begin))
        .route("/console/sites/{id}/deploys/{deploy}", get(deploys::show))
        .route("/console/sites/{id}/deploys/{deploy}/plan", post(deploys::plan))
        .route("/console/sites/{id}/deploys/{deploy}/publish", post(deploys::publish))
        .route("/console/sites/{id}/deploys/{deploy}/preview", post(deploys::preview))
        .route("/console/sites/{id}/deploys/{deploy}/rollback", post(deploys::roll_back))
        .route("/console/sites/{id}/deploys/{deploy}/delete", post(deploys::delete))
        .route("/console/sites/{id}/pages/new", get(pages::new))
        .route("/console/sites/{id}/pages/{page}/delete", post(pages::delete))
        .route("/console/sites/{id}/pages/{page}/versions/{version}", get(pages::compare_version))
        .route("/console/sites/{id}/pages/{page}/versions/{version}/restore", post(pages::restore_version))
        .route("/console/sites/{id}/pages/{page}/entries", post(pages::add_entry))
        .route("/console/sites/{id}/pages/{page}/entries/{entry}/delete", post(pages::delete_entry))
        .route("/console/sites/{id}/pages/{page}/restore-entries", post(pages::restore_entries))
        .route("/console/sites/{id}/domains", get(domains::list).post(domains::create))
        .route("/console/sites/{id}/domains/{domain}", post(domains::update))
        .route("/console/sites/{id}/domains/{domain}/check", post(domains::check))
        .route("/console/sites/{id}/domains/{domain}/remove", post(domains::remove))
        .route("/console/assets/{asset}/delete", post(assets::delete))
        .merge(with_texts)
        .merge(with_files)
}
