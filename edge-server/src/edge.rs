//! What every part of the edge is handed.

use std::ops::Deref;
use std::sync::Arc;

use contract::Signal;
use domain::addresses::Addresses;
use service::config::ExposeSecret;
use service::{Clock, Rng};

use crate::config::Config;
use crate::forms::Forms;
use crate::pages::Pages;
use crate::proxy::Inner;
use crate::sites::Sites;
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
    /// Which form asks what.
    pub(crate) forms: Forms,
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
        let db = store::connect(&config.store)?;
        Ok(Self(Arc::new(Parts {
            bus: cache::Bus::connect(&config.redis.url, &config.redis.prefix)?,
            sites: Sites::new(db.clone(), &config.cache),
            pages: Pages::new(db.clone(), &config.cache),
            forms: Forms::new(db.clone(), &config.cache),
            inner: Inner::new(&config.inner, config.secrets.edge_token.expose_secret())?,
            addresses: Addresses::new(&config.http.base_url, &config.http.sites_domain)?,
            proxies: Proxies::new(config.http.trusted_proxies.clone()),
            clock: Clock::system(),
            rng: Rng::system(),
            db,
        })))
    }
}
