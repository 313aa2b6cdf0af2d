//! A webhook with its deliveries.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::json;

use super::day_strip::{begin, day_strip};
use super::deliveries::{CLASSES, STATUSES, call, is_filtered};
use super::view::{with_state, with_status};
use crate::api_client::operations::{DELIVERIES_LIST_ALL, WEBHOOKS_READ};
use crate::api_client::{Answer, Call};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Deliveries of the last day that the strip counts.
const STRIP_DELIVERIES: &str = "100";

/// Shows a webhook.
pub(super) async fn show(
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
    let now = console.clock.now();
    let last_day = Call::of(&DELIVERIES_LIST_ALL)
        .query("webhookId", id)
        .query("from", &begin(now).to_rfc3339())
        .query("limit", STRIP_DELIVERIES);
    let (account, webhook, deliveries, last_day) = join!(
        console.account(viewer),
        console.call(viewer, Call::of(&WEBHOOKS_READ).path("id", id)),
        console.call(viewer, call(id, query)),
        console.call(viewer, last_day),
    );
    let deliveries: Answer = deliveries.map(|mut list| {
        for delivery in list["deliveries"].as_array_mut().into_iter().flatten() {
            *delivery = with_status(delivery.take());
        }
        list
    });
    let filter = json!({
        "statusClass": query.get("statusClass"),
        "from": query.get("from"),
        "to": query.get("to"),
        "submissionId": query.get("submissionId"),
    });
    let page = Page::new(Section::Webhooks, "webhook.html")
        .main("webhook", &webhook.map(with_state))
        .panel("deliveries", &deliveries)
        .with("strip", day_strip(&last_day, now))
        .with("status", query.get("status"))
        .with("statuses", STATUSES)
        .with("classes", CLASSES)
        .with("is_filtered", is_filtered(query))
        .with("filter", filter);
    add(page).respond(console, viewer, &account)
}
