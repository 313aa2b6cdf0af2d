//! Building a site: its zip is fetched to disk, unpacked, and its files are stored as they come. Nothing refers to
//! them yet, so that whatever breaks off here leaves nothing that lasts.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use blobs::Name;
use chrono::TimeDelta;
use futures::{StreamExt, TryStreamExt};
use store::blobs::NewBlob;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use uuid::Uuid;
use web::{Code, Problem};

use super::Progress;
use super::documents::Documents;
use super::unpack::{BuiltPage, Failed, Inflated, Unpacked, Unpacking, unpack};
use crate::App;

/// Files announced in one statement.
const BATCH: usize = 64;
/// Files stored at once.
const AT_ONCE: usize = 8;
/// How long stored files may wait for the deploy to be published.
const PATIENCE: TimeDelta = TimeDelta::hours(1);

/// A file, stored.
#[derive(Debug, Clone)]
pub(crate) struct BuiltFile {
    pub(crate) path: String,
    pub(crate) blob: NewBlob,
    pub(crate) content_type: &'static str,
    pub(crate) by_content: bool,
}

/// A site that can be published.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) pages: Vec<BuiltPage>,
    pub(crate) documents: Arc<Documents>,
    pub(crate) files: Vec<BuiltFile>,
    pub(crate) errors: Vec<String>,
    pub(crate) missing: BTreeSet<String>,
}

/// Builds the site in an uploaded zip.
///
/// # Errors
/// The zip is wrong, which the problem explains; or a store is away. What was stored is let go of.
pub(crate) async fn build(
    app: &App,
    account_id: Uuid,
    zip: Name,
    size_bytes: i64,
    file_bytes_max: i64,
    progress: &Progress,
) -> Result<Site, Problem> {
    let zip = fetch(app, zip, size_bytes).await?;
    let (out, files) = channel(BATCH);
    let unpacking = Unpacking {
        addresses: app.addresses.clone(),
        file_bytes_max: u64::try_from(file_bytes_max).unwrap_or(u64::MAX),
        progress: progress.clone(),
        out,
        runtime: Handle::current(),
    };
    let unpacked = tokio::task::spawn_blocking(move || unpack(zip, unpacking));
    let mut stored = Vec::new();
    let kept = keep(app, account_id, files, progress, &mut stored).await;
    let unpacked = unpacked.await.unwrap_or_else(|panic| Err(Failed::Io(std::io::Error::other(panic))));
    match (kept, unpacked) {
        (Ok(()), Ok(unpacked)) => {
            let Unpacked { pages, documents, errors, missing } = unpacked;
            Ok(Site { pages, documents: Arc::new(documents), files: stored, errors, missing })
        }
        (kept, unpacked) => {
            release(app, account_id, &stored).await;
            // If nobody took the files, the other side says why.
            match unpacked {
                Err(Failed::Wrong(wrong)) => {
                    Err(Problem::new(Code::ValidationFailed, format!("{wrong}; nothing was published"))
                        .hint("make the zip anew, begin a new deploy and upload it"))
                }
                Err(Failed::Io(error)) => {
                    tracing::error!(%error, "a zip can't be unpacked");
                    Err(kept.err().unwrap_or_else(|| Problem::away(true)))
                }
                _ => Err(kept.err().unwrap_or_else(|| Problem::away(true))),
            }
        }
    }
}

/// The zip, in a file that nobody else sees.
async fn fetch(app: &App, zip: Name, size_bytes: i64) -> Result<File, Problem> {
    let failed = |error: std::io::Error| {
        tracing::error!(%error, "a zip can't be kept on disk");
        Problem::away(true)
    };
    let mut file = tokio::fs::File::from_std(tempfile::tempfile().map_err(failed)?);
    let mut bytes = app.blobs.read(zip, 0..size_bytes.unsigned_abs()).await?;
    while let Some(some) = bytes.try_next().await? {
        file.write_all(&some).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    Ok(file.into_std().await)
}

/// Stores the files as they come; `stored` has them even if some could not be.
async fn keep(
    app: &App,
    account_id: Uuid,
    mut files: Receiver<Inflated>,
    progress: &Progress,
    stored: &mut Vec<BuiltFile>,
) -> Result<(), Problem> {
    let mut batch = Vec::with_capacity(BATCH);
    while files.recv_many(&mut batch, BATCH).await > 0 {
        let now = app.clock.now();
        let mut some = Vec::with_capacity(batch.len());
        for Inflated { path, sha256, content_type, by_content, bytes, share } in batch.drain(..) {
            let size_bytes = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            let blob = NewBlob { id: app.rng.uuid_v7(now), sha256, size_bytes };
            stored.push(BuiltFile { path, blob, content_type, by_content });
            some.push((blob, bytes, share));
        }
        // The same bytes under two paths are one blob.
        some.sort_by_key(|(blob, ..)| blob.sha256);
        some.dedup_by_key(|(blob, ..)| blob.sha256);
        let blobs: Vec<NewBlob> = some.iter().map(|(blob, ..)| *blob).collect();
        let mut tx = store::begin(&app.db).await?;
        // Who publishes takes many of these rows, and not in one go.
        store::usage::lock(&mut tx, account_id).await?;
        store::blobs::announce_blobs(&mut tx, account_id, &blobs, now + PATIENCE).await?;
        store::commit(tx).await?;
        let put = some.into_iter().map(async |(blob, bytes, _share)| {
            let name = Name { account_id, sha256: blob.sha256 };
            if !app.blobs.contains(name).await? {
                app.blobs.put(name, bytes).await?;
            }
            progress.one_done();
            Ok::<_, blobs::Error>(())
        });
        futures::stream::iter(put).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    }
    Ok(())
}

/// Lets go of what was stored for nothing.
pub(crate) async fn release(app: &App, account_id: Uuid, stored: &[BuiltFile]) {
    let digests: Vec<[u8; 32]> = stored.iter().map(|file| file.blob.sha256).collect();
    let released = async {
        let mut tx = store::begin(&app.db).await?;
        store::usage::lock(&mut tx, account_id).await?;
        store::blobs::release_digests(&mut tx, account_id, &digests, app.clock.now()).await?;
        store::commit(tx).await
    };
    if let Err(error) = released.await {
        tracing::warn!(%error, "files of a failed deploy go later");
    }
}
