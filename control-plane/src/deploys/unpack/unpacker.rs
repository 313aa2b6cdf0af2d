//! Unpacks the files of a site into a [`Spool`]; this blocks its thread. HTML is rewritten last, when the addresses of all
//! files are known.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use domain::addresses::Addresses;
use domain::deploys::CSS_BYTES_MAX;
use domain::deploys::html::Rewritten;
use domain::deploys::links::{Links, Target};
use domain::deploys::manifest::is_style_sheet;
use domain::static_sites::deploy_notes::Note;
use domain::static_sites::hashed_names::content_hashed;
use domain::static_sites::page_slugs::{ExistingPages, PlannedPage};
use domain::static_sites::reasons::Reason;
use domain::static_sites::root::RootError;
use domain::static_sites::site_plan::{ListedFile, PlanOptions, SitePlan};
use domain::static_sites::site_rules::RulesFile;
use domain::static_sites::{SiteRules, headers, redirects, site_path};
use domain::{media, pages, units};
use sha2::{Digest, Sha256};

use super::archive::ArchiveError;
use super::rewrite::{MAX_MISSING, RewrittenSheet, rewrite_html, rewrite_sheet};
use super::site_files::{Contents, FileLimits, SiteFiles, SiteSources};
use super::spool::{Span, Spool};
use crate::deploys::Progress;
use crate::deploys::site_state::SiteState;

/// A file of the site other than a page.
#[derive(Debug)]
pub(crate) struct UnpackedFile {
    pub(crate) path: String,
    pub(crate) sha256: [u8; 32],
    pub(crate) content_type: &'static str,
    pub(crate) by_content: bool,
    /// Why it is HTML without a page.
    pub(crate) reason: Option<Reason>,
    /// Its title, if it is HTML of a preview.
    pub(crate) title: Option<String>,
    pub(crate) contents: Contents,
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
    /// Announced files that are served in another form, by their paths from the zip's top. They are not served as they are.
    pub(crate) originals: Vec<UnpackedFile>,
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
    /// Whether the HTML of pages is stored like other files, with their titles.
    pub(crate) is_preview: bool,
    /// The site before the deploy.
    pub(crate) site: SiteState,
    pub(crate) limits: FileLimits,
    pub(crate) progress: Progress,
}

