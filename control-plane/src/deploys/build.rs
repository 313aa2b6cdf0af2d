//! Builds a site from its zip and announced files: downloads the zip to disk, unpacks it and stores its files. Nothing
//! references the new files yet, so an aborted build leaves nothing permanent.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use blobs::Name;
use bytes::Bytes;
use chrono::TimeDelta;
use domain::FieldError;
use domain::deploys::report::DeployStats;
use domain::static_sites::SiteRules;
use domain::static_sites::deploy_notes::Note;
use domain::static_sites::limits::max_files;
use domain::static_sites::reasons::Reason;
use domain::static_sites::site_plan::ListedFile;
use futures::{StreamExt, TryStreamExt};
use store::blobs::NewBlob;
use tokio::io::AsyncWriteExt;
use uuid::Uuid;
use web::Problem;

use super::Progress;
use super::site_state::SiteState;
use super::unpack::{
    AnnouncedFiles, BuiltPage, Contents, FileLimits, SiteSources, Span, Spool, UnpackError, UnpackOptions,
    UnpackedFile, UnpackedSite, unpack,
};
use crate::App;
use crate::call::Call;

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

/// The inputs of a site to build.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) deploy_id: Uuid,
    /// The uploaded zip; `None` if all announced files are stored.
    pub(crate) zip: Option<Name>,
    pub(crate) size_bytes: i64,
    /// Whether the deploy announced its files.
    pub(crate) has_manifest: bool,
    /// The site's folder in the zip; `None` finds it.
    pub(crate) root: Option<String>,
    /// Whether addresses without a file answer with `index.html`.
    pub(crate) spa: bool,
    /// Whether the site is built for a preview: without pages.
    pub(crate) is_preview: bool,
}

/// A site that is ready to be published.
#[derive(Debug)]
pub(crate) struct BuiltSite {
    pub(crate) pages: Vec<BuiltPage>,
    /// The pages' documents.
    pub(crate) spool: Arc<Spool>,
    pub(crate) files: Vec<BuiltFile>,
    /// Whether the deploy announced its files.
    pub(super) has_manifest: bool,
    /// Announced files that are served in another form, as they were announced. They are stored but not served.
    pub(super) originals: Vec<BuiltFile>,
    pub(crate) rules: SiteRules,
    /// Slugs of all pages of the site before the deploy.
    pub(super) slugs_before: BTreeSet<String>,
    /// Files that are not served, and HTML without a page.
    pub(crate) listed: Vec<ListedFile>,
    pub(crate) notes: Vec<Note>,
    pub(crate) errors: Vec<String>,
    pub(crate) missing: BTreeSet<String>,
}

impl BuiltSite {
    /// Returns everything that was stored.
    pub(super) fn stored(&self) -> impl Iterator<Item = &BuiltFile> {
        self.files.iter().chain(&self.originals)
    }

    /// Returns the totals of the site without what happens to its pages.
    pub(super) fn stats(&self) -> DeployStats {
        DeployStats {
            pages_created: 0,
            pages_updated: 0,
            assets_uploaded: self.files.iter().filter(|file| file.by_content).count(),
            files_served: self.pages.len() + self.files.len(),
            files_left_out: self.listed.iter().filter(|file| !file.reason.is_served()).count(),
        }
    }

    /// Returns the paths of all pages and files.
    pub(crate) fn paths(&self) -> BTreeSet<&str> {
        let pages = self.pages.iter().map(|page| page.path.as_str());
        pages.chain(self.files.iter().map(|file| file.path.as_str())).collect()
    }
}

/// Builds the site of a subdomain from an uploaded zip. After a failure it releases the files stored so far; the problem
/// explains a rejected zip.
pub(crate) async fn build<S>(
    app: &App,
    call: &Call<S>,
    upload: Upload,
    subdomain_id: Uuid,
    progress: &Progress,
) -> Result<BuiltSite, Problem> {
    let account_id = call.account_id;
    let mut tx = store::begin(&app.db).await?;
    let site = SiteState::find(&mut tx, call, subdomain_id).await?;
    drop(tx);
    let site = if upload.is_preview { site.for_preview() } else { site };
    let announced = match upload.has_manifest {
        true => Some(AnnouncedFiles::download(app, account_id, upload.deploy_id).await?),
        false => None,
    };
    let zip = match upload.zip {
        Some(zip) => Some(download(app, zip, upload.size_bytes).await?),
        None => None,
    };
    let sources = SiteSources { zip, announced };
    let (served_bytes, slugs_before) = (site.served_bytes, site.slugs.clone());
    let options = UnpackOptions {
        addresses: app.addresses.clone(),
        root: upload.root,
        spa: upload.spa,
        is_preview: upload.is_preview,
        limits: FileLimits {
            max_files: max_files(call.plan()),
            max_file_bytes: u64::try_from(call.limits().asset_size_limit).unwrap_or(u64::MAX),
        },
        site,
        progress: progress.clone(),
    };
    let permit = app.deploy_admission.acquire_unpacking().await?;
    // The thread goes on if the service shuts down, so it holds the permit.
    let unpacked = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        unpack(sources, options)
    });
    let unpacked = unpacked.await.unwrap_or_else(|panic| Err(UnpackError::Io(std::io::Error::other(panic))));
    let unpacked = unpacked.map_err(|error| match error {
        UnpackError::Archive(reason) => {
            let message = format!("{reason}; nothing was published");
            Problem::validation(vec![FieldError::new("zip", "invalid", message)])
                .hint("fix the zip, start a new deploy and upload it")
        }
        UnpackError::Root(reason) => {
            Problem::validation(vec![FieldError::new("root", "invalid", reason.to_string())])
        }
        UnpackError::StorageExceeded(bytes) => {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            call.storage_exceeded(bytes - served_bytes)
        }
        UnpackError::Io(error) => failed_on_disk(&error),
    })?;
    let UnpackedSite { pages, files, originals, spool, rules, listed, notes, errors, missing } = unpacked;
    let spool = Arc::new(spool);
    let mut site = BuiltSite {
        pages,
        spool: Arc::clone(&spool),
        files: Vec::new(),
        has_manifest: upload.has_manifest,
        originals: Vec::new(),
        rules,
        slugs_before,
        listed,
        notes,
        errors,
        missing,
    };
    let mut result = store_files(app, account_id, files, &spool, progress, &mut site.files).await;
    if result.is_ok() && !originals.is_empty() {
        // They are no files of the site, so they don't count in its progress.
        let uncounted = Progress::default();
        result = store_files(app, account_id, originals, &spool, &uncounted, &mut site.originals).await;
    }
    match result {
        Ok(()) => Ok(site),
        Err(problem) => {
            release(app, account_id, &site).await;
            Err(problem)
        }
    }
}

pub(super) fn failed_on_disk(error: &std::io::Error) -> Problem {
    tracing::error!(%error, "failed to unpack a zip");
    Problem::nothing_changed()
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

/// Stores the files. Adds each to `stored` before its upload, so that a failed build releases all.
async fn store_files(
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
            let UnpackedFile { path, sha256, content_type, by_content, reason, title, contents } = file;
            let size_bytes = i64::try_from(contents.bytes()).unwrap_or(i64::MAX);
            let blob = NewBlob { id: app.rng.uuid_v7(now), sha256, size_bytes };
            stored.push(BuiltFile { path, blob, content_type, by_content, reason, title });
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

/// Releases the stored files of a site that is not published.
pub(crate) async fn release(app: &App, account_id: Uuid, site: &BuiltSite) {
    let digests: Vec<[u8; 32]> = site.stored().map(|file| file.blob.sha256).collect();
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
