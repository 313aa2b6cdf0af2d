//! What every part of the edge is handed.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use cache::Served;
use contract::Signal;
use domain::addresses::Addresses;
use domain::encryption::MasterKey;
use service::config::ExposeSecret;
use service::metrics::FastCounter;
use service::{Clock, Rng};
use tokio::time::timeout;
use web::Problem;

use crate::client_ip::TrustedProxies;
use crate::config::{self, Config};
use crate::forms::form_cache::FormCache;
use crate::forms::results::Results;
use crate::proxy::Inner;
use crate::read_pool::ReadPool;
use crate::sites::files::assets::Assets;
use crate::sites::files::file_body::FileBodyCache;
use crate::sites::files::site_files::Files;
use crate::sites::page_response::CacheStatus;
use crate::sites::page_views::Views;
use crate::sites::pages::page_cache::Pages;
use crate::sites::short_urls::ShortUrlCache;
use crate::sites::site_cache::SiteCache;
use crate::sites::sitemaps::SitemapCache;
use crate::submissions::admission::Admission;
use crate::submissions::group_commit::GroupCommit;
use crate::uploads::signed_uploads::Uploads;

/// The edge's parts. Cheap to clone.
#[derive(Clone)]
pub struct EdgeState(Arc<Parts>);

/// See [`EdgeState`].
pub struct Parts {
    /// Postgres.
    pub(crate) db: store::Db,
    /// Tells and hears what has changed.
    pub(crate) bus: cache::Bus<Signal>,
    /// Which host shows which site.
    pub(crate) sites: SiteCache,
    /// What visitors see of sites.
    pub(crate) pages: Pages,
    /// Which site's page holds which bare address.
    pub(crate) holders: ShortUrlCache,
    /// What search engines are told of sites.
    pub(crate) site_maps: SitemapCache,
    /// How often pages were viewed.
    pub(crate) views: Views,
    /// How many pages were served, in the order of [`CacheStatus::ALL`].
    served: [FastCounter; 3],
    /// Which form asks what.
    pub(crate) forms: FormCache,
    /// Where submissions of plain forms are stored.
    pub(crate) together: GroupCommit,
    /// Where submissions wait for edits of their forms.
    pub(crate) form_lines: Admission,
    /// What forms' answers come to.
    pub(crate) results: Results,
    /// Which asset is what.
    pub(crate) assets: Assets,
    /// Which files a site has.
    pub(crate) files: Files,
    /// The bytes of small files.
    pub(crate) bodies: FileBodyCache,
    /// Where bytes are.
    pub(crate) blobs: blobs::Blobs,
    /// How uploads are taken.
    pub(crate) uploads: Uploads,
    /// What holds for forms.
    pub(crate) form_rules: config::Forms,
    /// The services behind.
    pub(crate) inner: Inner,
    /// How addresses are written.
    pub(crate) addresses: Addresses,
    /// Whose forwarding headers are believed.
    pub(crate) proxies: TrustedProxies,
    /// Now.
    pub(crate) clock: Clock,
    /// Chance.
    pub(crate) rng: Rng,
}

