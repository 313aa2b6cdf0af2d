//! Deletes all submissions of an e-mail address, as a person may ask for.

use axum::extract::State;
use axum::response::Response;
use futures::join;
use http::StatusCode;
use percent_encoding::utf8_percent_encode;

use super::page_path::form_path;
use super::{SubmissionView, edit};
use crate::api_client::operations::SUBMISSIONS_DELETE;
use crate::api_client::{Answer, Call, Refusal};
use crate::flash::Flash;
use crate::page::{Page, Section, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::{PATH_SEGMENT, UrlQuery};
use crate::viewer::Viewer;

/// Asks for the address, and for a tick. If the query names a submission, its address is filled in. The URL itself holds no
/// address, because browsers and proxies keep URLs.
pub(super) async fn ask(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    query: UrlQuery,
) -> Response {
    let (account, (form, submission)) = join!(
        console.account(&viewer),
        edit::read(&console, &viewer, path.get("id"), query.get("submission")),
    );
    let email = match (&form, &submission) {
        (Ok(form), Some(Ok(submission))) => SubmissionView::new(form, &submission["data"]).address,
        _ => None,
    };
    page(path.get("id"), &form)
        .with("email", email)
        .with("submission", query.get("submission"))
        .respond(&console, &viewer, &account)
}

/// Deletes the submissions once the box is ticked.
pub(super) async fn erase(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    posted: AccountForm,
) -> Response {
    let (form_id, email) = (path.get("id"), posted.get("email").unwrap_or_default());
    let answer = if posted.get("sure") == Some("on") {
        console.call(&viewer, Call::of(&SUBMISSIONS_DELETE).path("id", form_id).query("email", email)).await
    } else {
        let message = "Tick the box if they should be deleted.";
        Err(Refusal::at(StatusCode::BAD_REQUEST, "sure", message))
    };
    let refusal = match answer {
        Ok(erased) => {
            let is_none = erased["deleted"] == 0;
            let flash = if is_none { Flash::NoneOfAddress } else { Flash::AddressErased };
            return redirect(&console, &form_path(form_id), Some(flash));
        }
        Err(refusal) => refusal.leading_back_to(&erase_path(form_id, posted.get("submission"))),
    };
    let (account, (form, _)) = join!(console.account(&viewer), edit::read(&console, &viewer, form_id, None));
    page(form_id, &form)
        .problem(&refusal)
        .with("email", email)
        .with("submission", posted.get("submission"))
        .respond(&console, &viewer, &account)
}

/// Returns the path of this screen, with the submission that the address comes from.
fn erase_path(form_id: &str, submission: Option<&str>) -> String {
    let path = format!("{}/erase", form_path(form_id));
    match submission.filter(|id| !id.is_empty()) {
        Some(id) => format!("{path}?submission={}", utf8_percent_encode(id, PATH_SEGMENT)),
        None => path,
    }
}

fn page(form_id: &str, form: &Answer) -> Page {
    Page::new(Section::Forms, "submissions/erase.html").main("form", form).with("root", form_path(form_id))
}
