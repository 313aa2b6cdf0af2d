//! Makes an automation from a preset.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::list;
use super::page_path::page_path;
use super::presets::Preset;
use crate::api_client::operations::AUTOMATIONS_CREATE;
use crate::api_client::{Call, Refusal};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, redirect};
use crate::screens::AccountForm;
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Characters of the random end of a slug.
const SUFFIX_CHARS: usize = 8;

/// Makes an automation, and leads to it.
pub(super) async fn create(State(console): State<Console>, viewer: Viewer, form: AccountForm) -> Response {
    let Some(preset) = form.get("preset").and_then(Preset::find) else {
        let detail = "Choose one of the automations to begin with.";
        let refusal =
            Refusal::new(StatusCode::BAD_REQUEST, "validation_failed", "Nothing was chosen", detail);
        return refused(&console, &viewer, &form, refusal).await;
    };
    // Of the key of the write, so that a second post of the page is the same request.
    let key = form.idempotency_key().map_or_else(|| console.new_idempotency_key(), str::to_owned);
    let hex: String =
        key.chars().filter(char::is_ascii_hexdigit).map(|char| char.to_ascii_lowercase()).collect();
    let suffix = &hex[hex.len().saturating_sub(SUFFIX_CHARS)..];
    let call = Call::of(&AUTOMATIONS_CREATE).body(preset.body(&form, suffix));
    match console.call(&viewer, call.idempotency_key(form.idempotency_key())).await {
        Ok(created) => {
            let path = page_path(created["id"].as_str().unwrap_or_default());
            redirect(&console, &path, Some(Flash::AutomationMade))
        }
        Err(mut refusal) => {
            for error in &mut refusal.field_errors {
                if let Some(input) = preset.input_of(&error.field) {
                    input.clone_into(&mut error.field);
                }
            }
            refused(&console, &viewer, &form, refusal).await
        }
    }
}

async fn refused(console: &Console, viewer: &Viewer, form: &FormSubmission, refusal: Refusal) -> Response {
    let keep = |page: Page| page.problem(&refusal).keep(form);
    list::respond(console, viewer, &UrlQuery::default(), keep).await
}
