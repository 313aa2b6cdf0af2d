//! Unpacks a zip; this blocks its thread. Files are sent out as they are inflated. Pages are rewritten last, when the
//! addresses of all files are known.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use bytes::Bytes;
use domain::addresses::Addresses;
use domain::deploys::links::{Linked, Links, Target, Use};
use domain::deploys::{CSS_BYTES_MAX, css, html, layout, paths};
use domain::{media, pages};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;

use super::Progress;
use super::admission::InflatedMemory;
use super::archive::{Archive, ArchiveError};
use super::documents::{Documents, Span};

/// Upper bound of reported missing paths.
const MAX_MISSING: usize = 1_000;
/// Upper bound of a reported path; no zip entry can have a longer one.
const MAX_PATH_BYTES: usize = 1_000;

/// An inflated file of the site.
#[derive(Debug)]
pub(crate) struct InflatedFile {
    pub(crate) path: String,
    pub(crate) sha256: [u8; 32],
    pub(crate) content_type: &'static str,
    pub(crate) by_content: bool,
    pub(crate) bytes: Bytes,
    /// The file's share of the bound on inflated bytes.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// A page of the site.
#[derive(Debug)]
pub(crate) struct BuiltPage {
    pub(crate) slug: String,
    pub(crate) title: String,
    pub(crate) html: Span,
}

/// The result of unpacking, apart from the files already sent.
#[derive(Debug)]
pub(crate) struct UnpackedSite {
    pub(crate) pages: Vec<BuiltPage>,
    pub(crate) documents: Documents,
    /// One message for each file that was left out.
    pub(crate) errors: Vec<String>,
    /// Paths that pages and style sheets reference and the zip lacks.
    pub(crate) missing: BTreeSet<String>,
}

/// The reason why unpacking failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    /// The zip is invalid.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The files to store have more bytes than the plan has left: this many.
    #[error("the files have {0} bytes, more than the plan has left")]
    StorageExceeded(u64),
    /// The disk failed.
    #[error("unpacking: {0}")]
    Io(#[from] std::io::Error),
    /// The task that stores the files has stopped.
    #[error("the receiver of the files is gone")]
    ReceiverGone,
}

/// The inputs of [`unpack`].
pub(crate) struct UnpackOptions {
    pub(crate) addresses: Addresses,
    /// Larger files are left out.
    pub(crate) max_file_bytes: u64,
    /// What the plan has left for all files.
    pub(crate) max_stored_bytes: u64,
    /// Bounds the inflated bytes of all zips.
    pub(crate) memory: InflatedMemory,
    pub(crate) progress: Progress,
    pub(crate) output: Sender<InflatedFile>,
    pub(crate) runtime: Handle,
}

/// Unpacks the site in a zip.
pub(crate) fn unpack(zip: File, options: UnpackOptions) -> Result<UnpackedSite, UnpackError> {
    let archive = Archive::open(zip)?;
    let root = layout::root_of(archive.paths()).ok_or_else(|| no_pages(&archive))?;
    let below = archive.paths().filter_map(|path| path.strip_prefix(&root));
    let (documents, files): (Vec<String>, Vec<String>) =
        below.map(str::to_owned).partition(|path| paths::is_page(path));
    options.progress.set_total(documents.len() + files.len());
    let unpacked = UnpackedSite {
        pages: Vec::new(),
        documents: Documents::new()?,
        errors: Vec::new(),
        missing: BTreeSet::new(),
    };
    let mut unpacker =
        Unpacker { archive, root, options, stored_bytes: 0, targets: BTreeMap::new(), unpacked };
    unpacker.check_storage(&files)?;
    let slugs = unpacker.assign_slugs(documents);
    let (sheets, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|path| is_sheet(path));
    unpacker.targets.extend(sheets.iter().map(|path| (path.clone(), Target::File(None))));
    for path in others {
        unpacker.send_file(path)?;
    }
    let links = Links::new(std::mem::take(&mut unpacker.targets));
    for path in sheets {
        unpacker.send_sheet(path, &links)?;
    }
    for (path, slug) in slugs {
        if unpacker.options.output.is_closed() {
            return Err(UnpackError::ReceiverGone);
        }
        unpacker.add_page(&path, slug, &links)?;
    }
    Ok(unpacker.unpacked)
}

fn is_sheet(path: &str) -> bool {
    media::by_name(path) == "text/css"
}

fn no_pages(archive: &Archive) -> ArchiveError {
    let zip = archive.paths().find(|path| path.to_ascii_lowercase().ends_with(".zip"));
    match zip {
        Some(zip) => {
            ArchiveError::InvalidEntry(zip.to_owned(), "it is a zip itself; upload its contents".to_owned())
        }
        None => ArchiveError::Unreadable("it has no HTML page".to_owned()),
    }
}

struct Unpacker {
    archive: Archive,
    root: String,
    options: UnpackOptions,
    /// Bytes of the files sent so far.
    stored_bytes: u64,
    targets: BTreeMap<String, Target>,
    unpacked: UnpackedSite,
}

impl Unpacker {
    /// Assigns each page its slug and leaves out pages without a valid one.
    fn assign_slugs(&mut self, documents: Vec<String>) -> Vec<(String, String)> {
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        let mut slugs = Vec::new();
        for path in documents {
            let slug = paths::slug_of(&path);
            let errors = pages::check_slug(&slug);
            let reason = match (errors.first(), taken.get(&slug)) {
                (Some(error), _) => format!("its slug would be `{slug}`: {}", error.message),
                (None, Some(other)) => format!("{other} has the same slug `{slug}`"),
                (None, None) => {
                    taken.insert(slug.clone(), path.clone());
                    self.targets.insert(path.clone(), Target::Page(slug.clone()));
                    slugs.push((path, slug));
                    continue;
                }
            };
            self.leave_out(&path, &reason);
        }
        slugs
    }

