//! The cache of rendered pages, with every content coding of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Served, StaleOnErrorCache};
use equivalent::Equivalent;
use service::admission::Admission;
use store::read_pool::{ReadError, ReadPool};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::rendered_page::RenderedPage;
use super::tracker;
use crate::config::{Cache, weight};
use crate::cpu_work::{Busy, CpuWork, Tenant};

/// New versions that may wait for compression. Beyond it, a version stays uncompressed until it is rendered again.
const MAX_PENDING: usize = 1_024;
/// Of those, versions of one site. One of each site waits for its turn at a time.
const MAX_PENDING_PER_SITE: usize = 64;
/// How long a version waits.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(600);
/// Versions compressed at a time; requests have priority.
const MAX_CONCURRENT: usize = 1;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    subdomain_id: Uuid,
    slug: Box<str>,
    /// The URL that relative links refer to, for a page that is shown at its short URL.
    base_url: Option<Box<str>>,
}

impl PageKey {
    fn new(subdomain_id: Uuid, slug: &str) -> Self {
        Self { subdomain_id, slug: slug.into(), base_url: None }
    }
}

/// A borrowed [`PageKey`], which saves a copy of the slug per lookup.
#[derive(Hash)]
struct PageRef<'a> {
    subdomain_id: Uuid,
    slug: &'a str,
    base_url: Option<&'a str>,
}

impl Equivalent<PageKey> for PageRef<'_> {
    fn equivalent(&self, key: &PageKey) -> bool {
        self.subdomain_id == key.subdomain_id
            && self.slug == &*key.slug
            && self.base_url == key.base_url.as_deref()
    }
}

/// Pages by site and slug, as they are and as they are shown at their short URLs. Slugs without a page are cached too.
#[derive(Clone)]
pub(crate) struct PageCache {
    lookups: ReadPool,
    pages: StaleOnErrorCache<PageKey, Option<RenderedPage>>,
    pending: Arc<Semaphore>,
    compressing: Admission<Uuid>,
    cpu: CpuWork,
}

