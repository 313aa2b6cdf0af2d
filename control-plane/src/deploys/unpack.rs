//! Unpacks a zip into a [`Spool`]; this blocks its thread. HTML is rewritten last, when the addresses of all files are
//! known.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};

use domain::addresses::Addresses;
use domain::deploys::html::{self, RewriteError, Rewritten};
use domain::deploys::links::{Linked, Links, Target, Use};
use domain::deploys::{CSS_BYTES_MAX, css};
use domain::static_sites::deploy_notes::Note;
use domain::static_sites::page_slugs::{ExistingPages, PlannedPage};
use domain::static_sites::reasons::Reason;
use domain::static_sites::root::RootError;
use domain::static_sites::site_plan::{ListedFile, PlanOptions, SitePlan};
use domain::static_sites::site_rules::RulesFile;
use domain::static_sites::{SiteRules, headers, redirects, site_path};
use domain::{media, pages};
use sha2::{Digest, Sha256};

use super::Progress;
use super::archive::{Archive, ArchiveError};
use super::charset::decode;
use super::site_state::SiteState;
use super::spool::{Span, Spool};

/// Upper bound of reported missing paths.
const MAX_MISSING: usize = 1_000;

/// A file of the site other than a page.
#[derive(Debug)]
pub(crate) struct UnpackedFile {
    pub(crate) path: String,
    pub(crate) sha256: [u8; 32],
    pub(crate) content_type: &'static str,
    pub(crate) by_content: bool,
    /// Why it is HTML without a page.
    pub(crate) reason: Option<Reason>,
    pub(crate) bytes: Span,
}

