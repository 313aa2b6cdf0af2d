//! Refuses a write from a page of another account: a session has one account, and another tab may have switched it.

use axum::response::Response;
use http::StatusCode;
use serde_json::Value;

use crate::api_client::{Answer, Refusal};
use crate::form_submission::FormSubmission;
use crate::page::Page;
use crate::state::Console;
use crate::viewer::Viewer;

/// Returns the current account if the form was made for it.
///
/// # Errors
/// The page to show instead; nothing was changed.
pub(super) async fn require_same_account(
    console: &Console,
    viewer: &Viewer,
    form: &FormSubmission,
) -> Result<Value, Box<Response>> {
    let refused = |refusal: &Refusal, account: &Answer| {
        Box::new(Page::refused(refusal).respond(console, viewer, account))
    };
    let account = console.account(viewer).await;
    match &account {
        Ok(current) if current["id"].as_str() == form.account() => Ok(current.clone()),
        Ok(_) => {
            let detail = "You switched to another account in another tab after this page was made. Nothing was changed. \
                Switch back and do it again.";
            let refusal =
                Refusal::new(StatusCode::CONFLICT, "conflict", "Another account is current", detail);
            Err(refused(&refusal, &account))
        }
        Err(refusal) => Err(refused(refusal, &account)),
    }
}
