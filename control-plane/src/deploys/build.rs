//! Builds a site from its zip: downloads the zip to disk, unpacks it and stores its files. Nothing references the files
//! yet, so an aborted build leaves nothing permanent.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use blobs::Name;
use chrono::TimeDelta;
use domain::plans::UNLIMITED;
use futures::{StreamExt, TryStreamExt};
use service::admission::Permit;
use store::blobs::NewBlob;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use uuid::Uuid;
use web::{Code, Problem};

use super::Progress;
use super::documents::Documents;
use super::unpack::{BuiltPage, InflatedFile, UnpackError, UnpackOptions, UnpackedSite, unpack};
use crate::App;
use crate::call::Call;

/// Files announced in one statement.
const BATCH_SIZE: usize = 64;
/// Files uploaded to the blob store at once.
const MAX_CONCURRENT: usize = 8;
/// How long stored files may stay without a published deploy that references them.
const UNPUBLISHED_TTL: TimeDelta = TimeDelta::hours(1);

/// A stored file.
#[derive(Debug, Clone)]
pub(crate) struct BuiltFile {
    pub(crate) path: String,
    pub(crate) blob: NewBlob,
    pub(crate) content_type: &'static str,
    pub(crate) by_content: bool,
}

/// A site that is ready to be published.
#[derive(Debug)]
pub(crate) struct BuiltSite {
    pub(crate) pages: Vec<BuiltPage>,
    pub(crate) documents: Arc<Documents>,
    pub(crate) files: Vec<BuiltFile>,
    pub(crate) errors: Vec<String>,
    pub(crate) missing: BTreeSet<String>,
}

/// Builds the site of a subdomain from an uploaded zip. After a failure it releases the files stored so far; the problem
/// explains a rejected zip.
pub(crate) async fn build<S>(
    app: &App,
    call: &Call<S>,
    zip: Name,
    size_bytes: i64,
    subdomain_id: Uuid,
    progress: &Progress,
    permit: Permit<Uuid>,
) -> Result<BuiltSite, Problem> {
    let account_id = call.account_id;
    let storage = find_storage(app, call, subdomain_id).await?;
    let zip = download(app, zip, size_bytes).await?;
    let (output, files) = channel(BATCH_SIZE);
    let options = UnpackOptions {
        addresses: app.addresses.clone(),
        max_file_bytes: u64::try_from(call.limits().asset_size_limit).unwrap_or(u64::MAX),
        max_stored_bytes: storage.max_bytes,
        memory: app.unpacking.memory(),
        progress: progress.clone(),
        output,
        runtime: Handle::current(),
    };
    // A client that hangs up does not end the thread, so both hold the permit.
    let permit = Arc::new(permit);
    let permit_of_thread = Arc::clone(&permit);
    let unpacked = tokio::task::spawn_blocking(move || {
        let _permit = permit_of_thread;
        unpack(zip, options)
    });
    let mut stored = Vec::new();
    let stored_all = store_files(app, account_id, files, progress, &mut stored).await;
    let unpacked = unpacked.await.unwrap_or_else(|panic| Err(UnpackError::Io(std::io::Error::other(panic))));
    drop(permit);
    match (stored_all, unpacked) {
        (Ok(()), Ok(unpacked)) => {
            let UnpackedSite { pages, documents, errors, missing } = unpacked;
            Ok(BuiltSite { pages, documents: Arc::new(documents), files: stored, errors, missing })
        }
        (stored_all, unpacked) => {
            release(app, account_id, &stored).await;
            // If unpacking stopped because its receiver was gone, the storing side has the cause.
            match unpacked {
                Err(UnpackError::Archive(reason)) => {
                    Err(Problem::new(Code::ValidationFailed, format!("{reason}; nothing was published"))
                        .hint("fix the zip, start a new deploy and upload it"))
                }
                Err(UnpackError::StorageExceeded(bytes)) => {
                    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
                    Err(call.storage_exceeded(bytes - storage.served_bytes))
                }
                Err(UnpackError::Io(error)) => {
                    tracing::error!(%error, "failed to unpack a zip");
                    Err(stored_all.err().unwrap_or_else(Problem::nothing_changed))
                }
                _ => Err(stored_all.err().unwrap_or_else(Problem::nothing_changed)),
            }
        }
    }
}

