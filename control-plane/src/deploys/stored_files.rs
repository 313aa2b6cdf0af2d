//! The files of a built site, and how they are stored: in groups, a few at once. Nothing references them yet, so an aborted build
//! leaves nothing permanent.

use std::sync::Arc;

use blobs::Name;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use domain::static_sites::reasons::Reason;
use futures::{StreamExt, TryStreamExt};
use store::blobs::NewBlob;
use uuid::Uuid;
use web::Problem;

use super::Progress;
use super::unpack::{Contents, Span, Spool, UnpackedFile};
use crate::App;

/// Files announced in one statement.
const BATCH_SIZE: usize = 512;
/// Files, and their bytes, that are stored together.
const GROUP_FILES: usize = 16;
const GROUP_BYTES: u64 = 1 << 20;
/// Groups of files stored at once, and files downloaded.
pub(super) const MAX_CONCURRENT: usize = 8;
/// Size up to which a file is uploaded from memory. Larger ones are uploaded in parts.
const MAX_IN_MEMORY: u64 = 8 << 20;
/// Bytes that are read from disk at a time.
const READ_BYTES: u64 = 1 << 20;
/// How long stored files may stay without a published deploy that references them.
const UNPUBLISHED_TTL: TimeDelta = TimeDelta::hours(1);

/// A stored file.
#[derive(Debug, Clone)]
pub(crate) struct BuiltFile {
    pub(crate) path: String,
    pub(crate) blob: NewBlob,
    pub(crate) content_type: &'static str,
    pub(crate) by_content: bool,
    /// Why it is HTML without a page.
    pub(crate) reason: Option<Reason>,
    /// Its title, if it is HTML of a preview.
    pub(crate) title: Option<String>,
}

/// Returns a file as it will be stored, and its contents.
pub(super) fn built_file(app: &App, file: UnpackedFile, now: DateTime<Utc>) -> (BuiltFile, Contents) {
    let UnpackedFile { path, sha256, content_type, by_content, reason, title, contents } = file;
    let size_bytes = i64::try_from(contents.bytes()).unwrap_or(i64::MAX);
    let blob = NewBlob { id: app.rng.uuid_v7(now), sha256, size_bytes };
    (BuiltFile { path, blob, content_type, by_content, reason, title }, contents)
}

pub(super) fn failed_on_disk(error: &std::io::Error) -> Problem {
    tracing::error!(%error, "failed to unpack a zip");
    Problem::nothing_changed()
}

/// Stores the files. Adds each to `stored` before its upload, so that a failed build releases all.
pub(super) async fn store_files(
    app: &App,
    account_id: Uuid,
    files: Vec<UnpackedFile>,
    spool: &Arc<Spool>,
    progress: &Progress,
    stored: &mut Vec<BuiltFile>,
) -> Result<(), Problem> {
    let mut files = files.into_iter().peekable();
    while files.peek().is_some() {
        let now = app.clock.now();
        let mut uploads = Vec::with_capacity(BATCH_SIZE);
        for file in files.by_ref().take(BATCH_SIZE) {
            let (file, contents) = built_file(app, file, now);
            let blob = file.blob;
            stored.push(file);
            match contents {
                Contents::Spooled(bytes) => uploads.push((blob, bytes)),
                // The deploy's announced files refer to the blob, so it stays.
                Contents::Stored(_) => progress.file_done(),
            }
        }
        if uploads.is_empty() {
            continue;
        }
        // Two paths with the same bytes share one blob.
        uploads.sort_by_key(|(blob, _)| blob.sha256);
        uploads.dedup_by_key(|(blob, _)| blob.sha256);
        let blobs: Vec<NewBlob> = uploads.iter().map(|(blob, _)| *blob).collect();
        let mut tx = store::begin(&app.db).await?;
        // Publishing locks many of these rows one after the other; the usage lock orders both.
        store::usage::lock(&mut tx, account_id).await?;
        let registered =
            store::blobs::insert_unreferenced(&mut tx, account_id, &blobs, now + UNPUBLISHED_TTL).await?;
        store::commit(tx).await?;
        let groups = groups(uploads).into_iter().map(async |group| {
            let count = group.len();
            let mut missing = Vec::with_capacity(count);
            for (blob, bytes) in group {
                let name = Name { account_id, sha256: blob.sha256 };
                if !registered.contains(&blob.sha256) || !app.blobs.contains(name).await? {
                    missing.push((name, blob.id, bytes));
                }
            }
            upload(app, missing, spool).await?;
            (0..count).for_each(|_| progress.file_done());
            Ok::<_, Problem>(())
        });
        futures::stream::iter(groups).buffer_unordered(MAX_CONCURRENT).try_collect::<()>().await?;
    }
    Ok(())
}

