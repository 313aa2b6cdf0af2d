//! The list of webhooks, and the form for a new one.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use super::view::with_state;
use crate::api_client::operations::{FORMS_LIST, WEBHOOKS_LIST};
use crate::api_client::{Answer, Call};
use crate::page::{Page, Section};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the newest webhooks.
pub(super) async fn list(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    respond(&console, &viewer, &query, |page| page).await
}

/// Shows the list with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let call = Call::of(&WEBHOOKS_LIST).query("sort", "newest").optional_query("cursor", query.get("cursor"));
    let (account, list, forms) = join!(
        console.account(viewer),
        console.call(viewer, call),
        console.call(viewer, Call::of(&FORMS_LIST).query("sort", "newest").query("limit", "100")),
    );
    let list: Answer = list.map(|mut list| {
        for webhook in list["webhooks"].as_array_mut().into_iter().flatten() {
            *webhook = with_state(webhook.take());
        }
        list
    });
    let page = Page::new(Section::Webhooks, "webhooks.html").main("list", &list).panel("forms", &forms);
    add(page).respond(console, viewer, &account)
}
