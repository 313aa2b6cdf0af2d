//! Loads answers: one query finds the pages and files that an address may mean, and the site's rules decide.

use std::sync::Arc;

use blobs::{Blobs, Name};
use domain::Transient;
use domain::static_sites::address::{self, PageSlugs};
use domain::static_sites::resolution::{PageAt, Resolution};
use domain::static_sites::site_path::RequestPath;
use futures::TryStreamExt;
use service::Clock;
use store::pages::Document;
use store::read_pool::{ReadError, ReadPool};
use store::site_addresses::{Found, FoundFile, FoundPage, Lookup};
use store::sites::TrackerTag;
use store::subdomains::Site;

use super::address_headers::AddressHeaders;
use super::answer::{Answer, CachedAnswer, Target};
use crate::cpu_work::{CpuWork, Tenant};
use crate::sites::files::site_file::SiteFile;
use crate::sites::pages::rendered_page::{Origin, RenderedPage};
use crate::sites::pages::tracker;

/// Size up to which HTML files are rendered like pages. Larger ones are streamed as they are.
const MAX_RENDERED_BYTES: i64 = 4 << 20;

/// Loads and renders.
#[derive(Clone)]
pub(super) struct Loader {
    pub(super) lookups: ReadPool,
    pub(super) blobs: Blobs,
    pub(super) cpu: CpuWork,
    pub(super) clock: Clock,
}

impl Loader {
    /// Loads what an address answers: without a query where none decides, else to this query. `last` is the page that the
    /// address answered before.
    pub(super) async fn at_address(
        &self,
        site: &Arc<Site>,
        request: &RequestPath,
        query: Option<&str>,
        last: Option<RenderedPage>,
    ) -> Result<CachedAnswer, ReadError> {
        let decision =
            Decision { site: Arc::clone(site), request: request.clone(), query: query.map(str::to_owned) };
        let files = decision.clone();
        let Some(paths) = self.decide(site, move || files.files()).await? else {
            return Ok(CachedAnswer::new(site, Answer::ByQuery, 200));
        };
        let (own, slugs) = (address::candidates(request), address::slugs_at(request));
        let found = self.look_up(site, &paths, &slugs, &own).await?;
        let page_slugs = slugs.clone();
        let (found, resolution, headers) =
            self.decide(site, move || decision.resolve(found, &page_slugs)).await?;
        let (answer, status) = match resolution {
            Resolution::Reserved | Resolution::NotFound => (Answer::NotFound, 404),
            Resolution::Redirect { location, status } => (Answer::Redirect(location.into()), status),
            // An answer to one query is not removed when the page changes.
            Resolution::Page if query.is_some() => {
                (Answer::Alias(Target::Slug(slugs.own.unwrap_or_default().into())), 200)
            }
            Resolution::Page => {
                let is_page = |page: &FoundPage| Some(&page.slug) == slugs.own.as_ref();
                (self.page(site, found, is_page, last).await?, 200)
            }
            Resolution::File { path, status } if status != 200 || query.is_some() || !own.contains(&path) => {
                (self.elsewhere(site, found, path).await?, status)
            }
            Resolution::File { path, status } => (self.file_or_page(site, found, &path, last).await?, status),
        };
        Ok(CachedAnswer { headers, ..CachedAnswer::new(site, answer, status) })
    }

    /// Loads the page or file at a path, or the page with a slug.
    pub(super) async fn content(
        &self,
        site: &Site,
        target: Target<&str>,
        last: Option<RenderedPage>,
    ) -> Result<CachedAnswer, ReadError> {
        let answer = match target {
            Target::Slug(slug) => {
                let slugs = PageSlugs { own: Some(slug.to_owned()), canonical: None };
                let found = self.look_up(site, &[], &slugs, &[]).await?;
                self.page(site, found, |_| true, last).await?
            }
            Target::Path(path) | Target::Address(path) => {
                let paths = [path.to_owned()];
                let found = self.look_up(site, &paths, &PageSlugs::default(), &paths).await?;
                self.file_or_page(site, found, path, last).await?
            }
        };
        Ok(CachedAnswer::new(site, answer, 200))
    }

