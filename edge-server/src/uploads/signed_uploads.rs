//! Taking uploads: what was announced, by whoever was given the address, streamed into the object store.
//!
//! Nothing can be seen of an upload before all of it has come and is what it was said to be. Whatever ends it
//! before that, be it the visitor, the network or a kill, leaves no bytes behind.

use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{RawQuery, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, put};
use blobs::{Incoming, Received};
use chrono::{DateTime, Utc};
use contract::{Change, Signal};
use domain::FieldError;
use domain::media::{self, SNIFFED_BYTES};
use domain::uploads::{Refused, Signer, Ticket};
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use store::Conn;
use store::blobs::NewBlob;
use store::uploads::{Purpose, Upload};
use uuid::Uuid;
use web::{Code, Path, Problem};

use crate::state::EdgeState;
use crate::{config, invalidation};

/// How long bytes without anything that refers to them are left alone: the transaction in which something does may
/// be under way.
pub(crate) const ANNOUNCED_FOR: chrono::TimeDelta = chrono::TimeDelta::hours(1);

/// Bytes that have come are moved to their place within this.
pub(crate) const KEPT_WITHIN: Duration = Duration::from_mins(2);

/// How uploads are taken.
pub(crate) struct Uploads {
    signer: Signer,
    downloads: Signer,
    /// How long nothing may come.
    patience: Duration,
}

impl Uploads {
    /// By addresses signed with what is derived from `secret`.
    pub(crate) fn new(secret: &str, config: &config::Uploads) -> Self {
        let (signer, downloads) = (Signer::new(secret.as_bytes()), Signer::for_downloads(secret.as_bytes()));
        Self { signer, downloads, patience: config.patience }
    }

    /// The path at which an upload is taken.
    pub(crate) fn address(&self, ticket: &Ticket) -> String {
        self.signer.address(ticket)
    }

    /// The path at which a file is handed out.
    pub(crate) fn download_address(&self, ticket: &Ticket) -> String {
        self.downloads.address(ticket)
    }

    /// The ticket in a request for a file with this query.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn read_download(&self, id: Uuid, query: &str, now: DateTime<Utc>) -> Result<Ticket, Refused> {
        self.downloads.read(id, query, now)
    }
}

/// Uploading, from pages of any origin: the address is the permission.
pub(crate) fn route() -> MethodRouter<EdgeState> {
    put(take).options(preflight).layer(axum::middleware::map_response(async |mut response: Response| {
        let everybody = HeaderValue::from_static("*");
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, everybody);
        response
    }))
}

async fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "PUT"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

async fn take(
    State(edge): State<EdgeState>,
    Path(id): Path<Uuid>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Problem> {
    let ticket = edge.uploads.signer.read(id, query.as_deref().unwrap_or_default(), edge.clock.now());
    let ticket = ticket.map_err(refused)?;
    check_length(request.headers(), ticket.size_bytes)?;
    let find = async |conn: &mut Conn| Ok(store::uploads::find_upload(conn, id).await?);
    let upload = edge.ask(find).await?.ok_or_else(gone)?;
    if upload.is_suspended {
        return Err(Problem::new(Code::Suspended, "this account is suspended"));
    }
    if upload.is_stored {
        return Err(taken());
    }
    let incoming = edge.blobs.receive(upload.account_id, edge.rng.uuid_v7(edge.clock.now()));
    let received = receive(&edge, &upload, incoming, request.into_body()).await?;
    keep(&edge, id, &upload, &received).await?;
    service::metrics::counter("edge_upload_take_total").add(1, &[]);
    service::metrics::counter("edge_upload_take_bytes").add(received.size(), &[]);
    let body = json!({"id": id, "sizeBytes": received.size(), "sha256": hex::encode(received.name().sha256)});
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from(body.to_string())).into_response())
}

/// Streams the body into the store while it is counted and looked at.
async fn receive(
    edge: &EdgeState,
    upload: &Upload,
    mut incoming: Incoming,
    body: Body,
) -> Result<Received, Problem> {
    let announced = u64::try_from(upload.size_bytes).unwrap_or_default();
    let mut body = body.into_data_stream();
    let mut head = Vec::with_capacity(SNIFFED_BYTES);
    while let Some(bytes) = next(edge, &mut body).await? {
        if incoming.size() + bytes.len() as u64 > announced {
            return Err(too_large(upload.size_bytes));
        }
        if head.len() < SNIFFED_BYTES {
            head.extend_from_slice(&bytes[..bytes.len().min(SNIFFED_BYTES - head.len())]);
            // What is no such thing by its beginning need not come to its end.
            if head.len() == SNIFFED_BYTES {
                check_kind(upload, &head)?;
            }
        }
        incoming.write(bytes).await?;
    }
    if incoming.size() < announced {
        let message = format!("{announced} bytes were announced, and {} have come", incoming.size());
        return Err(Problem::validation(vec![FieldError::new("body", "too_short", message)]));
    }
    check_kind(upload, &head)?;
    Ok(incoming.finish().await?)
}

