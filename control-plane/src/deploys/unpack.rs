//! Unpacking a zip, which blocks: files go out as they are inflated, pages are rewritten at the end, when it is known
//! where everything is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use domain::addresses::Addresses;
use domain::deploys::links::{Linked, Links, Target, Use};
use domain::deploys::{CSS_BYTES_MAX, css, html, layout, paths};
use domain::{media, pages};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Progress;
use super::archive::{Archive, Wrong};
use super::documents::{Documents, Place};

/// So many paths that aren't there are told; nobody reads more.
const MISSING_MAX: usize = 1_000;
/// Longer ones can't be in any zip.
const PATH_BYTES_MAX: usize = 1_000;

/// Inflated bytes that wait to be stored, at most, in KiB. More than any plan's largest file.
const WAITING_KIB: usize = 64 << 10;

/// A file of the site, inflated.
#[derive(Debug)]
pub(crate) struct Inflated {
    pub(crate) path: String,
    pub(crate) sha256: [u8; 32],
    pub(crate) content_type: &'static str,
    pub(crate) by_content: bool,
    pub(crate) bytes: Bytes,
    /// Its share of what may wait.
    pub(crate) share: OwnedSemaphorePermit,
}

/// A page of the site.
#[derive(Debug)]
pub(crate) struct BuiltPage {
    pub(crate) slug: String,
    pub(crate) title: String,
    pub(crate) html: Place,
}

/// What is known once everything is unpacked.
#[derive(Debug)]
pub(crate) struct Unpacked {
    pub(crate) pages: Vec<BuiltPage>,
    pub(crate) documents: Documents,
    /// What was left out, and why.
    pub(crate) errors: Vec<String>,
    /// What pages and style sheets refer to and is not there.
    pub(crate) missing: BTreeSet<String>,
}