impl PageCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache, cpu: CpuWork) -> Self {
        let weigh = |key: &PageKey, page: &Option<RenderedPage>| {
            weight(256 + key.slug.len() + page.as_ref().map_or(0, RenderedPage::weight_bytes))
        };
        Self {
            lookups,
            pages: StaleOnErrorCache::new(config.bounds(config.max_page_bytes), weigh),
            pending: Arc::new(Semaphore::new(MAX_PENDING)),
            compressing: Admission::new(MAX_CONCURRENT, 1, QUEUE_TIMEOUT),
            cpu,
        }
    }

    /// Returns the cached page with a slug; `Some(None)` if the cache knows that there is none.
    pub(crate) fn peek(&self, subdomain_id: Uuid, slug: &str, now: Instant) -> Option<Option<RenderedPage>> {
        self.pages.peek(&PageRef { subdomain_id, slug, base_url: None }, now)
    }

    /// Returns the page with a slug, and loads it if it is not cached.
    pub(crate) async fn find(
        &self,
        subdomain_id: Uuid,
        slug: &str,
    ) -> Result<Served<Option<RenderedPage>>, ReadError> {
        let key = PageKey::new(subdomain_id, slug);
        let served = self.pages.get(&key, Instant::now(), self.render(&key)).await?;
        if !served.hit {
            self.compress(key, served.value.as_ref());
        }
        Ok(served)
    }

    /// Returns a found page for display at another URL, where its relative links refer to `base_url`. Each version is
    /// rewritten once, and kept beside the page.
    pub(crate) async fn at_base_url(
        &self,
        page: &RenderedPage,
        (subdomain_id, slug): (Uuid, &str),
        base_url: &str,
    ) -> Result<RenderedPage, Busy> {
        let key = PageKey { base_url: Some(base_url.into()), ..PageKey::new(subdomain_id, slug) };
        let cached = self.pages.peek(&key, Instant::now()).flatten();
        if let Some(rewritten) = cached.filter(|cached| cached.is_rewritten_from(page)) {
            return Ok(rewritten);
        }
        // In a task of its own: it ends even if the client disconnects, so that no request repeats the work.
        let (cache, page) = (self.clone(), page.clone());
        tokio::spawn(async move { cache.rewrite(key, page).await }).await.map_err(|_panicked| Busy)?
    }

    async fn rewrite(&self, key: PageKey, page: RenderedPage) -> Result<RenderedPage, Busy> {
        let last = self.pages.peek_stale(&key).flatten();
        let last = last.filter(|last| last.is_rewritten_from(&page));
        if last.is_none() {
            self.pages.remove(&key);
        }
        let load = async {
            let (source, base_url) = (page.clone(), key.base_url.clone().unwrap_or_default());
            match last {
                Some(last) => Ok(last),
                None => {
                    let tenant = Tenant::Site(key.subdomain_id);
                    self.cpu.run(tenant, page.len(), move || source.with_base_url(&base_url)).await
                }
            }
            .map(Some)
        };
        let served = self.pages.get(&key, Instant::now(), load).await?;
        if !served.hit {
            self.compress(key, served.value.as_ref());
        }
        served.value.ok_or(Busy)
    }

    async fn render(&self, key: &PageKey) -> Result<Option<RenderedPage>, ReadError> {
        let find = async |conn: &mut store::Conn| {
            let document = store::pages::find_document(conn, key.subdomain_id, &key.slug).await?;
            let tag = store::sites::find_tag(conn, key.subdomain_id).await?;
            Ok(document.map(|document| (document, tag)))
        };
        let Some((document, tag)) = self.lookups.query(find).await? else { return Ok(None) };
        let last = self.pages.peek_stale(key).flatten();
        let bytes = if document.entries.is_empty() { document.html.len() } else { usize::MAX };
        let render = move || {
            let mut html = domain::rendering::page(document.source());
            if let Some(tag) = tag {
                html = tracker::insert_tracker(html, &tag);
            }
            // An unchanged version is reused with its compressed bodies.
            let last = last.filter(|last| last.is_version(document.id, &html));
            last.unwrap_or_else(|| RenderedPage::new(document.id, html))
        };
        let rendered = self.cpu.run(Tenant::Site(key.subdomain_id), bytes, render).await;
        rendered.map(Some).map_err(|_busy| ReadError::Unavailable)
    }

    /// Compresses a new version in the background.
    fn compress(&self, key: PageKey, page: Option<&RenderedPage>) {
        let Some(page) = page.filter(|page| page.needs_compression()).cloned() else { return };
        let Ok(pending) = Arc::clone(&self.pending).try_acquire_owned() else { return };
        let (pages, compressing) = (self.pages.clone(), self.compressing.clone());
        tokio::spawn(async move {
            let permit = compressing.acquire_queued(key.subdomain_id, MAX_PENDING_PER_SITE).await;
            let Ok(_permit) = permit else { return };
            // Meanwhile the version may have been replaced or evicted.
            if !pages.peek_stale(&key).flatten().is_some_and(|cached| cached.is_same(&page)) {
                return;
            }
            let uncompressed = page.clone();
            if let Ok(compressed) = tokio::task::spawn_blocking(move || uncompressed.compressed()).await {
                let is_same = |cached: &Option<RenderedPage>| {
                    cached.as_ref().is_some_and(|cached| cached.is_same(&page))
                };
                pages.replace_if(&key, is_same, Some(compressed));
            }
            drop(pending);
        });
    }

    /// Caches a page without a query.
    #[cfg(test)]
    pub(crate) async fn insert(&self, subdomain_id: Uuid, slug: &str, page: RenderedPage) {
        let key = PageKey::new(subdomain_id, slug);
        let load = std::future::ready(Ok::<_, ReadError>(Some(page)));
        self.pages.get(&key, Instant::now(), load).await.unwrap();
    }

    /// Removes a page. It may be deleted or unpublished, so it must not be served stale.
    pub(crate) fn remove(&self, subdomain_id: Uuid, slug: &str) {
        self.pages.remove(&PageKey::new(subdomain_id, slug));
    }

    /// Invalidates all pages of a site.
    pub(crate) fn invalidate_site(&self, subdomain_id: Uuid) {
        self.pages.invalidate_where(|key, _| key.subdomain_id == subdomain_id);
    }

    /// Removes all pages of a site: they must not be served stale.
    pub(crate) fn remove_site(&self, subdomain_id: Uuid) {
        self.pages.remove_where(|key, _| key.subdomain_id == subdomain_id);
    }

    /// Limits the age of entries while no signals arrive; `None` lifts the limit.
    pub(crate) fn limit_age(&self, limit: Option<Duration>) {
        self.pages.limit_age(limit);
    }

    /// Invalidates every page.
    pub(crate) fn invalidate_all(&self) {
        self.pages.mark_all_stale();
    }
}

