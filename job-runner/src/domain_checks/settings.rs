//! What checks of custom domains need.

use std::time::Duration;

use anyhow::Context as _;
use domain::domains::Routing;

use crate::config::Domains;

/// What checks need.
pub(crate) struct DomainChecks {
    pub(super) resolver: dns::Resolver,
    pub(super) routing: Routing,
    pub(super) schedule: Vec<Duration>,
}

impl DomainChecks {
    /// Fails if a setting is invalid.
    pub(crate) fn new(config: &Domains, sites_domain: &str) -> anyhow::Result<Self> {
        anyhow::ensure!(!config.check_schedule.is_empty(), "domains.check_schedule needs at least one delay");
        Ok(Self {
            resolver: dns::Resolver::new(&config.resolvers).context("domains.resolvers")?,
            routing: Routing {
                cname_target: config.cname_target.clone(),
                sites_domain: sites_domain.to_owned(),
                addresses: config.addresses.clone(),
                caa_identities: config.caa_identities.clone(),
            },
            schedule: config.check_schedule.clone(),
        })
    }
}
