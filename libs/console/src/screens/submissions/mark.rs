//! Archives, restores and deletes submissions, and marks them as spam.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;

use super::show::{Shown, show};
use crate::api_client::operations::{SUBMISSIONS_DELETE_ONE, SUBMISSIONS_MARK};
use crate::api_client::{Call, Refusal};
use crate::flash::Flash;
use crate::page::redirect;
use crate::screens::theme::return_path;
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Submissions that one post changes at most: those of one page.
const AT_ONCE_MAX: usize = 100;

/// Gives the chosen submissions the posted status, or deletes them once the viewer has confirmed it. Stops at the first that
/// the API refuses.
pub(super) async fn mark(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let (form_id, here) = (path.get("id"), return_path(form.get("here")));
    let ids: Vec<_> = form.all("id").take(AT_ONCE_MAX).collect();
    let query = UrlQuery::parse(here.split_once('?').map_or("", |(_, query)| query));
    if form.get("to") == Some("delete") && !ids.is_empty() {
        return show(&console, &viewer, form_id, &query, Shown { to_delete: ids, ..Shown::default() }).await;
    }
    let changed = match form.get("to").filter(|_| !ids.is_empty()) {
        Some("archived") => {
            change(&console, &viewer, form_id, &ids, "archived").await.map(|()| Flash::Archived)
        }
        Some("spam") => change(&console, &viewer, form_id, &ids, "spam").await.map(|()| Flash::MarkedAsSpam),
        Some("received") => {
            change(&console, &viewer, form_id, &ids, "received").await.map(|()| Flash::MovedToInbox)
        }
        Some("deleted") => delete(&console, &viewer, form_id, &ids).await.map(|()| Flash::Deleted),
        _ => Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "validation_failed",
            "Nothing to do",
            "Choose submissions, and what to do with them.",
        )),
    };
    match changed {
        Ok(flash) => redirect(&console, here, Some(flash)),
        Err(refusal) => {
            show(&console, &viewer, form_id, &query, Shown { problem: Some(refusal), ..Shown::default() })
                .await
        }
    }
}

async fn change(
    console: &Console,
    viewer: &Viewer,
    form_id: &str,
    ids: &[&str],
    status: &str,
) -> Result<(), Refusal> {
    for id in ids {
        let call = Call::of(&SUBMISSIONS_MARK).path("id", form_id).path("subId", id);
        console.call(viewer, call.body(json!({ "status": status }))).await?;
    }
    Ok(())
}

async fn delete(console: &Console, viewer: &Viewer, form_id: &str, ids: &[&str]) -> Result<(), Refusal> {
    for id in ids {
        console.call(viewer, Call::of(&SUBMISSIONS_DELETE_ONE).path("id", form_id).path("subId", id)).await?;
    }
    Ok(())
}
