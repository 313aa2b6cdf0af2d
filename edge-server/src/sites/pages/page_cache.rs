//! The cache of rendered pages, with every content coding of each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Served, StaleOnErrorCache};
use equivalent::Equivalent;
use store::read_pool::{ReadError, ReadPool};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::rendered_page::RenderedPage;
use super::tracker;
use crate::config::{Cache, weight};

/// New versions that may wait for compression. Beyond it, a version stays uncompressed until it is rendered again.
const MAX_PENDING: usize = 1_024;
/// Versions compressed at a time; requests have priority.
const MAX_CONCURRENT: usize = 1;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    subdomain_id: Uuid,
    slug: Box<str>,
}

/// A borrowed [`PageKey`], which saves a copy of the slug per lookup.
#[derive(Hash)]
struct PageRef<'a> {
    subdomain_id: Uuid,
    slug: &'a str,
}

impl Equivalent<PageKey> for PageRef<'_> {
    fn equivalent(&self, key: &PageKey) -> bool {
        self.subdomain_id == key.subdomain_id && self.slug == &*key.slug
    }
}

/// Pages by site and slug. Slugs without a page are cached too.
pub(crate) struct PageCache {
    lookups: ReadPool,
    pages: StaleOnErrorCache<PageKey, Option<RenderedPage>>,
    pending: Arc<Semaphore>,
    compressing: Arc<Semaphore>,
}

impl PageCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |key: &PageKey, page: &Option<RenderedPage>| {
            weight(256 + key.slug.len() + page.as_ref().map_or(0, RenderedPage::weight_bytes))
        };
        Self {
            lookups,
            pages: StaleOnErrorCache::new(config.bounds(config.max_page_bytes), weigh),
            pending: Arc::new(Semaphore::new(MAX_PENDING)),
            compressing: Arc::new(Semaphore::new(MAX_CONCURRENT)),
        }
    }

    /// Returns the cached page with a slug; `Some(None)` if the cache knows that there is none.
    pub(crate) fn peek(&self, subdomain_id: Uuid, slug: &str, now: Instant) -> Option<Option<RenderedPage>> {
        self.pages.peek(&PageRef { subdomain_id, slug }, now)
    }

    /// Returns the page with a slug, and loads it if it is not cached.
    pub(crate) async fn find(
        &self,
        subdomain_id: Uuid,
        slug: &str,
    ) -> Result<Served<Option<RenderedPage>>, ReadError> {
        let key = PageKey { subdomain_id, slug: slug.into() };
        let served = self.pages.get(&key, Instant::now(), self.render(&key)).await?;
        if let (false, Some(page)) = (served.hit, &served.value)
            && page.needs_compression()
        {
            self.compress(key, page.clone());
        }
        Ok(served)
    }

    async fn render(&self, key: &PageKey) -> Result<Option<RenderedPage>, ReadError> {
        let find = async |conn: &mut store::Conn| {
            let document = store::pages::find_document(conn, key.subdomain_id, &key.slug).await?;
            let tag = store::sites::find_tag(conn, key.subdomain_id).await?;
            Ok(document.map(|document| (document, tag)))
        };
        let Some((document, tag)) = self.lookups.query(find).await? else { return Ok(None) };
        let mut html = domain::rendering::page(document.source());
        if let Some(tag) = tag {
            html = tracker::insert_tracker(html, &tag);
        }
        // An unchanged version is reused with its compressed bodies.
        let last = self.pages.peek_stale(key).flatten().filter(|last| last.is_version(document.id, &html));
        Ok(Some(last.unwrap_or_else(|| RenderedPage::new(document.id, html))))
    }

    /// Compresses a new version in the background.
    fn compress(&self, key: PageKey, page: RenderedPage) {
        let Ok(pending) = Arc::clone(&self.pending).try_acquire_owned() else { return };
        let (pages, compressing) = (self.pages.clone(), Arc::clone(&self.compressing));
        tokio::spawn(async move {
            let _permit = compressing.acquire().await;
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
        let key = PageKey { subdomain_id, slug: slug.into() };
        let load = std::future::ready(Ok::<_, ReadError>(Some(page)));
        self.pages.get(&key, Instant::now(), load).await.unwrap();
    }

    /// Removes a page. It may be deleted or unpublished, so it must not be served stale.
    pub(crate) fn remove(&self, subdomain_id: Uuid, slug: &str) {
        self.pages.remove(&PageKey { subdomain_id, slug: slug.into() });
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