async fn next(edge: &EdgeState, body: &mut BodyDataStream) -> Result<Option<Bytes>, Problem> {
    let broken = |why: &str| Problem::new(Code::ValidationFailed, format!("the upload broke off: {why}"));
    match tokio::time::timeout(edge.uploads.patience, body.next()).await {
        Err(_elapsed) => Err(broken("nothing came for too long").with_status(StatusCode::REQUEST_TIMEOUT)),
        Ok(None) => Ok(None),
        Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
        Ok(Some(Err(error))) => Err(broken(&error.to_string())),
    }
}

/// Makes the bytes what the upload was for, once.
async fn keep(edge: &EdgeState, id: Uuid, upload: &Upload, received: &Received) -> Result<(), Problem> {
    let now = edge.clock.now();
    let account_id = upload.account_id;
    let name = received.name();
    let new = NewBlob { id: edge.rng.uuid_v7(now), sha256: name.sha256, size_bytes: upload.size_bytes };
    let announce = async |conn: &mut Conn| {
        Ok(store::blobs::insert_unreferenced(conn, account_id, &[new], now + ANNOUNCED_FOR).await?)
    };
    edge.ask(announce).await?;
    let change = Change::Asset { asset_id: id };
    let signal = Signal::Changed(change.clone());
    let is_asset = upload.purpose == Purpose::Asset;
    let finish = async |conn: &mut Conn| {
        let settle = async {
            if !store::uploads::finish_upload(conn, account_id, id, now).await? {
                return Err(taken());
            }
            Ok(store::blobs::reference_blobs(conn, account_id, &[new]).await?)
        };
        let settled = edge.patiently(settle).await?;
        // Under the lock of the blob's row: nobody deletes these bytes now.
        edge.blobs.store(received).await?;
        let note = async {
            for blob in settled {
                refer(conn, id, upload, blob.id).await?;
            }
            if is_asset {
                store::outbox::insert_signal(conn, &signal, now, now).await?;
            }
            Ok(())
        };
        edge.patiently(note).await
    };
    edge.transact(KEPT_WITHIN, finish).await?;
    if is_asset {
        // Here at once, elsewhere a moment later.
        invalidation::forget(edge, change);
        if let Err(error) = edge.bus.publish(&signal).await {
            tracing::debug!(%error, "a signal is left to the outbox");
        }
    }
    Ok(())
}

/// Has what the upload was for refer to its bytes.
async fn refer(conn: &mut Conn, id: Uuid, upload: &Upload, blob_id: Uuid) -> Result<(), Problem> {
    let account_id = upload.account_id;
    match upload.purpose {
        Purpose::Asset => store::assets::update_blob(conn, account_id, id, blob_id).await?,
        Purpose::Deploy => store::deploys::update_uploaded(conn, account_id, id, blob_id).await?,
        Purpose::FormFile => {
            if !store::form_files::update_blob(conn, account_id, id, blob_id).await? {
                return Err(gone());
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

fn check_kind(upload: &Upload, head: &[u8]) -> Result<(), Problem> {
    media::check_agrees(&upload.content_type, head).map_err(|looks| {
        let message = format!("{} was announced, and this looks like {looks}", upload.content_type);
        Problem::validation(vec![FieldError::new("body", "content_type", message)])
            .hint("ask for a new address with the right contentType")
    })
}

fn refused(why: Refused) -> Problem {
    Problem::new(Code::Forbidden, why.to_string())
}

fn gone() -> Problem {
    Problem::new(Code::NotFound, "there is nothing to be uploaded here; ask for a new address")
}

fn taken() -> Problem {
    Problem::new(Code::Conflict, "this address has taken its upload, or its time is over")
}

fn too_large(announced: i64) -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("{announced} bytes were announced, and this has more"))
        .with("limit", json!(announced))
}
