//! The state of sign-in: its settings, cookies, providers and page templates.

use domain::addresses::Addresses;
use service::Clock;

use super::config::Config;
use super::cookie::Cookies;
use super::providers::Providers;
use super::templates::Templates;

/// Everything that sign-in needs besides the stores.
pub struct SignIn {
    pub(crate) config: Config,
    pub(crate) cookies: Cookies,
    pub(super) providers: Providers,
    pub(super) templates: Templates,
}

impl SignIn {
    pub(crate) fn new(config: &Config, addresses: &Addresses, clock: &Clock) -> anyhow::Result<Self> {
        config.check(addresses)?;
        Ok(Self {
            cookies: Cookies::new(addresses),
            providers: Providers::new(config, addresses, clock)?,
            templates: Templates::new()?,
            config: config.clone(),
        })
    }
}
