//! Edits the answers of a submission, and adds one by hand.

use axum::extract::State;
use axum::response::Response;
use futures::future::OptionFuture;
use futures::join;
use http::StatusCode;
use serde_json::{Value, json};

use super::answer_input::{answers, changes, conflicts, inputs};
use super::page_path::{form_path, submission_path};
use crate::api_client::operations::{FORMS_READ, SUBMISSIONS_READ, SUBMISSIONS_UPDATE, SUBMISSIONS_UPSERT};
use crate::api_client::{Answer, Call, Refusal};
use crate::flash::Flash;
use crate::form_submission::FormSubmission;
use crate::page::{Page, Section, redirect};
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::viewer::Viewer;

/// The code of the API's refusal of an update of what was changed since it was read.
const STALE: &str = "stale_write";
/// How often the answers are compared again because the submission was changed meanwhile.
const ATTEMPTS_MAX: u32 = 3;

/// Shows the answers in inputs.
pub(super) async fn show(State(console): State<Console>, viewer: Viewer, path: PathParameters) -> Response {
    let (form, submission) = read(&console, &viewer, path.get("id"), Some(path.get("submission"))).await;
    let page = Shown { form_id: path.get("id"), form, submission, posted: None, problem: None };
    page.respond(&console, &viewer).await
}

/// Shows empty inputs.
pub(super) async fn new(State(console): State<Console>, viewer: Viewer, path: PathParameters) -> Response {
    let (form, submission) = read(&console, &viewer, path.get("id"), None).await;
    let page = Shown { form_id: path.get("id"), form, submission, posted: None, problem: None };
    page.respond(&console, &viewer).await
}

/// Saves the answers that the viewer has changed, unless another person has changed one of them meanwhile.
pub(super) async fn update(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    posted: AccountForm,
) -> Response {
    let (form_id, id) = (path.get("id"), path.get("submission"));
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (form, submission) = read(&console, &viewer, form_id, Some(id)).await;
        let mut problem = None;
        if let (Ok(form), Some(Ok(submission))) = (&form, &submission) {
            match save(&console, &viewer, form, &submission["data"], &posted).await {
                Ok(flash) => return redirect(&console, &submission_path(form_id, id), Some(flash)),
                // It was changed after it had been read: perhaps to the same answers, perhaps to others.
                Err(refusal) if refusal.code == STALE && attempts < ATTEMPTS_MAX => continue,
                Err(refusal) if refusal.code == STALE => problem = Some(changed_again()),
                Err(refusal) => problem = Some(refusal),
            }
        }
        let page = Shown { form_id, form, submission, posted: Some(&posted), problem };
        return page.respond(&console, &viewer).await;
    }
}

/// Saves the changed answers, if the submission is still as it was read and another person has changed none of them.
async fn save(
    console: &Console,
    viewer: &Viewer,
    form: &Value,
    submission: &Value,
    posted: &FormSubmission,
) -> Result<Flash, Refusal> {
    let payload = changes(form, posted);
    if payload.is_empty() {
        return Ok(Flash::NothingChanged);
    }
    if let Some(refusal) = conflict(form, &submission["payload"], posted) {
        return Err(refusal);
    }
    let text = |name: &str| submission[name].as_str().unwrap_or_default().to_owned();
    let call = Call::of(&SUBMISSIONS_UPDATE).path("id", &text("formId")).path("subId", &text("id"));
    let body = json!({ "payload": payload, "ifUnmodifiedSince": submission["updatedAt"] });
    console.call(viewer, call.body(body)).await.map(|_| Flash::AnswersSaved)
}

/// Returns the refusal if another person has changed the same answers meanwhile. The page that shows it holds the hashes of
/// the new ones, so that saving once more replaces them.
fn conflict(form: &Value, payload: &Value, posted: &FormSubmission) -> Option<Refusal> {
    let errors = conflicts(form, payload, posted);
    let detail = "Another person has changed these answers meanwhile. Save again to replace theirs.";
    (!errors.is_empty())
        .then(|| Refusal::of_fields(StatusCode::CONFLICT, "Changed meanwhile", detail, errors))
}

/// Returns the refusal if other answers were changed each time that the answers were compared.
fn changed_again() -> Refusal {
    let detail =
        "Other answers of this submission were changed at the same moment. Nothing was saved. Save again.";
    Refusal::new(StatusCode::CONFLICT, STALE, "Changed meanwhile", detail)
}

/// Adds a submission. The page's key is its external id, so that a page that is posted twice adds one.
pub(super) async fn create(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    posted: AccountForm,
) -> Response {
    let form_id = path.get("id");
    let (form, submission) = read(&console, &viewer, form_id, None).await;
    let mut problem = None;
    if let Ok(form) = &form {
        let mut payload = answers(form, &posted);
        payload.retain(|_, answer| !answer.is_null());
        let body = json!({ "externalId": posted.idempotency_key().unwrap_or_default(), "payload": payload });
        let call = Call::of(&SUBMISSIONS_UPSERT).path("id", form_id).body(body);
        match console.call(&viewer, call).await {
            Ok(made) => {
                let id = made["data"]["id"].as_str().unwrap_or_default();
                return redirect(&console, &submission_path(form_id, id), Some(Flash::SubmissionMade));
            }
            Err(refusal) => problem = Some(refusal),
        }
    }
    let page = Shown { form_id, form, submission, posted: Some(&posted), problem };
    page.respond(&console, &viewer).await
}

/// Reads the form and, if there is an id, the submission.
pub(super) async fn read(
    console: &Console,
    viewer: &Viewer,
    form_id: &str,
    id: Option<&str>,
) -> (Answer, Option<Answer>) {
    let submission = id.map(|id| Call::of(&SUBMISSIONS_READ).path("id", form_id).path("subId", id));
    join!(
        console.call(viewer, Call::of(&FORMS_READ).path("id", form_id)),
        OptionFuture::from(submission.map(|call| console.call(viewer, call))),
    )
}

/// What the page shows.
#[derive(Debug)]
struct Shown<'a> {
    form_id: &'a str,
    form: Answer,
    /// `None` for a new one.
    submission: Option<Answer>,
    posted: Option<&'a FormSubmission>,
    problem: Option<Refusal>,
}

impl Shown<'_> {
    async fn respond(self, console: &Console, viewer: &Viewer) -> Response {
        let account = console.account(viewer).await;
        let stored = self.submission.as_ref().and_then(|answer| answer.as_ref().ok());
        let payload = stored.map_or(&Value::Null, |answer| &answer["data"]["payload"]);
        let form = self.form.as_ref().unwrap_or(&Value::Null);
        let mut page = Page::new(Section::Forms, "submissions/edit.html")
            .main("form", &self.form)
            .with("root", form_path(self.form_id))
            .with("inputs", inputs(form, payload, self.posted))
            .with("files", stored.map(|answer| &answer["data"]["files"]))
            .with("is_new", self.submission.is_none());
        if let (Ok(_), Some(submission)) = (&self.form, &self.submission) {
            page = page.main("submission", submission);
        }
        if let Some(problem) = self.problem {
            page = page.status(problem.status()).with("problem", problem);
        }
        page.respond(console, viewer, &account)
    }
}