    /// Applies the rules of a site. Thousands of them take milliseconds of CPU time.
    async fn decide<T: Send + 'static>(
        &self,
        site: &Site,
        with_rules: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let decided = self.cpu.run(Tenant::Site(site.subdomain_id), site.rules_bytes, with_rules).await;
        decided.map_err(|_busy| ReadError::Unavailable)
    }

    async fn look_up(
        &self,
        site: &Site,
        paths: &[String],
        slugs: &PageSlugs,
        documents: &[String],
    ) -> Result<Found, ReadError> {
        let slugs: Vec<String> = [&slugs.own, &slugs.canonical].into_iter().flatten().cloned().collect();
        let Site { subdomain_id, is_preview, deploy_id, .. } = *site;
        let subdomain_id = (!is_preview).then_some(subdomain_id);
        let now = self.clock.now();
        let lookup = Lookup { subdomain_id, deploy_id, paths, slugs: &slugs, documents, now };
        self.lookups
            .query(async |conn: &mut store::Conn| store::site_addresses::find_at_address(conn, &lookup).await)
            .await
    }

    /// Renders the page or the HTML file at a path. Another file is answered as it is.
    async fn file_or_page(
        &self,
        site: &Site,
        mut found: Found,
        path: &str,
        last: Option<RenderedPage>,
    ) -> Result<Answer, ReadError> {
        if found.pages.iter().any(|page| page.path.as_deref() == Some(path)) {
            return self.page(site, found, |page| page.path.as_deref() == Some(path), last).await;
        }
        let Some(at) = found.files.iter().position(|file| file.path == path) else {
            return Ok(Answer::NotFound);
        };
        let file = found.files.swap_remove(at);
        if is_rendered(&file)
            && let Some(page) = self.render_file(site, &file, found.tag, last).await?
        {
            return Ok(Answer::Page(page));
        }
        Ok(answer_with(site, file))
    }

    /// Returns the answer at an address that is none of the file's own.
    async fn elsewhere(&self, site: &Site, mut found: Found, path: String) -> Result<Answer, ReadError> {
        let is_page = found.pages.iter().any(|page| page.path.as_deref() == Some(&path));
        match found.files.iter().position(|file| file.path == path) {
            Some(at) if !is_page && !is_rendered(&found.files[at]) => {
                Ok(answer_with(site, found.files.swap_remove(at)))
            }
            _ => Ok(Answer::Alias(Target::Path(path.into()))),
        }
    }

    async fn page(
        &self,
        site: &Site,
        found: Found,
        is_page: impl Fn(&FoundPage) -> bool,
        last: Option<RenderedPage>,
    ) -> Result<Answer, ReadError> {
        let Some(FoundPage { path, document: Some(document), .. }) = found.pages.into_iter().find(is_page)
        else {
            return Ok(Answer::NotFound);
        };
        self.render(site, path, document, found.tag, last).await.map(Answer::Page)
    }

    async fn render(
        &self,
        site: &Site,
        path: Option<String>,
        document: Document,
        tag: Option<TrackerTag>,
        last: Option<RenderedPage>,
    ) -> Result<RenderedPage, ReadError> {
        let bytes = if document.entries.is_empty() { document.html.len() } else { usize::MAX };
        let render = move || {
            let html = domain::rendering::page(document.source());
            let origin = Origin { page_id: Some(document.id), path: path.map(String::into_boxed_str) };
            version(origin, html, tag, last)
        };
        let rendered = self.cpu.run(Tenant::Site(site.subdomain_id), bytes, render).await;
        rendered.map_err(|_busy| ReadError::Unavailable)
    }

    /// Renders an HTML file without a page. `None` if it is not UTF-8.
    async fn render_file(
        &self,
        site: &Site,
        found: &FoundFile,
        tag: Option<TrackerTag>,
        last: Option<RenderedPage>,
    ) -> Result<Option<RenderedPage>, ReadError> {
        let name = Name { account_id: found.file.account_id, sha256: found.file.sha256 };
        let size = u64::try_from(found.file.size_bytes).unwrap_or_default();
        let read = async {
            let parts: Vec<bytes::Bytes> = self.blobs.read(name, 0..size).await?.try_collect().await?;
            Ok::<_, blobs::Error>(parts.concat())
        };
        let bytes = read.await.map_err(|error| {
            if error.is_transient() {
                tracing::warn!(%error, "an HTML file can't be read now");
            } else {
                tracing::error!(%error, "a stored HTML file can't be read");
            }
            ReadError::Unavailable
        })?;
        let origin = Origin { page_id: None, path: Some(found.path.as_str().into()) };
        let size = bytes.len();
        let render = move || String::from_utf8(bytes).ok().map(|html| version(origin, html, tag, last));
        let rendered = self.cpu.run(Tenant::Site(site.subdomain_id), size, render).await;
        rendered.map_err(|_busy| ReadError::Unavailable)
    }
}

