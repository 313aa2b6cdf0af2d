//! The configuration sections that every service has.

use std::net::{Ipv4Addr, SocketAddr};

use serde::Deserialize;

use super::defaults::Defaults;
use crate::telemetry;

/// The commented defaults of the sections in [`BaseConfig`]. `[listen]` is not among them: its ports differ between
/// services, so each service's own default file has it.
pub const BASE_DEFAULTS: Defaults = Defaults {
    toml: include_str!("base_config.toml"),
    renamed_keys: &[("telemetry.otlp_metrics_every", "telemetry.otlp_metrics_interval")],
};

/// The configuration sections that every service has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseConfig {
    /// `[listen]`. Defaults to free loopback ports if the service's default file has no such section.
    #[serde(default)]
    pub listen: Listen,
    /// `[telemetry]`
    pub telemetry: telemetry::Config,
}

/// `[listen]`: the addresses a service binds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// Address of the service's own traffic.
    pub main: SocketAddr,
    /// Address of the health, readiness and metrics endpoints.
    pub ops: SocketAddr,
}

impl Default for Listen {
    fn default() -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { main: free, ops: free }
    }
}
