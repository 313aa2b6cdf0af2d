//! What every part of the edge is handed.

use std::ops::Deref;
use std::sync::Arc;

use contract::Signal;
use domain::addresses::Addresses;
use service::config::ExposeSecret;
use service::{Clock, Rng};

use crate::assets::Assets;
use crate::config::Config;
use crate::files::Files;
use crate::forms::Forms;
use crate::lookups::LookUps;
use crate::pages::Pages;
use crate::proxy::Inner;
use crate::sending::Bodies;
use crate::short::Holders;
use crate::sites::Sites;
use crate::uploads::Uploads;
use crate::visitor::Proxies;

/// The edge's parts. Cheap to clone.
#[derive(Clone)]
pub struct Edge(Arc<Parts>);

/// See [`Edge`].
pub struct Parts {
    /// Postgres.
    pub(crate) db: store::Db,
    /// Tells and hears what has changed.
    pub(crate) bus: cache::Bus<Signal>,
    /// Which host shows which site.
    pub(crate) sites: Sites,
    /// What visitors see of sites.
    pub(crate) pages: Pages,
    /// Which site's page holds which bare address.
    pub(crate) holders: Holders,
    /// Which form asks what.
    pub(crate) forms: Forms,
    /// Which asset is what.
    pub(crate) assets: Assets,
    /// Which files a site has.
    pub(crate) files: Files,
    /// The bytes of small files.
    pub(crate) bodies: Bodies,
    /// Where bytes are.
    pub(crate) blobs: blobs::Blobs,
    /// How uploads are taken.
    pub(crate) uploads: Uploads,
    /// The services behind.
    pub(crate) inner: Inner,
    /// How addresses are written.
    pub(crate) addresses: Addresses,
    /// Whose forwarding headers are believed.
    pub(crate) proxies: Proxies,
    /// Now.
    pub(crate) clock: Clock,
    /// Chance.
    pub(crate) rng: Rng,
}

impl Deref for Edge {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Edge {
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
        let db = store::connect(&config.store)?;
        let lookups = LookUps::new(db.clone());
        let blobs = blobs::Blobs::connect(&config.blobs)?;
        Ok(Self(Arc::new(Parts {
            bus: cache::Bus::connect(&config.redis.url, &config.redis.prefix)?,
            sites: Sites::new(lookups.clone(), &config.cache),
            pages: Pages::new(lookups.clone(), &config.cache),
            holders: Holders::new(lookups.clone(), &config.cache),
            assets: Assets::new(lookups.clone(), &config.cache),
            files: Files::new(lookups.clone(), &config.cache),
            bodies: Bodies::new(blobs.clone(), config.cache.file_bytes),
            blobs,
            uploads: Uploads::new(token, &config.uploads),
            forms: Forms::new(lookups, &config.cache)?,
            inner: Inner::new(&config.inner, token)?,
            addresses: Addresses::new(&config.http.base_url, &config.http.sites_domain)?,
            proxies: Proxies::new(config.http.trusted_proxies.clone()),
            clock: Clock::system(),
            rng: Rng::system(),
            db,
        })))
    }
}
