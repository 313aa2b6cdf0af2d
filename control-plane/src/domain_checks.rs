//! What checks of custom domains need. The control plane makes those that owners ask for, the job-runner those that are due.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::Context as _;
use chrono::TimeDelta;
use domain::domains::Routing;
use serde::Deserialize;

/// Section `[domains]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domains {
    /// The name for CNAME records; empty for the name of the site itself.
    pub cname_target: String,
    /// The edges' addresses; empty for those of the CNAME target.
    pub addresses: Vec<IpAddr>,
    /// DNS resolvers; empty for the system's.
    pub resolvers: Vec<String>,
    /// Delays between checks.
    #[serde(with = "service::config::duration::list")]
    pub check_schedule: Vec<Duration>,
    /// The names by which CAA records know the certificate authorities.
    pub caa_identities: Vec<String>,
    /// Age of the last check from which a call checks again.
    #[serde(with = "service::config::duration")]
    pub recheck_after: Duration,
}

/// What checks of custom domains need.
pub struct DomainChecks {
    /// Looks up DNS records.
    pub resolver: dns::Resolver,
    /// Where domains must lead.
    pub routing: Routing,
    /// Age of the last check from which a call checks again.
    pub recheck_after: TimeDelta,
    /// Delays between checks.
    pub schedule: Vec<Duration>,
}

impl DomainChecks {
    /// Fails if a setting is invalid.
    pub fn new(config: &Domains, sites_domain: &str) -> anyhow::Result<Self> {
        anyhow::ensure!(!config.check_schedule.is_empty(), "domains.check_schedule needs at least one delay");
        Ok(Self {
            resolver: dns::Resolver::new(&config.resolvers).context("domains.resolvers")?,
            routing: Routing {
                cname_target: config.cname_target.clone(),
                sites_domain: sites_domain.to_owned(),
                addresses: config.addresses.clone(),
                caa_identities: config.caa_identities.clone(),
            },
            recheck_after: TimeDelta::from_std(config.recheck_after).context("domains.recheck_after")?,
            schedule: config.check_schedule.clone(),
        })
    }
}
