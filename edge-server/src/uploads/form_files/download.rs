//! Fetching a file of a submission: by its id to an address that is good for a minute, and there as bytes to be
//! saved. They are a stranger's: nothing of them is shown or run here, whatever they are.

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

use crate::sites::files::file_body;
use crate::state::EdgeState;

const POLICY: &str = "default-src 'none'; sandbox";

/// `GET /api/forms/{id}/files/{oid}`: on to where the file can be fetched for a minute.
pub(crate) async fn fetch(
    State(edge): State<EdgeState>,
    Path((form_id, id)): Path<(Uuid, Uuid)>,
) -> Result<Response, Problem> {
    let file = find(&edge, Some(form_id), id).await?;
    let within = chrono::TimeDelta::from_std(edge.form_rules.download_within).unwrap_or_default();
    let expires_at = (edge.clock.now() + within).timestamp();
    let ticket = Ticket { id, size_bytes: file.size_bytes, expires_at };
    let location = format!("{}{}", edge.addresses.base(), edge.uploads.download_address(&ticket));
    Ok((StatusCode::FOUND, [(header::LOCATION, location), (header::CACHE_CONTROL, "no-store".to_owned())])
        .into_response())
}

/// `GET /downloads/{id}`: the bytes.
pub(crate) async fn download(
    State(edge): State<EdgeState>,
    Path(id): Path<Uuid>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let ticket = edge.uploads.read_download(id, query.as_deref().unwrap_or_default(), edge.clock.now());
    ticket.map_err(|why| {
        let detail = match why {
            Refused::Forged => "this address is not as it was given out",
            Refused::Expired => "this address was good for a minute; go back to where it came from",
        };
        Problem::new(Code::Forbidden, detail)
    })?;
    // Once more: it may have been deleted meanwhile.
    let file = find(&edge, None, id).await?;
    let (asked, _) = request.into_parts();
    Ok(file_body::send(&edge, &file, &asked, headers_of(&file)).await)
}

async fn find(edge: &EdgeState, form_id: Option<Uuid>, id: Uuid) -> Result<ServedFile, Problem> {
    let find = async |conn: &mut Conn| Ok(store::form_files::find_downloadable(conn, form_id, id).await?);
    let file = edge.ask(find).await?;
    let file = file.ok_or_else(|| Problem::new(Code::NotFound, "there is no such file"))?;
    if file.is_suspended {
        let status = StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS;
        return Err(Problem::new(Code::Suspended, "this file's account is suspended").with_status(status));
    }
    Ok(file)
}

fn headers_of(file: &ServedFile) -> HeaderMap {
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
