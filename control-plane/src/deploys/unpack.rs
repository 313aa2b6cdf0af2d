//! Unpacks a zip into a [`Spool`]; this blocks its thread. Pages are rewritten last, when the addresses of all files are
//! known.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};

use domain::addresses::Addresses;
use domain::deploys::links::{Linked, Links, Target, Use};
use domain::deploys::{CSS_BYTES_MAX, css, html, layout, paths};
use domain::{media, pages};
use sha2::{Digest, Sha256};

use super::Progress;
use super::archive::{Archive, ArchiveError};
use super::spool::{Span, Spool};

/// Upper bound of reported missing paths.
const MAX_MISSING: usize = 1_000;
/// Upper bound of a reported path; no zip entry can have a longer one.
const MAX_PATH_BYTES: usize = 1_000;

/// A file of the site other than a page.
#[derive(Debug)]
pub(crate) struct UnpackedFile {
    pub(crate) path: String,
    pub(crate) sha256: [u8; 32],
    pub(crate) content_type: &'static str,
    pub(crate) by_content: bool,
    pub(crate) bytes: Span,
}

/// A page of the site.
#[derive(Debug)]
pub(crate) struct BuiltPage {
    pub(crate) slug: String,
    pub(crate) title: String,
    pub(crate) html: Span,
}

/// The result of unpacking.
#[derive(Debug)]
pub(crate) struct UnpackedSite {
    pub(crate) pages: Vec<BuiltPage>,
    pub(crate) files: Vec<UnpackedFile>,
    /// The contents of pages and files.
    pub(crate) spool: Spool,
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
    Archive(ArchiveError),
    /// The files to store have more bytes than the plan has left: this many.
    #[error("the files have {0} bytes, more than the plan has left")]
    StorageExceeded(u64),
    /// The disk failed.
    #[error("unpacking: {0}")]
    Io(#[from] io::Error),
}

impl From<ArchiveError> for UnpackError {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Disk(error) => Self::Io(error),
            error => Self::Archive(error),
        }
    }
}

/// The inputs of [`unpack`].
pub(crate) struct UnpackOptions {
    pub(crate) addresses: Addresses,
    /// Larger files are left out.
    pub(crate) max_file_bytes: u64,
    /// What the plan has left for all files.
    pub(crate) max_stored_bytes: u64,
    pub(crate) progress: Progress,
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
        files: Vec::new(),
        spool: Spool::new()?,
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
        unpacker.add_file(path)?;
    }
    let links = Links::new(std::mem::take(&mut unpacker.targets));
    for path in sheets {
        unpacker.add_sheet(path, &links)?;
    }
    for (path, slug) in slugs {
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
    /// Bytes of the files to store so far.
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

    /// Returns whether the plan allows the size of a file, which is left out otherwise.
    fn is_allowed(&mut self, path: &str) -> Result<bool, UnpackError> {
        let max_bytes = self.options.max_file_bytes;
        let is_allowed = self.archive.size_bytes(&self.in_zip(path))? <= max_bytes;
        if !is_allowed {
            self.leave_out(path, &format!("the plan allows files of up to {max_bytes} bytes"));
        }
        Ok(is_allowed)
    }

    fn add_file(&mut self, path: String) -> Result<(), UnpackError> {
        if !self.is_allowed(&path)? {
            return Ok(());
        }
        let (sha256, bytes) = self.inflate(&path)?;
        let by_content = media::is_image_or_font(media::by_name(&path));
        let address = by_content
            .then(|| self.options.addresses.asset_by_content(&hex::encode(sha256), paths::name_of(&path)));
        self.targets.insert(path.clone(), Target::File(address));
        self.push(path, sha256, by_content, bytes)
    }

    /// Inflates a file into the spool. Returns its digest.
    fn inflate(&mut self, path: &str) -> Result<([u8; 32], Span), UnpackError> {
        let (in_zip, spool) = (self.in_zip(path), &mut self.unpacked.spool);
        let from = spool.size();
        let mut output = Digesting { sha256: Sha256::new(), output: spool };
        self.archive.copy(&in_zip, &mut output)?;
        let sha256 = output.sha256.finalize().into();
        Ok((sha256, self.unpacked.spool.span_from(from)))
    }

    fn add_sheet(&mut self, path: String, links: &Links) -> Result<(), UnpackError> {
        if !self.is_allowed(&path)? {
            return Ok(());
        }
        let Some(mut bytes) = self.archive.read(&self.in_zip(&path), CSS_BYTES_MAX as u64)? else {
            let (sha256, bytes) = self.inflate(&path)?;
            return self.push(path, sha256, false, bytes);
        };
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
        // A sheet that would become too large is served unchanged: its references work by path too.
        let text = std::str::from_utf8(&bytes).ok();
        if let Some(Ok(Some(rewritten))) = text.map(|text| css::rewrite(text, max_bytes, link)) {
            bytes = rewritten.into_bytes();
            self.report_missing(missing);
        }
        let sha256 = Sha256::digest(&bytes).into();
        let bytes = self.unpacked.spool.push(&bytes)?;
        self.push(path, sha256, false, bytes)
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
        let html = self.unpacked.spool.push(rewritten.html.as_bytes())?;
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

    fn push(
        &mut self,
        path: String,
        sha256: [u8; 32],
        by_content: bool,
        bytes: Span,
    ) -> Result<(), UnpackError> {
        self.stored_bytes += bytes.bytes;
        // Rewritten style sheets are larger than in the zip.
        if self.stored_bytes > self.options.max_stored_bytes {
            return Err(UnpackError::StorageExceeded(self.stored_bytes));
        }
        let content_type = media::by_name(&path);
        self.unpacked.files.push(UnpackedFile { path, sha256, content_type, by_content, bytes });
        Ok(())
    }
}

/// Digests bytes as they are written.
struct Digesting<W> {
    sha256: Sha256,
    output: W,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.sha256.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
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
