//! Shows the page.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use super::results::with_shares;
use super::snippets::snippets;
use crate::api_client::Call;
use crate::api_client::operations::{FORMS_READ, SUBMISSIONS_RESULTS};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the page; with `confirm=delete` it asks before the form is deleted.
pub(super) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let asks = query.get("confirm") == Some("delete");
    respond(&console, &viewer, path.get("id"), |page| page.with("asks_to_delete", asks)).await
}

/// Shows the page with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let (account, form, results) = join!(
        console.account(viewer),
        console.call(viewer, Call::of(&FORMS_READ).path("id", id)),
        console.call(viewer, Call::of(&SUBMISSIONS_RESULTS).path("id", id)),
    );
    let mut page = Page::new(Section::Forms, "builder/details.html")
        .main("form", &form)
        .panel("results", &results.map(with_shares));
    if let Ok(form) = &form {
        page = page.with("snippets", snippets(form));
    }
    add(page).respond(console, viewer, &account)
}