/// Unpacks the site of a zip, of announced files, or of both.
pub(crate) fn unpack(sources: SiteSources, options: UnpackOptions) -> Result<UnpackedSite, UnpackError> {
    let files = SiteFiles::open(sources, options.limits)?;
    let existing = ExistingPages { by_path: &options.site.by_path, slugs: &options.site.slugs };
    let plan_options = PlanOptions {
        root: options.root.as_deref(),
        max_file_bytes: options.limits.max_file_bytes,
        existing,
        projects_left: options.site.projects_left,
    };
    let plan = SitePlan::new(&files.list(), plan_options)?;
    if plan.has_no_html() {
        return Err(no_html(&files).into());
    }
    options.progress.set_total(plan.served().count());
    let unpacked = UnpackedSite {
        pages: Vec::new(),
        files: Vec::new(),
        originals: Vec::new(),
        spool: Spool::new()?,
        rules: SiteRules::default(),
        listed: Vec::new(),
        notes: Vec::new(),
        errors: Vec::new(),
        missing: BTreeSet::new(),
    };
    let root = plan.root.clone();
    let hashed = content_hashed(plan.served()).into_iter().map(str::to_owned).collect();
    let mut unpacker =
        Unpacker { files, root, options, stored_bytes: 0, hashed, targets: BTreeMap::new(), unpacked };
    unpacker.check_storage(&plan)?;
    unpacker.read_rules(&plan)?;
    unpacker.report(&plan);
    let (sheets, others): (Vec<_>, Vec<_>) = plan.files.into_iter().partition(|path| is_style_sheet(path));
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

fn no_html(files: &SiteFiles) -> ArchiveError {
    let files = files.list();
    let zip = files.iter().find(|file| file.path.to_ascii_lowercase().ends_with(".zip"));
    zip.map_or(ArchiveError::NoHtml, |zip| {
        ArchiveError::entry(zip.path, "it is a zip itself; upload its contents")
    })
}

/// Returns the title of a page: that of its document, or its slug.
pub(crate) fn page_title(title: &str, slug: &str) -> String {
    let title = if title.is_empty() { slug } else { title };
    title.chars().take(pages::TITLE_CHARS_MAX).collect()
}

struct Unpacker {
    files: SiteFiles,
    root: String,
    options: UnpackOptions,
    /// Bytes of the files to store so far.
    stored_bytes: u64,
    /// Paths with a content hash.
    hashed: BTreeSet<String>,
    targets: BTreeMap<String, Target>,
    unpacked: UnpackedSite,
}

impl Unpacker {
    /// Checks before the first file is stored that the plan has room for all of them.
    fn check_storage(&self, plan: &SitePlan) -> Result<(), UnpackError> {
        let mut bytes = 0;
        let pages = plan.pages.iter().filter(|_| self.options.is_preview).map(|page| &page.path);
        let html = plan.html.iter().map(|file| &file.path);
        for path in plan.files.iter().chain(html).chain(pages) {
            bytes += self.files.size_bytes(&self.in_zip(path))?;
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
        if !self.files.contains(&path) {
            return Ok(RulesFile::Missing);
        }
        Ok(match self.files.read(&path, redirects::FILE_BYTES_MAX as u64)? {
            Some(bytes) => {
                self.retain(name, &bytes)?;
                RulesFile::Bytes(bytes)
            }
            None => RulesFile::TooLarge(self.files.size_bytes(&path)?),
        })
    }

    /// Lists the files that are left out.
    fn report(&mut self, plan: &SitePlan) {
        let max_bytes = self.options.limits.max_file_bytes;
        let too_large = plan.left_out.iter().filter(|file| file.reason == Reason::AssetSizeLimit);
        self.unpacked.errors.extend(too_large.map(|file| {
            format!("{} was left out: the plan allows files of up to {}", file.path, units::size(max_bytes))
        }));
        self.unpacked.listed.extend(plan.left_out.iter().cloned());
    }

    fn add_file(&mut self, path: String) -> Result<(), UnpackError> {
        let (sha256, contents) = self.copy(&path)?;
        let by_content = media::is_image_or_font(media::by_name(&path));
        // Browsers keep a file with a hash in its name anyway. By its own path, scripts and documents load it once.
        let target = if by_content && !self.hashed.contains(&path) {
            let name = site_path::name_of(&path);
            Target::ByContent(self.options.addresses.asset_by_content(&hex::encode(sha256), name))
        } else {
            Target::AtPath
        };
        self.targets.insert(path.clone(), target);
        self.push(path, sha256, contents, by_content, None)
    }

    /// Returns digest and contents of a file that is served unchanged.
    fn copy(&mut self, path: &str) -> Result<([u8; 32], Contents), UnpackError> {
        let in_zip = self.in_zip(path);
        Ok(self.files.copy(&in_zip, &mut self.unpacked.spool)?)
    }

    /// Retains the bytes of an announced file that is served in another form, for the next deploy that announces it.
    fn retain(&mut self, path: &str, bytes: &[u8]) -> Result<(), UnpackError> {
        let path = self.in_zip(path);
        if let Some((sha256, contents)) = self.files.original(&path, bytes, &mut self.unpacked.spool)? {
            let (content_type, by_content) = (media::by_name(&path), false);
            let (reason, title) = (None, None);
            let original = UnpackedFile { path, sha256, content_type, by_content, reason, title, contents };
            self.unpacked.originals.push(original);
        }
        Ok(())
    }

    fn add_sheet(&mut self, path: String, links: &mut Links) -> Result<(), UnpackError> {
        let Some(bytes) = self.files.read(&self.in_zip(&path), CSS_BYTES_MAX as u64)? else {
            let (sha256, contents) = self.copy(&path)?;
            return self.push(path, sha256, contents, false, None);
        };
        let max_bytes = self.options.limits.max_file_bytes;
        let RewrittenSheet { text, missing } = rewrite_sheet(&path, &bytes, links, max_bytes);
        self.report_missing(missing);
        match text {
            Some(text) => {
                self.retain(&path, &bytes)?;
                links.set_rewritten(&path, &text);
                self.push_bytes(path, text.as_bytes(), None)
            }
            None => {
                let in_zip = self.in_zip(&path);
                match self.files.original(&in_zip, &bytes, &mut self.unpacked.spool)? {
                    Some((sha256, contents)) => self.push(path, sha256, contents, false, None),
                    None => self.push_bytes(path, &bytes, None),
                }
            }
        }
    }

    fn add_page(&mut self, page: PlannedPage, links: &Links) -> Result<(), UnpackError> {
        let PlannedPage { path, slug } = page;
        let Some(bytes) = self.read_html(&path)? else {
            return self.add_unchanged_html(ListedFile { path, reason: Reason::TooLarge });
        };
        let Rewritten { html, title, missing } = match rewrite_html(&path, &bytes, links) {
            Ok(rewritten) => rewritten,
            Err(reason) => return self.add_unchanged_html(ListedFile { path, reason }),
        };
        self.retain(&path, &bytes)?;
        self.report_missing(missing);
        if self.options.is_preview {
            return self.push_html(path, &html, &title, None);
        }
        let title = page_title(&title, &slug);
        let html = self.unpacked.spool.push(html.as_bytes())?;
        self.unpacked.pages.push(BuiltPage { path, slug, title, html });
        self.options.progress.file_done();
        Ok(())
    }

    /// Adds HTML without a page, with the same bytes as if it had one.
    fn add_html(&mut self, file: ListedFile, links: &Links) -> Result<(), UnpackError> {
        let bytes = if file.reason == Reason::TooLarge { None } else { self.read_html(&file.path)? };
        let Some(bytes) = bytes else {
            return self.add_unchanged_html(ListedFile { reason: Reason::TooLarge, ..file });
        };
        match rewrite_html(&file.path, &bytes, links) {
            Ok(Rewritten { html, title, missing }) => {
                if self.options.is_preview || html.as_bytes() != bytes {
                    self.retain(&file.path, &bytes)?;
                }
                self.report_missing(missing);
                self.unpacked.listed.push(file.clone());
                self.push_html(file.path, &html, &title, Some(file.reason))
            }
            Err(reason) => self.add_unchanged_html(ListedFile { reason, ..file }),
        }
    }

    fn add_unchanged_html(&mut self, file: ListedFile) -> Result<(), UnpackError> {
        let (sha256, contents) = self.copy(&file.path)?;
        self.unpacked.listed.push(file.clone());
        self.push(file.path, sha256, contents, false, Some(file.reason))
    }

    /// Returns the bytes of a document, or `None` if it is too large for a page.
    fn read_html(&mut self, path: &str) -> Result<Option<Vec<u8>>, UnpackError> {
        Ok(self.files.read(&self.in_zip(path), pages::MAX_HTML_BYTES as u64)?)
    }

    fn report_missing(&mut self, paths: BTreeSet<String>) {
        let remaining = MAX_MISSING.saturating_sub(self.unpacked.missing.len());
        self.unpacked.missing.extend(paths.into_iter().take(remaining));
    }

    /// Adds rewritten HTML as a file. That of a preview keeps its title, because it may become a page.
    fn push_html(
        &mut self,
        path: String,
        html: &str,
        title: &str,
        reason: Option<Reason>,
    ) -> Result<(), UnpackError> {
        self.push_bytes(path, html.as_bytes(), reason)?;
        if let Some(file) = self.unpacked.files.last_mut().filter(|_| self.options.is_preview) {
            file.title = Some(page_title(title, "")).filter(|title| !title.is_empty());
        }
        Ok(())
    }

    fn push_bytes(&mut self, path: String, bytes: &[u8], reason: Option<Reason>) -> Result<(), UnpackError> {
        let sha256 = Sha256::digest(bytes).into();
        let contents = Contents::Spooled(self.unpacked.spool.push(bytes)?);
        self.push(path, sha256, contents, false, reason)
    }

    fn push(
        &mut self,
        path: String,
        sha256: [u8; 32],
        contents: Contents,
        by_content: bool,
        reason: Option<Reason>,
    ) -> Result<(), UnpackError> {
        self.stored_bytes += contents.bytes();
        // Files with rewritten references are larger than in the zip.
        if self.stored_bytes > self.options.site.max_stored_bytes {
            return Err(UnpackError::StorageExceeded(self.stored_bytes));
        }
        let content_type = media::by_name(&path);
        let title = None;
        let file = UnpackedFile { path, sha256, content_type, by_content, reason, title, contents };
        self.unpacked.files.push(file);
        Ok(())
    }
}