    fn leave_out(&mut self, path: &str, reason: &str) {
        self.unpacked.errors.push(format!("{path} was left out: {reason}"));
        self.options.progress.file_done();
    }

    /// Checks before the first file is stored that the plan has room for all of them.
    fn check_storage(&self, files: &[String]) -> Result<(), UnpackError> {
        let mut bytes = 0;
        for path in files {
            let size_bytes = self.archive.size_bytes(&self.in_zip(path))?;
            if size_bytes <= self.options.max_file_bytes {
                bytes += size_bytes;
            }
        }
        if bytes > self.options.max_stored_bytes { Err(UnpackError::StorageExceeded(bytes)) } else { Ok(()) }
    }

    fn in_zip(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// Inflates a file to store, after waiting for memory; `None` if the plan does not allow its size.
    fn inflate(&mut self, path: &str) -> Result<Option<(Vec<u8>, OwnedSemaphorePermit)>, UnpackError> {
        let (in_zip, max_bytes) = (self.in_zip(path), self.options.max_file_bytes);
        let size_bytes = self.archive.size_bytes(&in_zip)?;
        if size_bytes > max_bytes {
            self.leave_out(path, &format!("the plan allows files of up to {max_bytes} bytes"));
            return Ok(None);
        }
        let permit = self.options.runtime.block_on(self.options.memory.acquire(size_bytes));
        let permit = permit.ok_or(UnpackError::ReceiverGone)?;
        Ok(self.archive.read(&in_zip, max_bytes)?.map(|bytes| (bytes, permit)))
    }

    fn send_file(&mut self, path: String) -> Result<(), UnpackError> {
        let Some((bytes, permit)) = self.inflate(&path)? else { return Ok(()) };
        let by_content = media::is_image_or_font(media::by_name(&path));
        let sha256: [u8; 32] = Sha256::digest(&bytes).into();
        let address = by_content
            .then(|| self.options.addresses.asset_by_content(&hex::encode(sha256), paths::name_of(&path)));
        self.targets.insert(path.clone(), Target::File(address));
        self.send(path, bytes, sha256, by_content, permit)
    }

    fn send_sheet(&mut self, path: String, links: &Links) -> Result<(), UnpackError> {
        let Some((mut bytes, permit)) = self.inflate(&path)? else { return Ok(()) };
        let base = Links::base(&path, None).unwrap_or_default();
        let mut missing = BTreeSet::new();
        let link = |reference: &str| match links.link(&base, reference, Use::Embedded) {
            Linked::Unchanged => None,
            Linked::Replaced(to) => Some(to),
            Linked::Missing(to, path) => {
                missing.insert(path);
                Some(to)
            }
        };
        let max_bytes = CSS_BYTES_MAX.min(usize::try_from(self.options.max_file_bytes).unwrap_or(usize::MAX));
        let text = std::str::from_utf8(&bytes).ok().filter(|text| text.len() <= CSS_BYTES_MAX);
        // A sheet that would become too large is served unchanged: its references work by path too.
        if let Some(Ok(Some(rewritten))) = text.map(|text| css::rewrite(text, max_bytes, link)) {
            bytes = rewritten.into_bytes();
            self.report_missing(missing);
        }
        let sha256 = Sha256::digest(&bytes).into();
        self.send(path, bytes, sha256, false, permit)
    }

    fn add_page(&mut self, path: &str, slug: String, links: &Links) -> Result<(), UnpackError> {
        let Some(bytes) = self.archive.read(&self.in_zip(path), pages::MAX_HTML_BYTES as u64)? else {
            self.leave_out(path, &format!("a page may have at most {} KB", pages::MAX_HTML_BYTES >> 10));
            return Ok(());
        };
        let rewritten = match html::rewrite(path, &decode(&bytes), links) {
            Ok(rewritten) => rewritten,
            Err(error) => {
                self.leave_out(path, &error.to_string());
                return Ok(());
            }
        };
        let title = if rewritten.title.is_empty() { &slug } else { &rewritten.title };
        let title: String = title.chars().take(pages::TITLE_CHARS_MAX).collect();
        let errors = pages::check_content(Some(&title), Some(&rewritten.html), None, None);
        if let Some(error) = errors.first() {
            self.leave_out(path, &error.message);
            return Ok(());
        }
        let html = self.unpacked.documents.push(&rewritten.html)?;
        self.report_missing(rewritten.missing);
        self.unpacked.pages.push(BuiltPage { slug, title, html });
        self.options.progress.file_done();
        Ok(())
    }

    fn report_missing(&mut self, paths: BTreeSet<String>) {
        let remaining = MAX_MISSING.saturating_sub(self.unpacked.missing.len());
        let reported = paths.into_iter().filter(|path| path.len() <= MAX_PATH_BYTES);
        self.unpacked.missing.extend(reported.take(remaining));
    }

    fn send(
        &mut self,
        path: String,
        bytes: Vec<u8>,
        sha256: [u8; 32],
        by_content: bool,
        permit: OwnedSemaphorePermit,
    ) -> Result<(), UnpackError> {
        self.stored_bytes += bytes.len() as u64;
        // Rewritten style sheets are larger than in the zip.
        if self.stored_bytes > self.options.max_stored_bytes {
            return Err(UnpackError::StorageExceeded(self.stored_bytes));
        }
        let content_type = media::by_name(&path);
        let file = InflatedFile { path, sha256, content_type, by_content, bytes: bytes.into(), permit };
        self.options.output.blocking_send(file).map_err(|_| UnpackError::ReceiverGone)
    }
}

/// Decodes a page as UTF-8, or else in the charset it declares within its first kilobyte.
fn decode(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.trim_start_matches('\u{feff}').to_owned();
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1_024)]).to_ascii_lowercase();
    let declared = head.split_once("charset=").map(|(_, rest)| rest.trim_start_matches(['"', '\'']));
    let label = declared
        .and_then(|rest| rest.split(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c))).next());
    let encoding = label.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    // The default of browsers for a page without a declared charset.
    encoding.unwrap_or(encoding_rs::WINDOWS_1252).decode(bytes).0.into_owned()
}
