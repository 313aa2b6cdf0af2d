//! The cache of what addresses of sites answer. Addresses without an answer are cached too.
//!
//! A page is rendered for each of its own addresses, so that a request needs one lookup. Addresses that show it by a rule or as a
//! fallback share one rendered page, because there may be any number of them.

use std::sync::Arc;
use std::time::Instant;

use blobs::Blobs;
use cache::{Served, StaleOnErrorCache};
use domain::static_sites::redirects::with_forwarded_query;
use domain::static_sites::site_path::RequestPath;
use service::Clock;
use store::read_pool::{ReadError, ReadPool};
use store::subdomains::Site;

use super::answer::{Answer, CachedAnswer, Resolved, Target};
use super::answer_key::{AnswerKey, AnswerRef};
use super::loader::Loader;
use super::ruled_sites::RuledSites;
use crate::config::{Cache, weight};
use crate::cpu_work::{Busy, CpuWork, Tenant};
use crate::metrics::CacheName;
use crate::sites::pages::compressor::Compressor;
use crate::sites::pages::rendered_page::RenderedPage;

/// Answers by site and address.
#[derive(Clone)]
pub(crate) struct AnswerCache {
    pub(super) answers: StaleOnErrorCache<AnswerKey, CachedAnswer>,
    pub(super) ruled_sites: RuledSites,
    loader: Loader,
    compressor: Compressor,
}

impl AnswerCache {
    pub(crate) fn new(
        lookups: ReadPool,
        config: &Cache,
        blobs: Blobs,
        cpu: CpuWork,
        compressor: Compressor,
        clock: Clock,
    ) -> Self {
        let weigh =
            |key: &AnswerKey, cached: &CachedAnswer| weight(320 + key.weight_bytes() + cached.weight_bytes());
        Self {
            answers: CacheName::Answers.new_cache(config.bounds(config.max_page_bytes), weigh),
            ruled_sites: RuledSites::new(config),
            loader: Loader { lookups, blobs, cpu, clock },
            compressor,
        }
    }

    /// Returns the cached answer at a path as sent, if that is how the cache writes addresses.
    pub(crate) fn peek(&self, site: &Site, path: &str, now: Instant) -> Option<CachedAnswer> {
        let target = Target::Address(path);
        let key = AnswerRef { content_id: site.content_id(), target, base_url: None };
        self.answers.peek(&key, now).filter(|cached| cached.is_of(site))
    }

    /// Returns what a request answers, and loads it if it is not cached.
    pub(crate) async fn find(
        &self,
        site: &Arc<Site>,
        request: &RequestPath,
        query: &str,
    ) -> Result<Served<Resolved>, ReadError> {
        let (found, key) = self.at_address(site, request, query).await?;
        let resolved = self.resolve_alias(site, found).await?;
        if !(resolved.value.is_elsewhere && matches!(resolved.value.answer, Answer::NotFound)) {
            return Ok(resolved);
        }
        // The page that the address showed is gone.
        self.answers.remove(&key);
        let (found, _) = self.at_address(site, request, query).await?;
        self.resolve_alias(site, found).await
    }

    /// Returns the page with a slug, and loads it if it is not cached.
    pub(crate) async fn page_with_slug(
        &self,
        site: &Site,
        slug: &str,
    ) -> Result<Served<Option<RenderedPage>>, ReadError> {
        let Served { value, stale, hit } = self.content(site, Target::Slug(slug)).await?;
        Ok(Served { value: value.page(), stale, hit })
    }

    /// Returns the answer at an address, and its key.
    async fn at_address(
        &self,
        site: &Arc<Site>,
        request: &RequestPath,
        query: &str,
    ) -> Result<(Served<CachedAnswer>, AnswerKey), ReadError> {
        let address = request.address();
        let key = AnswerKey::new(site.content_id(), Target::Address(&address));
        let mut found = self.get(site, &key, || self.load_address(site, request, None, &key)).await?;
        match &mut found.value.answer {
            Answer::ByQuery => {
                let address = format!("{address}?{query}");
                let key = AnswerKey::new(site.content_id(), Target::Address(&address));
                let load = || self.load_address(site, request, Some(query), &key);
                let found = self.get(site, &key, load).await?;
                return Ok((found, key));
            }
            Answer::Redirect(location) => {
                *location = with_forwarded_query(location.to_string(), query).into();
            }
            _ => {}
        }
        Ok((found, key))
    }

    /// Returns a found answer; of an alias, the page that it stands for.
    async fn resolve_alias(
        &self,
        site: &Site,
        found: Served<CachedAnswer>,
    ) -> Result<Served<Resolved>, ReadError> {
        let Served { value, stale, hit } = found;
        let Answer::Alias(target) = &value.answer else {
            return Ok(Served { value: value.into(), stale, hit });
        };
        let content = self.content(site, target.as_ref().map(|text| &**text)).await?;
        let CachedAnswer { status, headers, .. } = value;
        let value = Resolved { answer: content.value.answer, status, headers, is_elsewhere: true };
        Ok(Served { value, stale: stale || content.stale, hit: hit && content.hit })
    }

