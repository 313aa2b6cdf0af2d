//! The settings of a site, its tag, and its end.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::json;

use super::site_page::root;
use crate::api_client::Call;
use crate::api_client::operations::{ANALYTICS_DELETE, ANALYTICS_READ, ANALYTICS_UPDATE};
use crate::flash::Flash;
use crate::page::{Page, Section, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Lifetimes of a visitor's id, with their labels.
const LIFETIMES: [(&str, &str); 4] = [
    ("day", "A day"),
    ("week", "A week, from Monday"),
    ("month", "A month of the calendar"),
    ("quarter", "Three months of the calendar"),
];
/// Texts that the API leaves as they are without a value; an empty one is sent, so that the API refuses it.
const NEEDED: [&str; 2] = ["name", "timezone"];

/// Shows the settings; with `delete`, asks before the site is deleted.
pub(super) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let asks = query.get("delete").is_some();
    respond(&console, &viewer, path.get("id"), |page| page.with("asks_to_delete", asks)).await
}

/// Changes the settings.
pub(super) async fn update(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let id = path.get("id");
    let mut body = form.to_json(&console.document, &ANALYTICS_UPDATE);
    if let Some(members) = body.as_object_mut() {
        for name in NEEDED.into_iter().filter(|name| form.all(name).next().is_some()) {
            members.insert(name.to_owned(), json!(form.get(name).unwrap_or_default()));
        }
    }
    match console.call(&viewer, Call::of(&ANALYTICS_UPDATE).path("id", id).body(body)).await {
        Ok(_) => redirect(&console, &settings_path(id), Some(Flash::AnalyticsSiteSaved)),
        Err(refusal) => respond(&console, &viewer, id, |page| page.problem(&refusal).keep(&form)).await,
    }
}

/// Deletes a site with its events. After a refusal for an old sign-in, the page leads to a new one and back.
pub(super) async fn delete(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    let id = path.get("id");
    match console.call(&viewer, Call::of(&ANALYTICS_DELETE).path("id", id)).await {
        Ok(_) => redirect(&console, "/console/analytics?all=true", Some(Flash::AnalyticsSiteDeleted)),
        Err(refusal) => {
            let refusal = refusal.leading_back_to(&format!("{}?delete=true", settings_path(id)));
            let add = |page: Page| page.status(refusal.status()).with("delete_problem", refusal);
            respond(&console, &viewer, id, |page| add(page).with("asks_to_delete", true)).await
        }
    }
}

async fn respond(console: &Console, viewer: &Viewer, id: &str, add: impl FnOnce(Page) -> Page) -> Response {
    let (account, site) =
        join!(console.account(viewer), console.call(viewer, Call::of(&ANALYTICS_READ).path("id", id)),);
    let page = Page::new(Section::Analytics, "analytics/settings.html")
        .main("site", &site)
        .with("root", root(id))
        .with("lifetimes", LIFETIMES);
    add(page).respond(console, viewer, &account)
}

fn settings_path(id: &str) -> String {
    format!("{}/settings", root(id))
}
