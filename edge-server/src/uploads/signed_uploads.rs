//! `PUT /uploads/{id}`: streams an announced upload into the object store. The signed URL is the permission.
//!
//! Nothing refers to the bytes before all of them have arrived and match their announcement. If an upload fails before, no
//! bytes remain.

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, put};
use blobs::{Incoming, Received};
use contract::{Change, Signal};
use domain::FieldError;
use domain::media::{self, SNIFFED_BYTES};
use futures::StreamExt;
use http::{HeaderMap, StatusCode, header};
use serde_json::json;
use store::Conn;
use store::uploads::{Purpose, Upload};
use uuid::Uuid;
use web::{Code, Path, Problem};

use super::blob_storage::store_blob;
use crate::cors::{allow_any_origin, preflight};
use crate::invalidation;
use crate::metrics;
use crate::state::EdgeState;

/// Routes uploads from pages of any origin.
pub(crate) fn route() -> MethodRouter<EdgeState> {
    put(upload).options(async || preflight("PUT", "content-type")).layer(map_response(allow_any_origin))
}

async fn upload(
    State(state): State<EdgeState>,
    Path(id): Path<Uuid>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let query = query.as_deref().unwrap_or_default();
    let ticket = state.upload_urls.verify_upload(id, query, state.clock.now());
    let ticket = ticket.map_err(|error| Problem::new(Code::Forbidden, error.to_string()))?;
    check_length(request.headers(), ticket.size_bytes)?;
    let find = async |conn: &mut Conn| Ok(store::uploads::find_upload(conn, id).await?);
    let upload = state.db.query(find).await?.ok_or_else(unknown_upload)?;
    if upload.is_suspended {
        return Err(Problem::new(Code::Suspended, "this account is suspended"));
    }
    if upload.is_stored {
        return Err(already_stored());
    }
    let incoming = state.blobs.receive(upload.account_id, state.rng.uuid_v7(state.clock.now()));
    let received = receive(&state, &upload, incoming, request.into_body()).await?;
    store(&state, id, &upload, &received).await?;
    metrics::UPLOADS_RECEIVED.add(1, &[]);
    metrics::UPLOAD_RECEIVED_BYTES.add(received.size(), &[]);
    let body = json!({"id": id, "sizeBytes": received.size(), "sha256": hex::encode(received.name().sha256)});
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from(body.to_string())).into_response())
}

/// Streams the body into the object store, and checks its size and type on the way.
async fn receive(
    state: &EdgeState,
    upload: &Upload,
    mut incoming: Incoming,
    body: Body,
) -> Result<Received, Problem> {
    let announced = u64::try_from(upload.size_bytes).unwrap_or_default();
    let mut body = body.into_data_stream();
    let mut head = Vec::with_capacity(SNIFFED_BYTES);
    while let Some(bytes) = next_chunk(state, &mut body).await? {
        if incoming.size() + bytes.len() as u64 > announced {
            return Err(too_large(upload.size_bytes));
        }
        if head.len() < SNIFFED_BYTES {
            head.extend_from_slice(&bytes[..bytes.len().min(SNIFFED_BYTES - head.len())]);
            // Fail early if the first bytes do not match the type.
            if head.len() == SNIFFED_BYTES {
                check_type(upload, &head)?;
            }
        }
        incoming.write(bytes).await?;
    }
    if incoming.size() < announced {
        let message = format!("{announced} bytes were announced, and only {} have arrived", incoming.size());
        return Err(Problem::validation(vec![FieldError::new("body", "too_short", message)]));
    }
    check_type(upload, &head)?;
    Ok(incoming.finish().await?)
}

async fn next_chunk(state: &EdgeState, body: &mut BodyDataStream) -> Result<Option<Bytes>, Problem> {
    let failed = |reason: &str| {
        let message = format!("the upload failed: {reason}");
        Problem::validation(vec![FieldError::new("body", "incomplete", message)])
    };
    match tokio::time::timeout(state.uploads.stall_timeout, body.next()).await {
        Err(_elapsed) => {
            Err(failed("no bytes arrived for too long").with_status(StatusCode::REQUEST_TIMEOUT))
        }
        Ok(None) => Ok(None),
        Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
        Ok(Some(Err(error))) => Err(failed(&error.to_string())),
    }
}

/// Stores the bytes for the upload's purpose. Only the first upload to a URL succeeds.
async fn store(state: &EdgeState, id: Uuid, upload: &Upload, received: &Received) -> Result<(), Problem> {
    let now = state.clock.now();
    let account_id = upload.account_id;
    let change = Change::Asset { asset_id: id };
    let signal = Signal::Changed(change.clone());
    let is_asset = upload.purpose == Purpose::Asset;
    let finish = async |conn: &mut Conn| {
        let is_first = store::uploads::finish_upload(conn, account_id, id, now).await?;
        if is_first { Ok(()) } else { Err(already_stored()) }
    };
    let refer = async |conn: &mut Conn, blob_id: Uuid| {
        refer_to(conn, id, upload, blob_id).await?;
        if is_asset {
            store::outbox::insert_signal(conn, &signal, now, now).await?;
        }
        Ok(())
    };
    store_blob(state, account_id, received, now, async |_| Ok(()), finish, refer).await?;
    if is_asset {
        // This edge invalidates at once, the others when they receive the signal.
        invalidation::apply(state, change);
        if let Err(error) = state.bus.publish_for_request(std::slice::from_ref(&signal)).await {
            tracing::debug!(%error, "a signal is left to the next sweep of the outbox");
        }
    }
    Ok(())
}

/// Makes the uploaded object refer to its bytes.
async fn refer_to(conn: &mut Conn, id: Uuid, upload: &Upload, blob_id: Uuid) -> Result<(), Problem> {
    let account_id = upload.account_id;
    match upload.purpose {
        Purpose::Asset => store::assets::update_blob(conn, account_id, id, blob_id).await?,
        Purpose::Deploy => store::deploys::update_uploaded(conn, account_id, id, blob_id).await?,
        Purpose::FormFile => {
            if !store::form_files::update_blob(conn, account_id, id, blob_id).await? {
                return Err(unknown_upload());
            }
        }
    }
    Ok(())
}

fn check_length(headers: &HeaderMap, announced: i64) -> Result<(), Problem> {
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<i64>().ok());
    match length {
        Some(length) if length > announced => Err(too_large(announced)),
        _ => Ok(()),
    }
}

fn check_type(upload: &Upload, head: &[u8]) -> Result<(), Problem> {
    media::check_agrees(&upload.content_type, head).map_err(|detected| {
        let message = format!("{} was announced, and this looks like {detected}", upload.content_type);
        Problem::validation(vec![FieldError::new("body", "content_type", message)])
            .hint("ask for a new address with the right contentType")
    })
}

fn unknown_upload() -> Problem {
    Problem::new(Code::NotFound, "there is nothing to be uploaded here; ask for a new address")
}

fn already_stored() -> Problem {
    Problem::new(Code::Conflict, "this address has received its upload, or has expired")
}

fn too_large(announced: i64) -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("{announced} bytes were announced, and this has more"))
        .with("limit", json!(announced))
}
