//! Ends sessions of the viewer.

use axum::extract::State;
use axum::response::Response;

use super::show;
use crate::api_client::operations::{SESSIONS_DELETE, SESSIONS_LIST};
use crate::api_client::{Answer, Call};
use crate::flash::Flash;
use crate::page::{Page, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::viewer::Viewer;

/// Ends one session.
pub(crate) async fn end(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    _: AccountForm,
) -> Response {
    let ended = delete(&console, &viewer, path.get("session")).await;
    after(&console, &viewer, ended, Flash::SessionEnded).await
}

/// Ends all sessions but this one.
pub(crate) async fn end_others(State(console): State<Console>, viewer: Viewer, _: AccountForm) -> Response {
    let list = console.call(&viewer, Call::of(&SESSIONS_LIST)).await;
    let ended = match list {
        Ok(list) => end_each(&console, &viewer, &list).await,
        refused @ Err(_) => refused,
    };
    after(&console, &viewer, ended, Flash::OtherSessionsEnded).await
}

/// Ends each listed session but the current one. Stops at the first refusal; a session that is gone already is none.
async fn end_each(console: &Console, viewer: &Viewer, list: &serde_json::Value) -> Answer {
    let sessions = list["sessions"].as_array().into_iter().flatten();
    for session in sessions.filter(|session| session["isCurrent"] == false) {
        match delete(console, viewer, session["id"].as_str().unwrap_or_default()).await {
            Err(refusal) if refusal.status != 404 => return Err(refusal),
            _ => {}
        }
    }
    Ok(list.clone())
}

async fn delete(console: &Console, viewer: &Viewer, id: &str) -> Answer {
    console.call(viewer, Call::of(&SESSIONS_DELETE).path("id", id)).await
}

async fn after(console: &Console, viewer: &Viewer, ended: Answer, flash: Flash) -> Response {
    match ended {
        Ok(_) => redirect(console, "/console/account", Some(flash)),
        Err(refusal) => {
            let with_problem = |page: Page| page.status(refusal.status()).with("session_problem", refusal);
            show::respond(console, viewer, None, with_problem).await
        }
    }
}
