//! A webhook with its deliveries.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::json;

use super::view::{with_state, with_status};
use crate::api_client::operations::{DELIVERIES_LIST, WEBHOOKS_READ};
use crate::api_client::{Answer, Call};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows a webhook.
pub(crate) async fn show(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    respond(&console, &viewer, path.get("id"), &query, |page| page).await
}

/// Shows a webhook with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    query: &UrlQuery,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let mut deliveries = Call::of(&DELIVERIES_LIST).path("id", id).query("limit", "50");
    for name in ["status", "cursor"] {
        deliveries = deliveries.optional_query(name, query.get(name));
    }
    let (account, webhook, deliveries) = join!(
        console.account(viewer),
        console.call(viewer, Call::of(&WEBHOOKS_READ).path("id", id)),
        console.call(viewer, deliveries),
    );
    let deliveries: Answer = deliveries.map(|mut list| {
        for delivery in list["deliveries"].as_array_mut().into_iter().flatten() {
            *delivery = with_status(delivery.take());
        }
        list
    });
    let page = Page::new(Section::Webhooks, "webhook.html")
        .main("webhook", &webhook.map(with_state))
        .panel("deliveries", &deliveries)
        .with("status", query.get("status"))
        .with(
            "statuses",
            json!([["", "All"], ["failed", "Failed"], ["pending", "Waiting"], ["delivered", "Delivered"]]),
        );
    add(page).respond(console, viewer, &account)
}
