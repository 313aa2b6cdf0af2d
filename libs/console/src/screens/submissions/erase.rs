//! Deletes all submissions of an e-mail address, as a person may ask for.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use http::StatusCode;
use percent_encoding::utf8_percent_encode;

use super::page_path::form_path;
use crate::api_client::operations::{FORMS_READ, SUBMISSIONS_DELETE};
use crate::api_client::{Call, Refusal};
use crate::flash::Flash;
use crate::page::{Page, Section, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::{PATH_SEGMENT, UrlQuery};
use crate::viewer::Viewer;

/// Asks for the address, and for a tick.
pub(super) async fn ask(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    respond(&console, &viewer, path.get("id"), |page| page.with("email", query.get("email"))).await
}

/// Deletes the submissions once the box is ticked.
pub(super) async fn erase(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let (form_id, email) = (path.get("id"), form.get("email").unwrap_or_default());
    let answer = if form.get("sure") == Some("on") {
        console.call(&viewer, Call::of(&SUBMISSIONS_DELETE).path("id", form_id).query("email", email)).await
    } else {
        let message = "Tick the box if they should be deleted.";
        Err(Refusal::at(StatusCode::BAD_REQUEST, "sure", message))
    };
    match answer {
        Ok(erased) => {
            let is_none = erased["deleted"] == 0;
            let flash = if is_none { Flash::NoneOfAddress } else { Flash::AddressErased };
            redirect(&console, &form_path(form_id), Some(flash))
        }
        Err(refusal) => {
            let email_in_link = utf8_percent_encode(email, PATH_SEGMENT);
            let back = format!("{}/erase?email={email_in_link}", form_path(form_id));
            let refusal = refusal.leading_back_to(&back);
            let keep = |page: Page| page.problem(&refusal).with("email", email);
            respond(&console, &viewer, form_id, keep).await
        }
    }
}

async fn respond(
    console: &Console,
    viewer: &Viewer,
    form_id: &str,
    add: impl FnOnce(Page) -> Page,
) -> Response {
    let (account, form) =
        join!(console.account(viewer), console.call(viewer, Call::of(&FORMS_READ).path("id", form_id)),);
    let page = Page::new(Section::Forms, "submissions/erase.html")
        .main("form", &form)
        .with("root", form_path(form_id));
    add(page).respond(console, viewer, &account)
}
