//! Receives a file that a page of the console was given, a zip of a deploy or an asset: browsers without scripts can't send a
//! `PUT` to the edge. The signed URL is the permission, as there.

use std::io::{Read, Seek};

use bytes::Bytes;
use chrono::TimeDelta;
use contract::Change;
use domain::FieldError;
use domain::media::{self, SNIFFED_BYTES};
use store::blobs::NewBlob;
use store::uploads::{Purpose, Upload};
use uuid::Uuid;
use web::{Code, Problem};

use crate::App;

/// Bytes that are read from disk at a time.
const READ_BYTES: usize = 1 << 20;
/// How long the stored bytes may stay without a reference.
const UNREFERENCED_TTL: TimeDelta = TimeDelta::hours(1);

/// Stores a file for the deploy or asset of an upload URL, once.
pub(crate) async fn receive(app: &App, upload_url: &str, file: std::fs::File) -> Result<(), Problem> {
    let now = app.clock.now();
    let (id, query) = id_and_query(upload_url).ok_or_else(unknown_upload)?;
    app.uploads.verify(id, query, now).map_err(|error| Problem::new(Code::Forbidden, error.to_string()))?;
    let mut conn = store::acquire(&app.db).await?;
    let upload = store::uploads::find_upload(&mut conn, id).await?;
    drop(conn);
    let upload = upload.filter(|upload| upload.purpose != Purpose::FormFile).ok_or_else(unknown_upload)?;
    if upload.is_suspended {
        return Err(Problem::new(Code::Suspended, "this account is suspended"));
    }
    if upload.is_stored {
        return Err(already_stored());
    }
    let account_id = upload.account_id;
    let mut incoming = app.blobs.receive(account_id, app.rng.uuid_v7(now));
    let mut file = Some(file);
    let mut is_checked = false;
    while let Some(unread) = file.take() {
        let read = tokio::task::spawn_blocking(move || read_chunk(unread, !is_checked)).await;
        let read = read.unwrap_or_else(|panic| Err(std::io::Error::other(panic)));
        let (unread, chunk) = read.map_err(|error| failed_on_disk(&error))?;
        if chunk.is_empty() {
            break;
        }
        if !is_checked {
            check_type(&upload, &chunk[..chunk.len().min(SNIFFED_BYTES)])?;
            is_checked = true;
        }
        incoming.write(Bytes::from(chunk)).await?;
        file = Some(unread);
    }
    if i64::try_from(incoming.size()).ok() != Some(upload.size_bytes) {
        let message =
            format!("{} bytes were announced, and {} have arrived", upload.size_bytes, incoming.size());
        return Err(Problem::validation(vec![FieldError::new("file", "size", message)]));
    }
    let received = incoming.finish().await?;
    let sha256 = received.name().sha256;
    let blob = NewBlob { id: app.rng.uuid_v7(now), sha256, size_bytes: upload.size_bytes };
    let mut tx = store::begin(&app.db).await?;
    store::blobs::insert_unreferenced(&mut tx, account_id, &[blob], now + UNREFERENCED_TTL).await?;
    store::commit(tx).await?;
    let mut tx = store::begin(&app.db).await?;
    if !store::uploads::finish_upload(&mut tx, account_id, id, now).await? {
        return Err(already_stored());
    }
    let settled = store::blobs::reference_blobs(&mut tx, account_id, &[blob]).await?;
    // The lock on the blob's row keeps its bytes from being deleted.
    app.blobs.store(&received).await?;
    // One blob was given, so one is returned.
    let settled = settled.first().ok_or_else(Problem::nothing_changed)?;
    let changes = match upload.purpose {
        Purpose::Asset => {
            store::assets::update_blob(&mut tx, account_id, id, settled.id).await?;
            vec![Change::Asset { asset_id: id }]
        }
        Purpose::Deploy => {
            store::deploys::update_uploaded(&mut tx, account_id, id, settled.id).await?;
            Vec::new()
        }
        // Visitors upload these, to the edge alone.
        Purpose::FormFile => return Err(unknown_upload()),
    };
    app.commit(tx, changes).await
}

fn failed_on_disk(error: &std::io::Error) -> Problem {
    tracing::error!(%error, "failed to read a posted file from disk");
    Problem::nothing_changed()
}

/// Reads the next bytes of a file, from its beginning if it is the first time. None are left at its end.
fn read_chunk(mut file: std::fs::File, is_first: bool) -> std::io::Result<(std::fs::File, Vec<u8>)> {
    if is_first {
        file.rewind()?;
    }
    let mut chunk = Vec::with_capacity(READ_BYTES);
    file.by_ref().take(READ_BYTES as u64).read_to_end(&mut chunk)?;
    Ok((file, chunk))
}

/// Returns the id and the query of an upload URL.
fn id_and_query(url: &str) -> Option<(Uuid, &str)> {
    let (path, query) = url.split_once('?')?;
    Some((path.rsplit('/').next()?.parse().ok()?, query))
}

fn check_type(upload: &Upload, head: &[u8]) -> Result<(), Problem> {
    media::check_agrees(&upload.content_type, head).map_err(|detected| {
        let message = format!("{} is expected, and this looks like {detected}", upload.content_type);
        Problem::validation(vec![FieldError::new("file", "content_type", message)])
    })
}

fn unknown_upload() -> Problem {
    Problem::new(Code::NotFound, "there is nothing to be uploaded here; begin again")
}

fn already_stored() -> Problem {
    Problem::new(Code::Conflict, "the file is stored already, or the time for it is over")
}