impl Deref for EdgeState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl EdgeState {
    /// Puts the parts together. Nothing is connected to yet: the edge starts while its stores are away.
    ///
    /// # Errors
    /// A setting can't be used.
    pub fn new(config: &Config) -> anyhow::Result<Self> {
        let token = config.secrets.edge_token.expose_secret();
        anyhow::ensure!(
            token.len() >= 16,
            "secrets.edge_token must have at least 16 characters, the same as at the inner services: without \
             it they would take all visitors for one"
        );
        let db = store::connect_with_lock_timeout(&config.store, config.forms.wait_within)?;
        let lookups = ReadPool::connect(&config.store, config.cache.lookup_connections)?;
        let blobs = blobs::Blobs::connect(&config.blobs)?;
        let rng = Rng::system();
        let bus = cache::Bus::connect(&config.redis.url, &config.redis.prefix)?;
        Ok(Self(Arc::new(Parts {
            sites: SiteCache::new(lookups.clone(), &config.cache),
            pages: Pages::new(lookups.clone(), &config.cache),
            holders: ShortUrlCache::new(lookups.clone(), &config.cache),
            site_maps: SitemapCache::new(lookups.clone(), &config.cache),
            views: Views::new(lookups.clone()),
            served: service::metrics::fast_counters(
                "edge_page_serve_total",
                "from",
                CacheStatus::ALL.map(CacheStatus::as_str),
            ),
            together: GroupCommit::new(db.clone(), bus.clone(), config.forms.wait_within),
            bus,
            form_lines: Admission::new(config.forms.wait_within, config.forms.connections_per_form),
            results: Results::new(),
            assets: Assets::new(lookups.clone(), &config.cache),
            files: Files::new(lookups.clone(), &config.cache),
            bodies: FileBodyCache::new(blobs.clone(), config.cache.file_bytes),
            blobs,
            uploads: Uploads::new(token, &config.uploads),
            forms: FormCache::new(
                lookups,
                &config.cache,
                MasterKey::of_secret(token.as_bytes()),
                rng.bytes(),
            )?,
            form_rules: config.forms.clone(),
            inner: Inner::new(&config.inner, token)?,
            addresses: Addresses::new(&config.http.base_url, &config.http.sites_domain)?,
            proxies: TrustedProxies::new(config.http.trusted_proxies.clone()),
            clock: Clock::system(),
            rng,
            db,
        })))
    }

    /// Asks Postgres, and gives up once that has taken as long as a few statements may: its connection is closed then.
    ///
    /// # Errors
    /// The question's; a problem if there is no answer in time.
    pub(crate) async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&mut store::Conn) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let answer = async {
            let mut conn = store::acquire_cancel_safe(&self.db).await?;
            let answer = question(&mut conn).await;
            conn.release();
            answer
        };
        self.patiently(answer).await
    }

    /// Does some work within a transaction, which is rolled back unless the work is done. That may take as long as `limit`;
    /// what of it waits for Postgres alone should say so ([`EdgeState::patiently`]).
    ///
    /// # Errors
    /// The work's; a problem that says whether anything may have happened.
    pub(crate) async fn transact<T>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut store::Conn) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut conn = self.patiently(async { Ok(store::acquire_cancel_safe(&self.db).await?) }).await?;
        let mut tx = self.patiently(async { Ok(store::begin_with_timeout(&mut conn, limit).await?) }).await?;
        let done = timeout(limit, work(&mut tx)).await.map_err(|_elapsed| Problem::nothing_changed())?;
        match done {
            Ok(done) => {
                // It may have happened though this is never heard of.
                let committed = timeout(self.patience(), store::commit(tx)).await;
                committed.map_err(|_elapsed| Problem::outcome_unknown())?.map_err(Problem::commit_failed)?;
                conn.release();
                Ok(done)
            }
            Err(problem) => {
                // Before the answer: nothing stays locked behind it.
                if let Ok(Ok(())) = timeout(self.patience(), store::rollback(tx)).await {
                    conn.release();
                }
                Err(problem)
            }
        }
    }

    /// Waits for Postgres as long as for a few statements.
    ///
    /// # Errors
    /// The work's; a problem if that takes longer.
    pub(crate) async fn patiently<T>(
        &self,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        timeout(self.patience(), work).await.unwrap_or_else(|_elapsed| Err(Problem::nothing_changed()))
    }

    /// How long a few statements of a visitor's may take. Each waits for locks for half of that; what isn't over by then
    /// waits for several, or Postgres is dead.
    pub(crate) fn patience(&self) -> Duration {
        2 * self.form_rules.wait_within
    }

    /// Counts a page that is served.
    pub(crate) fn count(&self, from: CacheStatus) {
        self.served[from as usize].add(1);
    }

    /// How a page was come by, which is counted.
    pub(crate) fn record_cache_status<T>(&self, page: &Served<T>) -> CacheStatus {
        let from = match (page.stale, page.hit) {
            (true, _) => CacheStatus::Past,
            (false, true) => CacheStatus::Memory,
            (false, false) => CacheStatus::Store,
        };
        self.count(from);
        from
    }
}
