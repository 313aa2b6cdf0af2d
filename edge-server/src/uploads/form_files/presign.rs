//! Asking for an address to upload a file to: `POST /api/forms/{id}/upload`.

use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use domain::fields::{Field, FieldType};
use domain::uploads::{Ticket, check_filename};
use domain::{FieldError, form_files, media};
use http::{StatusCode, header};
use serde::Deserialize;
use serde_json::json;
use store::Conn;
use store::form_files::NewFormFile;
use store::forms::OpenForm;
use store::uploads::{NewUpload, Purpose};
use uuid::Uuid;
use web::{Json, Path, Problem};

use super::storage::{Visitor, insert, max_bytes};
use crate::forms;
use crate::state::EdgeState;
use crate::submissions::handler as submissions;

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Ask {
    field: String,
    filename: String,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(deserialize_with = "web::whole_number")]
    size_bytes: i64,
}

/// Asking, from pages of any origin.
pub(crate) fn route() -> MethodRouter<EdgeState> {
    let to_everybody = axum::middleware::map_response(submissions::to_everybody);
    post(announce).options(submissions::preflight).layer(to_everybody)
}

async fn announce(
    State(edge): State<EdgeState>,
    Path(form_id): Path<Uuid>,
    request: Request,
) -> Result<Response, Problem> {
    let open = edge.forms.find(form_id).await?;
    let visitor = Visitor::of(&edge, &request);
    let Json(ask) = Json::<Ask>::from_request(request, &()).await?;
    let now = edge.clock.now();
    if let Some(why) = forms::closed_reason(&open, now) {
        return Err(Problem::new(forms::code_of(why), forms::refusal(why)));
    }
    let declared = ask.content_type.as_deref().unwrap_or(form_files::UNKNOWN);
    let kind = form_files::kind_of(&ask.filename, declared);
    let field = check(&open, &ask, &kind).map_err(Problem::validation)?;
    let id = Uuid::from_bytes(edge.rng.bytes());
    let within = chrono::TimeDelta::from_std(edge.form_rules.upload_within).unwrap_or_default();
    let expires_at = now + within;
    let file = NewFormFile {
        id,
        form_id,
        field: &field.name,
        filename: &ask.filename,
        content_type: &kind,
        size_bytes: ask.size_bytes,
        visitor: &visitor.0,
        created_at: now,
    };
    // Where the field is particular, so are we: what comes must be what it is called.
    let is_particular = form_files::is_restrictive(field.accept.as_deref());
    let content_type = if is_particular { &kind } else { form_files::UNKNOWN };
    let upload = NewUpload {
        id,
        purpose: Purpose::FormFile,
        content_type,
        size_bytes: ask.size_bytes,
        expires_at,
        created_at: now,
    };
    let note = async |conn: &mut Conn| {
        insert(&edge, conn, &open, &file).await?;
        Ok(store::uploads::insert_upload(conn, open.account_id, &upload).await?)
    };
    edge.transact(edge.patience(), note).await?;
    let ticket = Ticket { id, size_bytes: ask.size_bytes, expires_at: expires_at.timestamp() };
    let body = json!({
        "objectId": id,
        "method": "PUT",
        "uploadUrl": format!("{}{}", edge.addresses.base(), edge.uploads.address(&ticket)),
        "uploadHeaders": { "content-type": kind },
        "expiresAt": expires_at,
        "maxSizeBytes": max_bytes(&open, field),
    });
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    Ok((StatusCode::CREATED, headers, body.to_string()).into_response())
}

/// The field a file is for.
///
/// # Errors
/// All that is wrong.
fn check<'a>(open: &'a OpenForm, ask: &Ask, kind: &str) -> Result<&'a Field, Vec<FieldError>> {
    let mut wrong = check_filename(&ask.filename);
    if ask.content_type.as_deref().is_some_and(|declared| media::essence(declared).is_none()) {
        wrong.push(FieldError::new(
            "contentType",
            "content_type",
            "contentType is a media type, like image/png",
        ));
    }
    let mut fields = open.form.fields.iter().filter(|field| field.kind == FieldType::File);
    let Some(field) = fields.find(|field| field.name == ask.field) else {
        let message = "field is the name of one of the form's file fields";
        wrong.push(FieldError::new("field", "unknown_field", message));
        return Err(wrong);
    };
    let limit = max_bytes(open, field);
    if !u64::try_from(ask.size_bytes).is_ok_and(|size| (1..=limit).contains(&size)) {
        let message = format!("a file of this field has 1 to {limit} bytes");
        wrong.push(FieldError::new("sizeBytes", "file_size", message));
    }
    if !form_files::is_accepted(field.accept.as_deref(), &ask.filename, kind) {
        let accept = field.accept.as_deref().unwrap_or_default();
        let message = format!("{} takes these files alone: {accept}", field.label);
        wrong.push(FieldError::new("filename", "file_kind", message));
    }
    if wrong.is_empty() { Ok(field) } else { Err(wrong) }
}
