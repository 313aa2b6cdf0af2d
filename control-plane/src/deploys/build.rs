//! Builds a site from its zip and announced files: downloads the zip to disk, unpacks it and stores its files. Nothing
//! references the new files yet, so an aborted build leaves nothing permanent.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use blobs::Name;
use domain::FieldError;
use domain::deploys::report::DeployStats;
use domain::static_sites::SiteRules;
use domain::static_sites::deploy_notes::Note;
use domain::static_sites::limits::max_files;
use domain::static_sites::site_plan::ListedFile;
use futures::TryStreamExt;
use tokio::io::AsyncWriteExt;
use uuid::Uuid;
use web::Problem;

use super::Progress;
use super::site_state::SiteState;
use super::stored_files::{BuiltFile, built_file, failed_on_disk, store_files};
use super::unpack::{
    AnnouncedFiles, BuiltPage, FileLimits, SiteSources, Spool, UnpackError, UnpackOptions, UnpackedFile,
    UnpackedSite, unpack,
};
use crate::App;
use crate::call::Call;

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
    let Unstored { mut site, files, originals } =
        unpack_upload(app, call, upload, subdomain_id, progress).await?;
    let spool = Arc::clone(&site.spool);
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

/// As [`build`], but stores nothing, so that the site can only be compared.
pub(crate) async fn build_unstored<S>(
    app: &App,
    call: &Call<S>,
    upload: Upload,
    subdomain_id: Uuid,
    progress: &Progress,
) -> Result<BuiltSite, Problem> {
    let Unstored { mut site, files, .. } = unpack_upload(app, call, upload, subdomain_id, progress).await?;
    let now = app.clock.now();
    site.files = files.into_iter().map(|file| built_file(app, file, now).0).collect();
    Ok(site)
}

/// A site with unpacked files that are not stored yet.
struct Unstored {
    site: BuiltSite,
    files: Vec<UnpackedFile>,
    originals: Vec<UnpackedFile>,
}

async fn unpack_upload<S>(
    app: &App,
    call: &Call<S>,
    upload: Upload,
    subdomain_id: Uuid,
    progress: &Progress,
) -> Result<Unstored, Problem> {
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
    let site = BuiltSite {
        pages,
        spool: Arc::new(spool),
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
    Ok(Unstored { site, files, originals })
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