/// A request to decide by the rules of its site.
#[derive(Clone)]
struct Decision {
    site: Arc<Site>,
    request: RequestPath,
    query: Option<String>,
}

impl Decision {
    /// Returns the files to look up; `None` if the answer needs the query.
    fn files(&self) -> Option<Vec<String>> {
        let reads_query = self.query.is_none() && self.site.rules.redirects.reads_query(&self.request);
        let query = self.query.as_deref().unwrap_or_default();
        (!reads_query).then(|| self.site.rules.resolver().files(&self.request, query))
    }

    /// Decides among what was found.
    fn resolve(&self, found: Found, slugs: &PageSlugs) -> (Found, Resolution, Option<Arc<AddressHeaders>>) {
        let (rules, query) = (&self.site.rules, self.query.as_deref().unwrap_or_default());
        let page = page_at(&found, slugs);
        let resolution = rules.resolver().resolve(&self.request, query, |path| has(&found, path), page);
        let headers = AddressHeaders::new(&rules.headers, &self.request, self.site.claimed);
        (found, resolution, headers)
    }
}

/// Returns the page with its tracker. An unchanged version is reused with its compressed bodies.
fn version(
    origin: Origin,
    html: String,
    tag: Option<TrackerTag>,
    last: Option<RenderedPage>,
) -> RenderedPage {
    let html = match tag {
        Some(tag) => tracker::insert_tracker(html, &tag),
        None => html,
    };
    let last = last.filter(|last| last.is_version(&origin, &html));
    last.unwrap_or_else(|| RenderedPage::new(origin, html))
}

fn answer_with(site: &Site, found: FoundFile) -> Answer {
    Answer::File(Arc::new(SiteFile::new(found, site.claimed)))
}

fn is_rendered(found: &FoundFile) -> bool {
    found.file.content_type == "text/html" && found.file.size_bytes <= MAX_RENDERED_BYTES
}

fn has(found: &Found, path: &str) -> bool {
    found.pages.iter().any(|page| page.path.as_deref() == Some(path))
        || found.files.iter().any(|file| file.path == path)
}

fn page_at<'a>(found: &'a Found, slugs: &PageSlugs) -> Option<PageAt<'a>> {
    let with = |slug: &Option<String>| found.pages.iter().find(|page| Some(&page.slug) == slug.as_ref());
    let (page, is_own) =
        with(&slugs.own).map(|page| (page, true)).or(with(&slugs.canonical).map(|page| (page, false)))?;
    Some(match (&page.path, is_own) {
        (Some(path), _) => PageAt::Deployed(path),
        (None, true) => PageAt::Made,
        (None, false) => PageAt::MadeAt(&page.slug),
    })
}