/// Splits files into groups of at most [`GROUP_FILES`] and [`GROUP_BYTES`]. A larger file is a group of its own.
fn groups(uploads: Vec<(NewBlob, Span)>) -> Vec<Vec<(NewBlob, Span)>> {
    let mut groups: Vec<Vec<(NewBlob, Span)>> = Vec::new();
    let mut bytes = 0;
    for (blob, span) in uploads {
        bytes += span.bytes;
        match groups.last_mut() {
            Some(group) if group.len() < GROUP_FILES && bytes <= GROUP_BYTES => group.push((blob, span)),
            _ => {
                bytes = span.bytes;
                groups.push(vec![(blob, span)]);
            }
        }
    }
    groups
}

/// Uploads a group of files, after waiting for its memory.
async fn upload(app: &App, group: Vec<(Name, Uuid, Span)>, spool: &Arc<Spool>) -> Result<(), Problem> {
    let bytes: u64 = group.iter().map(|(.., span)| span.bytes).sum();
    let _memory = app.deploy_admission.acquire_memory(bytes.min(MAX_IN_MEMORY)).await;
    if let [(name, id, span)] = group[..]
        && span.bytes > MAX_IN_MEMORY
    {
        return upload_in_parts(app, name, id, spool, span).await;
    }
    let names: Vec<Name> = group.iter().map(|(name, ..)| *name).collect();
    let spans = group.into_iter().map(|(.., span)| span).collect();
    let contents = spool.read_all(spans).await.map_err(|error| failed_on_disk(&error))?;
    Ok(app.blobs.put_all(names.into_iter().zip(contents.into_iter().map(Bytes::from)).collect()).await?)
}

async fn upload_in_parts(
    app: &App,
    name: Name,
    id: Uuid,
    spool: &Arc<Spool>,
    span: Span,
) -> Result<(), Problem> {
    let read = async |span| spool.read(span).await.map_err(|error| failed_on_disk(&error));
    let (mut incoming, mut rest) = (app.blobs.receive(name.account_id, id), span);
    while rest.bytes > 0 {
        let (first, others) = rest.split_first(READ_BYTES);
        incoming.write(read(first).await?.into()).await?;
        rest = others;
    }
    Ok(app.blobs.store(&incoming.finish().await?).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_share_a_group_and_a_large_one_is_alone() {
        let sizes = |uploads: &[u64]| {
            let blob = NewBlob { id: Uuid::nil(), sha256: [0; 32], size_bytes: 0 };
            let uploads = uploads.iter().map(|bytes| (blob, Span { offset: 0, bytes: *bytes })).collect();
            let groups = groups(uploads).into_iter();
            groups.map(|group| group.iter().map(|(_, span)| span.bytes).collect()).collect::<Vec<Vec<u64>>>()
        };
        assert!(sizes(&[]).is_empty());
        let mib = 1 << 20;
        assert_eq!(sizes(&[1, 9 * mib, 2, mib - 2, 1]), [vec![1], vec![9 * mib], vec![2, mib - 2], vec![1]]);
        assert_eq!(sizes(&[1; 40]), [vec![1; 16], vec![1; 16], vec![1; 8]]);
    }
}