    async fn content(&self, site: &Site, target: Target<&str>) -> Result<Served<CachedAnswer>, ReadError> {
        let key = AnswerKey::new(site.content_id(), target);
        self.get(site, &key, || self.load_content(site, target, &key)).await
    }

    async fn load_address(
        &self,
        site: &Arc<Site>,
        request: &RequestPath,
        query: Option<&str>,
        key: &AnswerKey,
    ) -> Result<CachedAnswer, ReadError> {
        self.ruled_sites.insert(site).await;
        self.loader.at_address(site, request, query, self.last_page(key)).await
    }

    async fn load_content(
        &self,
        site: &Site,
        target: Target<&str>,
        key: &AnswerKey,
    ) -> Result<CachedAnswer, ReadError> {
        self.loader.content(site, target, self.last_page(key)).await
    }

    async fn get<F>(
        &self,
        site: &Site,
        key: &AnswerKey,
        load: impl Fn() -> F,
    ) -> Result<Served<CachedAnswer>, ReadError>
    where
        F: Future<Output = Result<CachedAnswer, ReadError>>,
    {
        let mut served = self.answers.get(key, Instant::now(), load()).await?;
        if !served.value.is_of(site) {
            self.answers.invalidate(key);
            served = self.answers.get(key, Instant::now(), load()).await?;
        }
        if !served.hit
            && let Answer::Page(page) = &served.value.answer
        {
            self.compress(key.clone(), page, served.value.clone());
        }
        Ok(served)
    }

    /// Returns the page that a key had last, even if it is stale.
    fn last_page(&self, key: &AnswerKey) -> Option<RenderedPage> {
        self.answers.peek_stale(key).and_then(CachedAnswer::page)
    }

    /// Returns a found page for display at another URL, where its relative links refer to `base_url`. Each version is
    /// rewritten once, and kept beside the page.
    pub(crate) async fn at_base_url(
        &self,
        page: &RenderedPage,
        (site, slug): (&Arc<Site>, &str),
        base_url: &str,
    ) -> Result<RenderedPage, Busy> {
        let key = AnswerKey {
            base_url: Some(base_url.into()),
            ..AnswerKey::new(site.content_id(), Target::Slug(slug))
        };
        let cached = self.answers.peek(&key, Instant::now()).and_then(CachedAnswer::page);
        if let Some(rewritten) = cached.filter(|cached| cached.is_rewritten_from(page)) {
            return Ok(rewritten);
        }
        // In a task of its own: it ends even if the client disconnects, so that no request repeats the work.
        let (cache, site, page) = (self.clone(), Arc::clone(site), page.clone());
        tokio::spawn(async move { cache.rewrite(&site, key, page).await }).await.map_err(|_panicked| Busy)?
    }

    async fn rewrite(&self, site: &Site, key: AnswerKey, page: RenderedPage) -> Result<RenderedPage, Busy> {
        let last = self.last_page(&key).filter(|last| last.is_rewritten_from(&page));
        if last.is_none() {
            self.answers.remove(&key);
        }
        let load = async {
            let (source, base_url) = (page.clone(), key.base_url.clone().unwrap_or_default());
            let rewritten = match last {
                Some(last) => last,
                None => {
                    let tenant = Tenant::Site(site.subdomain_id);
                    let rewrite = move || source.with_base_url(&base_url);
                    self.loader.cpu.run(tenant, page.len(), rewrite).await?
                }
            };
            Ok(CachedAnswer::new(site, Answer::Page(rewritten), 200))
        };
        let served = self.answers.get(&key, Instant::now(), load).await?;
        let rewritten = served.value.clone().page().ok_or(Busy)?;
        if !served.hit {
            self.compress(key, &rewritten, served.value);
        }
        Ok(rewritten)
    }

    /// Compresses a new version in the background.
    fn compress(&self, key: AnswerKey, page: &RenderedPage, cached: CachedAnswer) {
        if !page.needs_compression() {
            return;
        }
        let (answers, compressor, page) = (self.answers.clone(), self.compressor.clone(), page.clone());
        tokio::spawn(async move {
            let Some(_permit) = compressor.acquire(key.content_id).await else { return };
            let is_page =
                |cached: &CachedAnswer| matches!(&cached.answer, Answer::Page(other) if other.is_same(&page));
            // Meanwhile the version may have been replaced or evicted.
            if !answers.peek_stale(&key).is_some_and(|cached| is_page(&cached)) {
                return;
            }
            let uncompressed = page.clone();
            if let Ok(compressed) = tokio::task::spawn_blocking(move || uncompressed.compressed()).await {
                let cached = CachedAnswer { answer: Answer::Page(compressed), ..cached };
                answers.replace_if(&key, is_page, cached);
            }
        });
    }

