//! What visitors see of a site: rendered once, kept in every encoding, served from memory.

use std::sync::Arc;
use std::time::Instant;

use cache::{Served, StaleOnErrorCache};
use equivalent::Equivalent;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::config::{Cache, weight};
use crate::read_pool::{ReadError, ReadPool};
use crate::sites::pages::rendered_page::Rendered;
use crate::sites::pages::tracker;

/// So many new versions may wait to be compressed; what comes on top is sent as it is until it is rendered again.
const MAY_WAIT: usize = 1_024;
/// So many are compressed at a time: visitors go first.
const AT_A_TIME: usize = 1;

/// Where a page is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    subdomain_id: Uuid,
    slug: Box<str>,
}

/// The same, borrowed: what visitors ask for need not be copied.
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

/// The pages kept so far, by site and slug; slugs without a page are kept too.
pub(crate) struct Pages {
    lookups: ReadPool,
    kept: StaleOnErrorCache<PageKey, Option<Rendered>>,
    may_wait: Arc<Semaphore>,
    at_a_time: Arc<Semaphore>,
}

impl Pages {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |key: &PageKey, page: &Option<Rendered>| {
            weight(256 + key.slug.len() + page.as_ref().map_or(0, Rendered::weight_bytes))
        };
        Self {
            lookups,
            kept: StaleOnErrorCache::new(config.bounds(config.page_bytes), weigh),
            may_wait: Arc::new(Semaphore::new(MAY_WAIT)),
            at_a_time: Arc::new(Semaphore::new(AT_A_TIME)),
        }
    }

    /// The page at a slug, or that there is none, if that is known right now.
    pub(crate) fn peek(&self, subdomain_id: Uuid, slug: &str, now: Instant) -> Option<Option<Rendered>> {
        self.kept.peek(&PageRef { subdomain_id, slug }, now)
    }

    /// The page of a site at a slug.
    ///
    /// # Errors
    /// It isn't kept and Postgres is away.
    pub(crate) async fn find(
        &self,
        subdomain_id: Uuid,
        slug: &str,
    ) -> Result<Served<Option<Rendered>>, ReadError> {
        let key = PageKey { subdomain_id, slug: slug.into() };
        let served = self.kept.get(&key, Instant::now(), self.render(&key)).await?;
        if let (false, Some(page)) = (served.hit, &served.value)
            && page.is_untried()
        {
            self.compress(key, page.clone());
        }
        Ok(served)
    }

    async fn render(&self, key: &PageKey) -> Result<Option<Rendered>, ReadError> {
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
        // Asked about again and found unchanged, a version keeps its encodings.
        let last = self.kept.peek_stale(key).flatten().filter(|last| last.is(document.id, &html));
        Ok(Some(last.unwrap_or_else(|| Rendered::new(document.id, html))))
    }

    /// Makes a new version smaller, beside its first answers.
    fn compress(&self, key: PageKey, page: Rendered) {
        let Ok(waiting) = Arc::clone(&self.may_wait).try_acquire_owned() else { return };
        let (kept, at_a_time) = (self.kept.clone(), Arc::clone(&self.at_a_time));
        tokio::spawn(async move {
            let _turn = at_a_time.acquire().await;
            // Meanwhile it may have been replaced, or others were asked for more and took its place.
            if !kept.peek_stale(&key).flatten().is_some_and(|here| here.is_same(&page)) {
                return;
            }
            let of = page.clone();
            if let Ok(compressed) = tokio::task::spawn_blocking(move || of.compressed()).await {
                let is_it = |here: &Option<Rendered>| here.as_ref().is_some_and(|here| here.is_same(&page));
                kept.replace_if(&key, is_it, Some(compressed));
            }
            drop(waiting);
        });
    }

    /// Asks again before the page is served next. What was kept is not even served stale: it may have been deleted
    /// or unpublished.
    pub(crate) fn forget(&self, subdomain_id: Uuid, slug: &str) {
        self.kept.remove(&PageKey { subdomain_id, slug: slug.into() });
    }

    /// Asks again about all pages of a site.
    pub(crate) fn forget_site(&self, subdomain_id: Uuid) {
        self.kept.invalidate_where(|key, _| key.subdomain_id == subdomain_id);
    }

    /// Lets go of a site's pages for good: they must not even be served stale.
    pub(crate) fn drop_site(&self, subdomain_id: Uuid) {
        self.kept.remove_where(|key, _| key.subdomain_id == subdomain_id);
    }

    /// Asks again about every page.
    pub(crate) fn forget_all(&self) {
        self.kept.mark_all_stale();
    }
}
