//! Takes a zip or a folder: the script sends a zip to the edge by itself, everything else is posted here.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::{list, show};
use crate::api_client::operations::DEPLOYS_CREATE;
use crate::api_client::{Answer, Call, Refusal};
use crate::form_submission::FormSubmission;
use crate::page::Page;
use crate::screens::sites::posted_files::{PostedFile, PostedParts, read_file, read_folder};
use crate::screens::sites::site::path_of;
use crate::screens::{AccountForm, PathParameters};
use crate::state::Console;
use crate::url_query::UrlQuery;
use crate::viewer::Viewer;

/// Begins an upload of the script: answers where to send the zip, and what to post afterwards.
pub(crate) async fn begin(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    form: AccountForm,
) -> Response {
    let size_bytes = form.get("sizeBytes").and_then(|text| text.parse().ok()).unwrap_or_default();
    match create(&console, &viewer, &form, size_bytes).await {
        Ok(made) => {
            let next = path_of(path.get("id"), "deploys", id_of(&made));
            let body = json!({ "uploadUrl": made["uploadUrl"], "next": format!("{next}/plan") });
            let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
            (StatusCode::CREATED, headers, body.to_string()).into_response()
        }
        Err(refusal) => refused(&console, &viewer, path.get("id"), refusal, Some(&form)).await,
    }
}

/// Takes a zip or a folder from a form, and shows what publishing it would do.
pub(crate) async fn upload(
    State(console): State<Console>,
    viewer: Viewer,
    path: PathParameters,
    request: Request,
) -> Response {
    let site_id = path.get("id");
    // Nothing is read for those who are not signed in.
    if let Err(refusal) = console.account(&viewer).await {
        return refused(&console, &viewer, site_id, refusal, None).await;
    }
    let read = async {
        let mut parts = PostedParts::of(request)?;
        let (form, first) = parts.fields().await?;
        Ok((form, first, parts))
    };
    let (form, first, mut parts) = match read.await {
        Ok(read) => read,
        Err(refusal) => return refused(&console, &viewer, site_id, refusal, None).await,
    };
    let form = match AccountForm::check(&console, &viewer, form).await {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    let stored = async {
        let is_folder = first.name() == Some("folder");
        let PostedFile { file, size_bytes } =
            if is_folder { read_folder(first, &mut parts).await? } else { read_file(first).await? };
        let made = create(&console, &viewer, &form, size_bytes).await?;
        match console.file_store.store(made["uploadUrl"].as_str().unwrap_or_default(), file).await {
            // The form was posted twice: its key led to the same deploy, which has its zip.
            Err(refusal) if refusal.code != "conflict" => Err(refusal),
            _ => Ok(made),
        }
    };
    match stored.await {
        Ok(made) => show::respond_with_plan(&console, &viewer, (site_id, id_of(&made)), &form).await,
        Err(refusal) => refused(&console, &viewer, site_id, refusal, Some(&form)).await,
    }
}

async fn create(console: &Console, viewer: &Viewer, form: &FormSubmission, size_bytes: u64) -> Answer {
    let body = json!({ "sizeBytes": size_bytes, "message": form.get("message") });
    let call = Call::of(&DEPLOYS_CREATE).body(body).idempotency_key(form.idempotency_key());
    console.call(viewer, call).await
}

fn id_of(made: &Value) -> &str {
    made["deployId"].as_str().unwrap_or_default()
}

async fn refused(
    console: &Console,
    viewer: &Viewer,
    site_id: &str,
    refusal: Refusal,
    form: Option<&FormSubmission>,
) -> Response {
    let kept = form.map(FormSubmission::kept);
    let keep = |page: Page| page.problem(&refusal).with("kept", kept);
    list::respond(console, viewer, site_id, &UrlQuery::default(), keep).await
}