/// Why a zip could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    /// By its own fault.
    #[error(transparent)]
    Wrong(#[from] Wrong),
    /// By ours.
    #[error("unpacking: {0}")]
    Io(#[from] std::io::Error),
    /// Whoever was to store its files has given up.
    #[error("nobody takes the files")]
    Alone,
}

/// What is needed for it.
pub(crate) struct Unpacking {
    pub(crate) addresses: Addresses,
    /// Most bytes of a file; larger ones are left out.
    pub(crate) file_bytes_max: u64,
    pub(crate) progress: Progress,
    pub(crate) out: Sender<Inflated>,
    pub(crate) runtime: Handle,
}

/// Unpacks the site in a zip.
///
/// # Errors
/// [`Failed`].
pub(crate) fn unpack(zip: File, with: Unpacking) -> Result<Unpacked, Failed> {
    let archive = Archive::open(zip)?;
    let root = layout::root_of(archive.paths()).ok_or_else(|| no_pages(&archive))?;
    let below = archive.paths().filter_map(|path| path.strip_prefix(&root));
    let (documents, files): (Vec<String>, Vec<String>) =
        below.map(str::to_owned).partition(|path| paths::is_page(path));
    with.progress.expect(documents.len() + files.len());
    let unpacked = Unpacked {
        pages: Vec::new(),
        documents: Documents::new()?,
        errors: Vec::new(),
        missing: BTreeSet::new(),
    };
    let waiting = Arc::new(Semaphore::new(WAITING_KIB));
    let mut work = Work { archive, root, with, waiting, targets: BTreeMap::new(), unpacked };
    let slugs = work.slugs(documents);
    let (sheets, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|path| is_sheet(path));
    work.targets.extend(sheets.iter().map(|path| (path.clone(), Target::File(None))));
    for path in others {
        work.file(path)?;
    }
    let links = Links::new(std::mem::take(&mut work.targets));
    for path in sheets {
        work.sheet(path, &links)?;
    }
    for (path, slug) in slugs {
        work.page(&path, slug, &links)?;
    }
    Ok(work.unpacked)
}

fn is_sheet(path: &str) -> bool {
    media::by_name(path) == "text/css"
}

fn no_pages(archive: &Archive) -> Wrong {
    let zip = archive.paths().find(|path| path.to_ascii_lowercase().ends_with(".zip"));
    match zip {
        Some(zip) => Wrong::Entry(zip.to_owned(), "it is a zip itself; upload what is in it".to_owned()),
        None => Wrong::Whole("it has no HTML page".to_owned()),
    }
}

struct Work {
    archive: Archive,
    root: String,
    with: Unpacking,
    waiting: Arc<Semaphore>,
    targets: BTreeMap<String, Target>,
    unpacked: Unpacked,
}

impl Work {
    /// Which page has which slug; what can have none is told.
    fn slugs(&mut self, documents: Vec<String>) -> Vec<(String, String)> {
        let mut held: BTreeMap<String, String> = BTreeMap::new();
        let mut slugs = Vec::new();
        for path in documents {
            let slug = paths::slug_of(&path);
            let complaints = pages::check_slug(&slug);
            let why = match (complaints.first(), held.get(&slug)) {
                (Some(complaint), _) => format!("its slug would be `{slug}`: {}", complaint.message),
                (None, Some(other)) => format!("its slug `{slug}` is that of {other}"),
                (None, None) => {
                    held.insert(slug.clone(), path.clone());
                    self.targets.insert(path.clone(), Target::Page(slug.clone()));
                    slugs.push((path, slug));
                    continue;
                }
            };
            self.leave_out(&path, &why);
        }
        slugs
    }

    fn leave_out(&mut self, path: &str, why: &str) {
        self.unpacked.errors.push(format!("{path} was left out: {why}"));
        self.with.progress.one_done();
    }

    fn inflate(&mut self, path: &str, most: u64) -> Result<Option<Vec<u8>>, Failed> {
        Ok(self.archive.read(&format!("{}{path}", self.root), most)?)
    }

    fn file(&mut self, path: String) -> Result<(), Failed> {
        let Some(bytes) = self.inflate(&path, self.with.file_bytes_max)? else {
            self.too_large(&path);
            return Ok(());
        };
        let content_type = media::by_name(&path);
        let by_content = media::is_image_or_font(content_type);
        let sha256: [u8; 32] = Sha256::digest(&bytes).into();
        let address = by_content
            .then(|| self.with.addresses.asset_by_content(&hex::encode(sha256), paths::name_of(&path)));
        self.targets.insert(path.clone(), Target::File(address));
        self.send(path, bytes, sha256, by_content)
    }

    fn sheet(&mut self, path: String, links: &Links) -> Result<(), Failed> {
        let Some(mut bytes) = self.inflate(&path, self.with.file_bytes_max)? else {
            self.too_large(&path);
            return Ok(());
        };
        let base = Links::base(&path, None).unwrap_or_default();
        let mut missing = BTreeSet::new();
        let link = |reference: &str| match links.link(&base, reference, Use::Embedded) {
            Linked::AsItIs => None,
            Linked::To(to) => Some(to),
            Linked::Missing(to, path) => {
                missing.insert(path);
                Some(to)
            }
        };
        let text = std::str::from_utf8(&bytes).ok().filter(|text| text.len() <= CSS_BYTES_MAX);
        if let Some(written) = text.and_then(|text| css::rewrite(text, link)) {
            bytes = written.into_bytes();
        }
        self.tell_missing(missing);
        let sha256 = Sha256::digest(&bytes).into();
        self.send(path, bytes, sha256, false)
    }

    fn page(&mut self, path: &str, slug: String, links: &Links) -> Result<(), Failed> {
        let too_long = format!("a page may have at most {} KB", pages::MAX_HTML_BYTES >> 10);
        let Some(bytes) = self.inflate(path, pages::MAX_HTML_BYTES as u64)? else {
            self.leave_out(path, &too_long);
            return Ok(());
        };
        let written = match html::rewrite(path, &decode(&bytes), links) {
            Ok(written) => written,
            Err(error) => {
                self.leave_out(path, &error.to_string());
                return Ok(());
            }
        };
        let named = if written.title.is_empty() { &slug } else { &written.title };
        let title: String = named.chars().take(pages::TITLE_CHARS_MAX).collect();
        let check = pages::check_content(Some(&title), Some(&written.html), None, None);
        if let Some(complaint) = check.first() {
            self.leave_out(path, &complaint.message);
            return Ok(());
        }
        let html = self.unpacked.documents.push(&written.html)?;
        self.tell_missing(written.missing);
        self.unpacked.pages.push(BuiltPage { slug, title, html });
        self.with.progress.one_done();
        Ok(())
    }

    fn tell_missing(&mut self, paths: BTreeSet<String>) {
        let left = MISSING_MAX.saturating_sub(self.unpacked.missing.len());
        let told = paths.into_iter().filter(|path| path.len() <= PATH_BYTES_MAX);
        self.unpacked.missing.extend(told.take(left));
    }

    fn too_large(&mut self, path: &str) {
        let why = format!("the plan takes files of up to {} bytes", self.with.file_bytes_max);
        self.leave_out(path, &why);
    }

    fn send(&self, path: String, bytes: Vec<u8>, sha256: [u8; 32], by_content: bool) -> Result<(), Failed> {
        let share = u32::try_from((bytes.len() >> 10).clamp(1, WAITING_KIB)).unwrap_or(1);
        let share = Arc::clone(&self.waiting).acquire_many_owned(share);
        let share = self.with.runtime.block_on(share).map_err(|_| Failed::Alone)?;
        let content_type = media::by_name(&path);
        let file = Inflated { path, sha256, content_type, by_content, bytes: bytes.into(), share };
        self.with.out.blocking_send(file).map_err(|_| Failed::Alone)
    }
}

/// The text of a page: UTF-8, or what it says of itself within its first kilobyte.
fn decode(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.trim_start_matches('\u{feff}').to_owned();
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1_024)]).to_ascii_lowercase();
    let named = head.split_once("charset=").map(|(_, rest)| rest.trim_start_matches(['"', '\'']));
    let label =
        named.and_then(|rest| rest.split(|c: char| !(c.is_ascii_alphanumeric() || "-_:".contains(c))).next());
    let encoding = label.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    // What browsers take for a page that says nothing.
    encoding.unwrap_or(encoding_rs::WINDOWS_1252).decode(bytes).0.into_owned()
}
