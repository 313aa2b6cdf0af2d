//! `POST /api/forms/{id}/upload`: returns a signed URL to upload a file to.

use axum::extract::{FromRequest, Request, State};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use domain::fields::{Field, FieldType};
use domain::uploads::{Ticket, check_filename};
use domain::{FieldError, form_files, media, units};
use http::{StatusCode, header};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use store::Conn;
use store::form_files::NewFormFile;
use store::forms::OpenForm;
use store::uploads::{NewUpload, Purpose};
use uuid::Uuid;
use web::{Json, Path, Problem};

use super::errors::accepted_types;
use super::storage::{self, max_file_bytes};
use super::visitor::Visitor;
use crate::cors::{allow_any_origin, preflight};
use crate::forms::closed;
use crate::state::EdgeState;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PresignRequest {
    field: String,
    filename: String,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(deserialize_with = "web::whole_number")]
    size_bytes: i64,
}

/// Routes requests from pages of any origin.
pub(crate) fn route() -> MethodRouter<EdgeState> {
    post(presign)
        .options(async || preflight("POST", "content-type, idempotency-key"))
        .layer(map_response(allow_any_origin))
}

async fn presign(
    State(state): State<EdgeState>,
    Path(form_id): Path<Uuid>,
    request: Request,
) -> Result<Response, Problem> {
    let open = state.forms.find(form_id).await?;
    let visitor = Visitor::of(&state, &request);
    let Json(file) = Json::<PresignRequest>::from_request(request, &()).await?;
    let now = state.clock.now();
    if let Some(reason) = closed::closed_reason(&open, now) {
        return Err(closed::problem(reason));
    }
    let declared = file.content_type.as_deref().unwrap_or(form_files::UNKNOWN);
    let content_type = form_files::kind_of(&file.filename, declared);
    let field = check(&open, &file, &content_type).map_err(Problem::validation)?;
    let id = Uuid::from_bytes(state.rng.bytes());
    let ttl = chrono::TimeDelta::from_std(state.form_settings.upload_url_ttl).unwrap_or_default();
    let expires_at = now + ttl;
    let new = NewFormFile {
        id,
        form_id,
        field: &field.name,
        filename: &file.filename,
        content_type: &content_type,
        size_bytes: file.size_bytes,
        visitor: &visitor.0,
        created_at: now,
    };
    // The uploaded bytes must match the type only if the field restricts types.
    let restricts_types = form_files::is_restrictive(field.accept.as_deref());
    let checked_type = if restricts_types { &content_type } else { form_files::UNKNOWN };
    let upload = NewUpload {
        id,
        purpose: Purpose::FormFile,
        content_type: checked_type,
        size_bytes: file.size_bytes,
        expires_at,
        created_at: now,
    };
    let insert = async |conn: &mut Conn| {
        storage::insert(&state, conn, &open, &new).await?;
        Ok(store::uploads::insert_upload(conn, open.account_id, &upload).await?)
    };
    state.db.transaction(state.db.timeout(), insert).await?;
    let ticket = Ticket { id, size_bytes: file.size_bytes, expires_at: expires_at.timestamp() };
    let body = json!({
        "objectId": id,
        "method": "PUT",
        "uploadUrl": format!("{}{}", state.addresses.base(), state.upload_urls.upload_path(&ticket)),
        "uploadHeaders": { "content-type": content_type },
        "expiresAt": expires_at,
        "maxSizeBytes": max_file_bytes(&open, field),
    });
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    Ok((StatusCode::CREATED, headers, body.to_string()).into_response())
}

/// Returns the field that a file is for, or all errors of the request.
fn check<'a>(
    open: &'a OpenForm,
    file: &PresignRequest,
    content_type: &str,
) -> Result<&'a Field, Vec<FieldError>> {
    let mut errors = check_filename(&file.filename);
    if file.content_type.as_deref().is_some_and(|declared| media::essence(declared).is_none()) {
        errors.push(FieldError::new(
            "contentType",
            "content_type",
            "contentType is a media type, like image/png",
        ));
    }
    let mut fields = open.form.fields.iter().filter(|field| field.kind == FieldType::File);
    let Some(field) = fields.find(|field| field.name == file.field) else {
        let message = "field is the name of one of the form's file fields";
        errors.push(FieldError::new("field", "unknown_field", message));
        return Err(errors);
    };
    let limit = max_file_bytes(open, field);
    if !u64::try_from(file.size_bytes).is_ok_and(|size| (1..=limit).contains(&size)) {
        let message = format!("a file of this field has at least 1 byte and at most {}", units::size(limit));
        errors.push(FieldError::new("sizeBytes", "file_size", message));
    }
    if !form_files::is_accepted(field.accept.as_deref(), &file.filename, content_type) {
        errors.push(FieldError::new("filename", "file_kind", accepted_types(field)));
    }
    if errors.is_empty() { Ok(field) } else { Err(errors) }
}