#[cfg(test)]
mod tests {
    use service::config::{Sources, load};

    use super::*;
    use crate::config::{Config, DEFAULTS};

    const SITE: Uuid = Uuid::from_u128(1);
    const URL: &str = "https://quiet-otter.test/large";

    fn cache() -> PageCache {
        let config: Config = load(DEFAULTS, &Sources::default()).unwrap().config;
        let lookups = ReadPool::connect(&config.store, 1).unwrap();
        PageCache::new(lookups, &config.cache, CpuWork::new())
    }

    fn large_page(id: u128, text: &str) -> RenderedPage {
        RenderedPage::new(Uuid::from_u128(id), format!("<p>{text}").repeat(100_000))
    }

    #[tokio::test]
    async fn requests_of_a_short_url_rewrite_each_version_of_a_page_once() {
        let cache = cache();
        let page = large_page(1, "one");
        let mut first = Box::pin(cache.at_base_url(&page, (SITE, "large"), URL));
        // This test has one thread: rewriting on it would return at once.
        assert!(futures::poll!(first.as_mut()).is_pending());
        let first = first.await.unwrap();
        assert!(first.is_rewritten_from(&page) && first.len() > page.len());
        let again = cache.at_base_url(&page, (SITE, "large"), URL).await.unwrap();
        assert!(again.is_same(&first) || again.is_rewritten_from(&page) && !again.needs_compression());

        let edited = large_page(1, "two");
        let rewritten = cache.at_base_url(&edited, (SITE, "large"), URL).await.unwrap();
        assert!(rewritten.is_rewritten_from(&edited) && !rewritten.is_rewritten_from(&page));
        let recreated = large_page(2, "two");
        let rewritten = cache.at_base_url(&recreated, (SITE, "large"), URL).await.unwrap();
        assert!(rewritten.is_rewritten_from(&recreated), "views count for the new page");
    }

    #[tokio::test]
    async fn a_site_with_many_new_pages_delays_the_compression_of_another_by_one_page() {
        let cache = cache();
        let (attacker, other) = (Uuid::from_u128(2), Uuid::from_u128(3));
        let slugs: Vec<_> = (0..40).map(|number| format!("page-{number}")).collect();
        let sites = slugs.iter().map(|slug| (attacker, slug.as_str())).chain([(other, "index")]);
        for (site, slug) in sites {
            let page = large_page(1, slug);
            cache.insert(site, slug, page.clone()).await;
            cache.compress(PageKey::new(site, slug), Some(&page));
        }
        let is_compressed = |site, slug: &str| {
            let page = cache.pages.peek_stale(&PageKey::new(site, slug)).flatten();
            page.is_some_and(|page| !page.needs_compression())
        };
        sandbox::test::until(async || is_compressed(other, "index")).await;
        let compressed = slugs.iter().filter(|slug| is_compressed(attacker, slug)).count();
        assert!(compressed < 20, "{compressed} of the attacker's pages were compressed before");
    }

    #[tokio::test]
    async fn a_client_that_disconnects_does_not_repeat_the_rewriting_of_a_page() {
        let cache = cache();
        let page = large_page(1, "one");
        let key = PageKey { base_url: Some(URL.into()), ..PageKey::new(SITE, "large") };
        let mut cancelled = Box::pin(cache.at_base_url(&page, (SITE, "large"), URL));
        assert!(futures::poll!(cancelled.as_mut()).is_pending());
        drop(cancelled);
        sandbox::test::until(async || cache.pages.peek_stale(&key).is_some()).await;
        assert!(cache.pages.peek_stale(&key).flatten().unwrap().is_rewritten_from(&page));
    }
}