/// What the plan has left for the files of a site.
struct Storage {
    /// Upper bound of the files of the new deploy; `u64::MAX` without a limit.
    max_bytes: u64,
    /// Bytes of the deploy that the new one replaces.
    served_bytes: i64,
}

/// Returns the storage left for a deploy. Publishing charges the plan; this bounds what is stored before.
async fn find_storage<S>(app: &App, call: &Call<S>, subdomain_id: Uuid) -> Result<Storage, Problem> {
    let mut tx = store::begin(&app.db).await?;
    let usage = store::usage::find_usage(&mut tx, call.account_id).await?;
    let served = store::deploys::files::lock_served_deploy(&mut tx, call.account_id, subdomain_id).await?;
    let used = usage.map_or(0, |usage| usage.storage_bytes);
    let served_bytes = served.map_or(0, |served| served.size_bytes);
    let max_bytes = match call.limits().storage_bytes {
        UNLIMITED => u64::MAX,
        // Beyond a limit that was lowered, the files may still be replaced by smaller ones.
        limit => u64::try_from((limit - used).max(0) + served_bytes).unwrap_or(0),
    };
    Ok(Storage { max_bytes, served_bytes })
}

/// Downloads the zip into an unnamed temporary file.
async fn download(app: &App, zip: Name, size_bytes: i64) -> Result<File, Problem> {
    let failed = |error: std::io::Error| {
        tracing::error!(%error, "failed to write a zip to disk");
        Problem::nothing_changed()
    };
    let mut file = tokio::fs::File::from_std(tempfile::tempfile().map_err(failed)?);
    let mut bytes = app.blobs.read(zip, 0..size_bytes.unsigned_abs()).await?;
    while let Some(chunk) = bytes.try_next().await? {
        file.write_all(&chunk).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok(file.into_std().await)
}

/// Stores the files as they arrive. Adds each to `stored` before its upload, so that a failed build releases all.
async fn store_files(
    app: &App,
    account_id: Uuid,
    mut files: Receiver<InflatedFile>,
    progress: &Progress,
    stored: &mut Vec<BuiltFile>,
) -> Result<(), Problem> {
    let mut batch = Vec::with_capacity(BATCH_SIZE);
    while files.recv_many(&mut batch, BATCH_SIZE).await > 0 {
        let now = app.clock.now();
        let mut uploads = Vec::with_capacity(batch.len());
        for InflatedFile { path, sha256, content_type, by_content, bytes, permit } in batch.drain(..) {
            let size_bytes = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            let blob = NewBlob { id: app.rng.uuid_v7(now), sha256, size_bytes };
            stored.push(BuiltFile { path, blob, content_type, by_content });
            uploads.push((blob, bytes, permit));
        }
        // Two paths with the same bytes share one blob.
        uploads.sort_by_key(|(blob, ..)| blob.sha256);
        uploads.dedup_by_key(|(blob, ..)| blob.sha256);
        let blobs: Vec<NewBlob> = uploads.iter().map(|(blob, ..)| *blob).collect();
        let mut tx = store::begin(&app.db).await?;
        // Publishing locks many of these rows one after the other; the usage lock orders both.
        store::usage::lock(&mut tx, account_id).await?;
        store::blobs::insert_unreferenced(&mut tx, account_id, &blobs, now + UNPUBLISHED_TTL).await?;
        store::commit(tx).await?;
        let put = uploads.into_iter().map(async |(blob, bytes, _permit)| {
            let name = Name { account_id, sha256: blob.sha256 };
            if !app.blobs.contains(name).await? {
                app.blobs.put(name, bytes).await?;
            }
            progress.file_done();
            Ok::<_, blobs::Error>(())
        });
        futures::stream::iter(put).buffer_unordered(MAX_CONCURRENT).try_collect::<()>().await?;
    }
    Ok(())
}

/// Releases stored files that no deploy will reference.
pub(crate) async fn release(app: &App, account_id: Uuid, stored: &[BuiltFile]) {
    let digests: Vec<[u8; 32]> = stored.iter().map(|file| file.blob.sha256).collect();
    let released = async {
        let mut tx = store::begin(&app.db).await?;
        store::usage::lock(&mut tx, account_id).await?;
        store::blobs::release_digests(&mut tx, account_id, &digests, app.clock.now()).await?;
        store::commit(tx).await
    };
    if let Err(error) = released.await {
        tracing::warn!(%error, "failed to release the files of a failed deploy; they expire later");
    }
}
