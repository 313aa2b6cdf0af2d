//! The state that all handlers share: stores, caches, and settings. It knows no handler.

use std::ops::Deref;
use std::sync::Arc;

use contract::Signal;
use domain::addresses::Addresses;
use domain::encryption::MasterKey;
use service::config::ExposeSecret;
use service::{Clock, Rng};
use store::read_pool::ReadPool;

use crate::client_ip::TrustedProxies;
use crate::config::{self, Config};
use crate::cpu_work::CpuWork;
use crate::database::Database;
use crate::forms::form_cache::FormCache;
use crate::forms::pages::renderer::FormRenderer;
use crate::forms::result_cache::ResultCache;
use crate::inner_services::InnerServices;
use crate::sites::answers::answer_cache::AnswerCache;
use crate::sites::files::assets::AssetCache;
use crate::sites::files::file_body::FileBodyCache;
use crate::sites::page_response::PageResponder;
use crate::sites::page_views::PageViews;
use crate::sites::pages::compressor::Compressor;
use crate::sites::short_url_cache::ShortUrlCache;
use crate::sites::site_cache::SiteCache;
use crate::sites::sitemaps::SitemapCache;
use crate::submissions::admission::Admission;
use crate::submissions::group_commit::GroupCommit;
use crate::submissions::rate_limit::SubmissionRate;
use crate::tls::{Challenges, TlsTermination};
use crate::uploads::upload_urls::UploadUrls;

/// The shared state. Cheap to clone.
#[derive(Clone)]
pub(crate) struct EdgeState(Arc<StateInner>);

/// See [`EdgeState`].
pub(crate) struct StateInner {
    pub(crate) db: Database,
    /// Publishes and receives invalidations.
    pub(crate) bus: cache::Bus<Signal>,
    pub(crate) sites: SiteCache,
    pub(crate) answers: AnswerCache,
    pub(crate) short_urls: ShortUrlCache,
    pub(crate) sitemaps: SitemapCache,
    pub(crate) page_responder: PageResponder,
    pub(crate) forms: FormCache,
    pub(crate) form_renderer: Arc<FormRenderer>,
    pub(crate) results: ResultCache,
    /// `None` without a master key.
    pub(crate) tls: Option<TlsTermination>,
    pub(crate) challenges: Challenges,
    pub(crate) group_commit: GroupCommit,
    pub(crate) admission: Admission,
    pub(crate) submission_rate: SubmissionRate,
    pub(crate) assets: AssetCache,
    pub(crate) file_bodies: FileBodyCache,
    pub(crate) blobs: blobs::Blobs,
    pub(crate) upload_urls: UploadUrls,
    pub(crate) uploads: config::Uploads,
    pub(crate) form_settings: config::Forms,
    pub(crate) inner: InnerServices,
    pub(crate) cpu: CpuWork,
    /// The public addresses of the base host and of sites.
    pub(crate) addresses: Addresses,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
}

impl Deref for EdgeState {
    type Target = StateInner;

    fn deref(&self) -> &StateInner {
        &self.0
    }
}

impl EdgeState {
    /// Builds the state. It connects to nothing yet, so the edge starts while its stores are unavailable.
    ///
    /// # Errors
    /// A setting is invalid.
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        let token = config.secrets.edge_token.expose_secret();
        web::EdgeTrust::new(token)?;
        let lock_timeout = config.forms.lock_timeout;
        let db = store::connect_with_lock_timeout(&config.store, lock_timeout)?;
        let lookups = ReadPool::connect(&config.store, config.cache.lookup_connections)?;
        config.blobs.check(config.http.edges)?;
        let blobs = blobs::Blobs::connect(&config.blobs)?;
        let (clock, rng) = (Clock::remote(), Rng::system());
        let addresses = Addresses::new(&config.http.base_url, &config.http.sites_domain)?;
        let (cpu, compressor) = (CpuWork::new(), Compressor::new());
        let bus = cache::Bus::connect(&config.redis, &config.redis.prefix)?;
        let key = MasterKey::of_secret(token.as_bytes());
        Ok(Self(Arc::new(StateInner {
            sites: SiteCache::new(lookups.clone(), &config.cache, cpu.clone()),
            answers: AnswerCache::new(
                lookups.clone(),
                &config.cache,
                blobs.clone(),
                cpu.clone(),
                compressor.clone(),
                clock.clone(),
            ),
            short_urls: ShortUrlCache::new(lookups.clone(), &config.cache),
            sitemaps: SitemapCache::new(lookups.clone(), &config.cache, cpu.clone()),
            page_responder: PageResponder::new(PageViews::new(lookups.clone())),
            group_commit: GroupCommit::new(db.clone(), bus.clone(), lock_timeout),
            bus,
            admission: Admission::new(lock_timeout, config.forms.max_connections_per_form),
            submission_rate: SubmissionRate::new(
                [config.forms.max_submissions_per_minute, config.forms.max_submissions_per_day],
                &config.redis,
                token.as_bytes(),
            )?,
            results: ResultCache::new(),
            tls: TlsTermination::new(config, lookups.clone(), &clock, &rng)?,
            challenges: Challenges::new(lookups.clone(), clock.clone()),
            assets: AssetCache::new(lookups.clone(), &config.cache),
            file_bodies: FileBodyCache::new(blobs.clone(), config.cache.max_file_bytes, compressor),
            blobs,
            upload_urls: UploadUrls::new(token.as_bytes()),
            uploads: config.uploads.clone(),
            forms: FormCache::new(lookups, &config.cache, cpu.clone()),
            cpu,
            form_renderer: Arc::new(FormRenderer::new(key, addresses.clone(), rng.bytes())?),
            form_settings: config.forms.clone(),
            inner: InnerServices::new(&config.upstreams, token)?,
            addresses,
            trusted_proxies: TrustedProxies::new(config.http.trusted_proxies.clone()),
            clock,
            rng,
            db: Database::new(db, lock_timeout),
        })))
    }
}
