//! The page of the account.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use serde_json::Value;

use crate::api_client::Call;
use crate::api_client::operations::{ACCOUNT_PLANS, ACCOUNT_USAGE, SESSIONS_CURRENT, SESSIONS_LIST};
use crate::page::{Page, Section};
use crate::screens::usage::usage;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Shows the account, and asks before the plan changes.
pub(crate) async fn show(State(console): State<Console>, viewer: Viewer, query: UrlQuery) -> Response {
    respond(&console, &viewer, query.get("plan"), |page| page).await
}

/// Renders the page. `plan` is the plan to confirm.
pub(super) async fn respond(
    console: &Console,
    viewer: &Viewer,
    plan: Option<&str>,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let (account, used, plans, current, sessions) = join!(
        console.account(viewer),
        console.call(viewer, Call::of(&ACCOUNT_USAGE)),
        console.call(viewer, Call::of(&ACCOUNT_PLANS)),
        console.call(viewer, Call::of(&SESSIONS_CURRENT)),
        console.call(viewer, Call::of(&SESSIONS_LIST)),
    );
    let offers = plans.as_ref().ok().and_then(|plans| plans["plans"].as_array());
    let chosen = plan.and_then(|plan| {
        offers?.iter().find(|offer| offer["plan"] == plan && offer["current"] == false).cloned()
    });
    let count = sessions.as_ref().ok().and_then(|list| list["sessions"].as_array()).map_or(0, Vec::len);
    let page = Page::new(Section::Account, "account/account.html")
        .main("owner", &account)
        .panel("used", &used)
        .panel("plans", &plans)
        .panel("session", &current)
        .panel("sessions", &sessions)
        .with("usage", usage(used.as_ref().unwrap_or(&Value::Null)))
        .with("confirm", chosen)
        .with("has_others", count > 1);
    add(page).respond(console, viewer, &account)
}