/// A page of the site.
#[derive(Debug)]
pub(crate) struct BuiltPage {
    /// Path of its file in the site.
    pub(crate) path: String,
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
    pub(crate) rules: SiteRules,
    /// Files that are not served, and HTML without a page.
    pub(crate) listed: Vec<ListedFile>,
    pub(crate) notes: Vec<Note>,
    /// One message for each file that was left out because of an error.
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
    /// The named root is none.
    #[error(transparent)]
    Root(#[from] RootError),
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
    /// The root folder that the caller named.
    pub(crate) root: Option<String>,
    /// Whether addresses without a file answer with `index.html`.
    pub(crate) spa: bool,
    /// The site before the deploy.
    pub(crate) site: SiteState,
    /// Further files reject the zip.
    pub(crate) max_files: usize,
    /// Larger files are left out.
    pub(crate) max_file_bytes: u64,
    pub(crate) progress: Progress,
}

/// Unpacks the site in a zip.
pub(crate) fn unpack(zip: File, options: UnpackOptions) -> Result<UnpackedSite, UnpackError> {
    let archive = Archive::open(zip, options.max_files)?;
    let existing = ExistingPages { by_path: &options.site.by_path, slugs: &options.site.slugs };
    let plan_options = PlanOptions {
        root: options.root.as_deref(),
        max_file_bytes: options.max_file_bytes,
        existing,
        projects_left: options.site.projects_left,
    };
    let plan = SitePlan::new(&archive.files(), plan_options)?;
    if plan.has_no_html() {
        return Err(no_html(&archive).into());
    }
    options.progress.set_total(plan.served().count());
    let unpacked = UnpackedSite {
        pages: Vec::new(),
        files: Vec::new(),
        spool: Spool::new()?,
        rules: SiteRules::default(),
        listed: Vec::new(),
        notes: Vec::new(),
        errors: Vec::new(),
        missing: BTreeSet::new(),
    };
    let root = plan.root.clone();
    let mut unpacker =
        Unpacker { archive, root, options, stored_bytes: 0, targets: BTreeMap::new(), unpacked };
    unpacker.check_storage(&plan)?;
    unpacker.read_rules(&plan)?;
    unpacker.report(&plan);
    let (sheets, others): (Vec<_>, Vec<_>) = plan.files.into_iter().partition(|path| is_sheet(path));
    for path in others {
        unpacker.add_file(path)?;
    }
    let html = plan.pages.iter().map(|page| &page.path).chain(plan.html.iter().map(|file| &file.path));
    unpacker.targets.extend(html.chain(&sheets).map(|path| (path.clone(), Target::AtPath)));
    let mut links = Links::new(std::mem::take(&mut unpacker.targets));
    for path in sheets {
        unpacker.add_sheet(path, &mut links)?;
    }
    for page in plan.pages {
        unpacker.add_page(page, &links)?;
    }
    for file in plan.html {
        unpacker.add_html(file, &links)?;
    }
    Ok(unpacker.unpacked)
}

fn is_sheet(path: &str) -> bool {
    media::by_name(path) == "text/css"
}

fn no_html(archive: &Archive) -> ArchiveError {
    let files = archive.files();
    let zip = files.iter().find(|file| file.path.to_ascii_lowercase().ends_with(".zip"));
    match zip {
        Some(zip) => ArchiveError::InvalidEntry(
            zip.path.to_owned(),
            "it is a zip itself; upload its contents".to_owned(),
        ),
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
    /// Checks before the first file is stored that the plan has room for all of them.
    fn check_storage(&self, plan: &SitePlan) -> Result<(), UnpackError> {
        let mut bytes = 0;
        for path in plan.files.iter().chain(plan.html.iter().map(|file| &file.path)) {
            bytes += self.archive.size_bytes(&self.in_zip(path))?;
        }
        if bytes > self.options.site.max_stored_bytes {
            Err(UnpackError::StorageExceeded(bytes))
        } else {
            Ok(())
        }
    }

    fn in_zip(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// Parses `_redirects` and `_headers`.
    fn read_rules(&mut self, plan: &SitePlan) -> Result<(), UnpackError> {
        let files = [self.rules_file(redirects::FILE)?, self.rules_file(headers::FILE)?];
        let served: BTreeSet<&str> = plan.served().collect();
        let exists = |path: &str| served.contains(path);
        let (rules, notes) = SiteRules::parse(&files[0], &files[1], self.options.spa, exists);
        self.unpacked.rules = rules;
        self.unpacked.notes = [plan.notes.clone(), notes].concat();
        Ok(())
    }

    fn rules_file(&mut self, name: &str) -> Result<RulesFile, UnpackError> {
        let path = self.in_zip(name);
        if !self.archive.contains(&path) {
            return Ok(RulesFile::Missing);
        }
        Ok(match self.archive.read(&path, redirects::FILE_BYTES_MAX as u64)? {
            Some(bytes) => RulesFile::Bytes(bytes),
            None => RulesFile::TooLarge(self.archive.size_bytes(&path)?),
        })
    }

    /// Lists the files that are left out.
    fn report(&mut self, plan: &SitePlan) {
        let max_bytes = self.options.max_file_bytes;
        let too_large = plan.left_out.iter().filter(|file| file.reason == Reason::AssetSizeLimit);
        self.unpacked.errors.extend(too_large.map(|file| {
            format!("{} was left out: the plan allows files of up to {max_bytes} bytes", file.path)
        }));
        self.unpacked.listed.extend(plan.left_out.iter().cloned());
    }

    fn add_file(&mut self, path: String) -> Result<(), UnpackError> {
        let (sha256, bytes) = self.inflate(&path)?;
        let by_content = media::is_image_or_font(media::by_name(&path));
        let target = if by_content {
            let name = site_path::name_of(&path);
            Target::ByContent(self.options.addresses.asset_by_content(&hex::encode(sha256), name))
        } else {
            Target::AtPath
        };
        self.targets.insert(path.clone(), target);
        self.push(path, sha256, bytes, by_content, None)
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

    fn add_sheet(&mut self, path: String, links: &mut Links) -> Result<(), UnpackError> {
        let Some(mut bytes) = self.archive.read(&self.in_zip(&path), CSS_BYTES_MAX as u64)? else {
            let (sha256, bytes) = self.inflate(&path)?;
            return self.push(path, sha256, bytes, false, None);
        };
        let base = Links::base(&path, None).unwrap_or_default();
        let mut missing = BTreeSet::new();
        let link = |reference: &str| match links.link(&base, reference, Use::Embedded) {
            Linked::Unchanged => None,
            Linked::Replaced(to) => Some(to),
            Linked::Missing(path) => {
                if missing.len() < MAX_MISSING {
                    missing.insert(path);
                }
                None
            }
        };
        let max_bytes = CSS_BYTES_MAX.min(usize::try_from(self.options.max_file_bytes).unwrap_or(usize::MAX));
        let text = std::str::from_utf8(&bytes).ok();
        // A sheet that would become too large is served unchanged: its references work by path too.
        let rewritten = text.and_then(|text| css::rewrite(text, max_bytes, link).ok()).flatten();
        self.report_missing(missing);
        if let Some(rewritten) = rewritten {
            links.set_rewritten(&path, &rewritten);
            bytes = rewritten.into_bytes();
        }
        self.push_bytes(path, &bytes, None)
    }

    fn add_page(&mut self, page: PlannedPage, links: &Links) -> Result<(), UnpackError> {
        let PlannedPage { path, slug } = page;
        let Rewritten { html, title, missing } = match self.rewrite(&path, links)? {
            Ok(rewritten) => rewritten,
            Err(reason) => return self.add_unchanged_html(ListedFile { path, reason }),
        };
        let title = if title.is_empty() { &slug } else { &title };
        let title: String = title.chars().take(pages::TITLE_CHARS_MAX).collect();
        let html = self.unpacked.spool.push(html.as_bytes())?;
        self.report_missing(missing);
        self.unpacked.pages.push(BuiltPage { path, slug, title, html });
        self.options.progress.file_done();
        Ok(())
    }

    /// Adds HTML without a page, with the same bytes as if it had one.
    fn add_html(&mut self, file: ListedFile, links: &Links) -> Result<(), UnpackError> {
        if file.reason == Reason::TooLarge {
            return self.add_unchanged_html(file);
        }
        match self.rewrite(&file.path, links)? {
            Ok(Rewritten { html, missing, .. }) => {
                self.report_missing(missing);
                self.unpacked.listed.push(file.clone());
                self.push_bytes(file.path, html.as_bytes(), Some(file.reason))
            }
            Err(reason) => self.add_unchanged_html(ListedFile { reason, ..file }),
        }
    }

    fn add_unchanged_html(&mut self, file: ListedFile) -> Result<(), UnpackError> {
        let (sha256, bytes) = self.inflate(&file.path)?;
        self.unpacked.listed.push(file.clone());
        self.push(file.path, sha256, bytes, false, Some(file.reason))
    }

    /// Returns the rewritten document, or why it can be no page.
    fn rewrite(&mut self, path: &str, links: &Links) -> Result<Result<Rewritten, Reason>, UnpackError> {
        let Some(bytes) = self.archive.read(&self.in_zip(path), pages::MAX_HTML_BYTES as u64)? else {
            return Ok(Err(Reason::TooLarge));
        };
        Ok(match html::rewrite(path, &decode(&bytes), links) {
            // The database stores no NUL in a text.
            Ok(Rewritten { html, title, .. }) if html.contains('\0') || title.contains('\0') => {
                Err(Reason::Unsupported)
            }
            Ok(rewritten) => Ok(rewritten),
            Err(RewriteError::TooLarge) => Err(Reason::TooLarge),
            Err(RewriteError::Unreadable(_)) => Err(Reason::Unsupported),
        })
    }

    fn report_missing(&mut self, paths: BTreeSet<String>) {
        let remaining = MAX_MISSING.saturating_sub(self.unpacked.missing.len());
        self.unpacked.missing.extend(paths.into_iter().take(remaining));
    }

    fn push_bytes(&mut self, path: String, bytes: &[u8], reason: Option<Reason>) -> Result<(), UnpackError> {
        let sha256 = Sha256::digest(bytes).into();
        let bytes = self.unpacked.spool.push(bytes)?;
        self.push(path, sha256, bytes, false, reason)
    }

    fn push(
        &mut self,
        path: String,
        sha256: [u8; 32],
        bytes: Span,
        by_content: bool,
        reason: Option<Reason>,
    ) -> Result<(), UnpackError> {
        self.stored_bytes += bytes.bytes;
        // Files with rewritten references are larger than in the zip.
        if self.stored_bytes > self.options.site.max_stored_bytes {
            return Err(UnpackError::StorageExceeded(self.stored_bytes));
        }
        let content_type = media::by_name(&path);
        self.unpacked.files.push(UnpackedFile { path, sha256, content_type, by_content, reason, bytes });
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