    /// Caches a page at an address without a query.
    #[cfg(test)]
    pub(crate) async fn insert(&self, site: &Site, address: &str, page: RenderedPage) {
        let key = AnswerKey::new(site.content_id(), Target::Address(address));
        let cached = CachedAnswer::new(site, Answer::Page(page), 200);
        let load = std::future::ready(Ok::<_, ReadError>(cached));
        self.answers.get(&key, Instant::now(), load).await.unwrap();
    }
}

#[cfg(test)]
mod tests {
    use service::config::{Sources, load};
    use uuid::Uuid;

    use super::*;
    use crate::config::{Config, DEFAULTS};

    const URL: &str = "https://quiet-otter.test/large";

    fn site(id: u128) -> Arc<Site> {
        Arc::new(Site { subdomain_id: Uuid::from_u128(id), ..Site::default() })
    }

    fn cache() -> AnswerCache {
        let folder = sandbox::test::folder();
        let set = vec![format!("blobs.url={}", folder.path().display())];
        let config: Config = load(DEFAULTS, &Sources { set, ..Sources::default() }).unwrap().config;
        let lookups = ReadPool::connect(&config.store, 1).unwrap();
        let blobs = Blobs::connect(&config.blobs).unwrap();
        AnswerCache::new(lookups, &config.cache, blobs, CpuWork::new(), Compressor::new(), Clock::system())
    }

    fn key_of(site: &Site, address: &str) -> AnswerKey {
        AnswerKey::new(site.content_id(), Target::Address(address))
    }

    fn large_page(id: u128, text: &str) -> RenderedPage {
        RenderedPage::new(Uuid::from_u128(id), format!("<p>{text}").repeat(100_000))
    }

    #[tokio::test]
    async fn requests_of_a_short_url_rewrite_each_version_of_a_page_once() {
        let (cache, site) = (cache(), site(1));
        let page = large_page(1, "one");
        let mut first = Box::pin(cache.at_base_url(&page, (&site, "large"), URL));
        // This test has one thread: rewriting on it would return at once.
        assert!(futures::poll!(first.as_mut()).is_pending());
        let first = first.await.unwrap();
        assert!(first.is_rewritten_from(&page) && first.len() > page.len());
        let again = cache.at_base_url(&page, (&site, "large"), URL).await.unwrap();
        assert!(again.is_same(&first) || again.is_rewritten_from(&page) && !again.needs_compression());

        let edited = large_page(1, "two");
        let rewritten = cache.at_base_url(&edited, (&site, "large"), URL).await.unwrap();
        assert!(rewritten.is_rewritten_from(&edited) && !rewritten.is_rewritten_from(&page));
        let recreated = large_page(2, "two");
        let rewritten = cache.at_base_url(&recreated, (&site, "large"), URL).await.unwrap();
        assert!(rewritten.is_rewritten_from(&recreated), "views count for the new page");
    }

    #[tokio::test]
    async fn a_site_with_many_new_pages_delays_the_compression_of_another_by_one_page() {
        let cache = cache();
        let (attacker, other) = (site(2), site(3));
        let addresses: Vec<_> = (0..40).map(|number| format!("/page-{number}")).collect();
        let sites = addresses.iter().map(|address| (&attacker, address.as_str())).chain([(&other, "/")]);
        for (site, address) in sites {
            let page = large_page(1, address);
            cache.insert(site, address, page.clone()).await;
            let cached = CachedAnswer::new(site, Answer::Page(page.clone()), 200);
            cache.compress(key_of(site, address), &page, cached);
        }
        let is_compressed = |site: &Site, address: &str| {
            let page = cache.last_page(&key_of(site, address));
            page.is_some_and(|page| !page.needs_compression())
        };
        sandbox::test::until(async || is_compressed(&other, "/")).await;
        let compressed = addresses.iter().filter(|address| is_compressed(&attacker, address)).count();
        assert!(compressed < 20, "{compressed} of the attacker's pages were compressed before");
    }

    #[tokio::test]
    async fn a_client_that_disconnects_does_not_repeat_the_rewriting_of_a_page() {
        let (cache, site) = (cache(), site(1));
        let page = large_page(1, "one");
        let slug = Target::Slug("large");
        let key = AnswerKey { base_url: Some(URL.into()), ..AnswerKey::new(site.content_id(), slug) };
        let mut cancelled = Box::pin(cache.at_base_url(&page, (&site, "large"), URL));
        assert!(futures::poll!(cancelled.as_mut()).is_pending());
        drop(cancelled);
        sandbox::test::until(async || cache.last_page(&key).is_some()).await;
        assert!(cache.last_page(&key).unwrap().is_rewritten_from(&page));
    }
}
