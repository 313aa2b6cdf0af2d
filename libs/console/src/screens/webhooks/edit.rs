//! What can be changed of a webhook.

use axum::extract::State;
use axum::response::Response;
use futures::join;

use super::view::with_state;
use crate::api_client::Call;
use crate::api_client::operations::{FORMS_LIST, WEBHOOKS_READ};
use crate::page::{Page, Section};
use crate::screens::PathParameters;
use crate::state::Console;
use crate::viewer::Viewer;

/// Events, with their labels.
const EVENTS: [(&str, &str); 4] = [
    ("submission.created", "A new submission"),
    ("submission.updated", "A changed submission"),
    ("submission.deleted", "A deleted submission"),
    ("form.closed", "A form that closed"),
];
/// Formats, with their labels.
const TEMPLATES: [(&str, &str); 6] = [
    ("default", "JSON, by Standard Webhooks"),
    ("slack", "Slack"),
    ("discord", "Discord"),
    ("telegram", "Telegram"),
    ("teams", "Microsoft Teams"),
    ("google-chat", "Google Chat"),
];

/// Shows what can be changed.
pub(super) async fn edit(State(console): State<Console>, viewer: Viewer, path: PathParameters) -> Response {
    respond(&console, &viewer, path.get("id"), |page| page).await
}

/// Shows what can be changed, with additions.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    id: &str,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let (account, webhook, forms) = join!(
        console.account(viewer),
        console.call(viewer, Call::of(&WEBHOOKS_READ).path("id", id)),
        console.call(viewer, Call::of(&FORMS_LIST).query("sort", "newest").query("limit", "100")),
    );
    let page = Page::new(Section::Webhooks, "webhooks/edit.html")
        .main("webhook", &webhook.map(with_state))
        .panel("forms", &forms)
        .with("all_events", EVENTS)
        .with("templates", TEMPLATES);
    add(page).respond(console, viewer, &account)
}
