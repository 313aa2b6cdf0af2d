//! Downloads of submitted files: a redirect to a short-lived signed URL, and the bytes there. The content is untrusted, so
//! it is only sent as a download, never displayed or run.

use axum::extract::{RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use domain::form_files::UNKNOWN;
use domain::uploads::{Refused, Ticket};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use store::Conn;
use store::served_files::ServedFile;
use uuid::Uuid;
use web::{Code, Path, Problem};

use crate::state::EdgeState;

const POLICY: &str = "default-src 'none'; sandbox";

/// `GET /api/forms/{id}/files/{oid}`: redirects to the download.
pub(crate) async fn redirect(
    State(state): State<EdgeState>,
    Path((form_id, id)): Path<(Uuid, Uuid)>,
) -> Result<Response, Problem> {
    let file = find(&state, Some(form_id), id).await?;
    let ttl = chrono::TimeDelta::from_std(state.form_settings.download_url_ttl).unwrap_or_default();
    let expires_at = (state.clock.now() + ttl).timestamp();
    let ticket = Ticket { id, size_bytes: file.size_bytes, expires_at };
    let location = format!("{}{}", state.addresses.base(), state.upload_urls.download_path(&ticket));
    Ok((StatusCode::FOUND, [(header::LOCATION, location), (header::CACHE_CONTROL, "no-store".to_owned())])
        .into_response())
}

/// `GET /downloads/{id}`: the bytes.
pub(crate) async fn download(
    State(state): State<EdgeState>,
    Path(id): Path<Uuid>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let ticket =
        state.upload_urls.verify_download(id, query.as_deref().unwrap_or_default(), state.clock.now());
    ticket.map_err(|error| {
        let detail = match error {
            Refused::Forged => "this address was changed after it was issued",
            Refused::Expired => "this address has expired; follow the original link again",
        };
        Problem::new(Code::Forbidden, detail)
    })?;
    // The file may have been deleted since the redirect.
    let file = find(&state, None, id).await?;
    let (request, _body) = request.into_parts();
    Ok(state.file_bodies.respond(&file, &request, response_headers(&file)).await)
}

async fn find(state: &EdgeState, form_id: Option<Uuid>, id: Uuid) -> Result<ServedFile, Problem> {
    let find = async |conn: &mut Conn| Ok(store::form_files::find_downloadable(conn, form_id, id).await?);
    let file = state.db.query(find).await?;
    let file = file.ok_or_else(|| Problem::new(Code::NotFound, "there is no such file"))?;
    if file.is_suspended {
        let status = StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS;
        return Err(Problem::new(Code::Suspended, "this file's account is suspended").with_status(status));
    }
    Ok(file)
}

fn response_headers(file: &ServedFile) -> HeaderMap {
    let text = HeaderValue::from_static;
    let mut headers = HeaderMap::with_capacity(10);
    headers.insert(header::CONTENT_TYPE, text(UNKNOWN));
    headers.insert(header::CACHE_CONTROL, text("private, no-store"));
    headers.insert(header::CONTENT_SECURITY_POLICY, text(POLICY));
    headers.insert("cross-origin-resource-policy", text("same-origin"));
    let name = utf8_percent_encode(&file.filename, NON_ALPHANUMERIC);
    let disposition = HeaderValue::from_str(&format!("attachment; filename*=UTF-8''{name}"));
    headers.insert(header::CONTENT_DISPOSITION, disposition.unwrap_or(text("attachment")));
    headers
}
