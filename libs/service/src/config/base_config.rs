//! The sections every service has, so that no service writes them down again.

use std::net::{Ipv4Addr, SocketAddr};

use serde::Deserialize;

use crate::telemetry;

/// The commented defaults of the sections in [`Chassis`], but for `[listen]`, which each service gives itself.
pub const CHASSIS_DEFAULTS: &str = include_str!("chassis.toml");

/// The sections every service has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chassis {
    /// `[listen]`; free ports on the loopback address where a service's defaults have no such section.
    #[serde(default)]
    pub listen: Listen,
    /// `[telemetry]`
    pub telemetry: telemetry::Config,
}

/// `[listen]`: the addresses a service binds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// For the service's own traffic.
    pub main: SocketAddr,
    /// For health, readiness and metrics.
    pub ops: SocketAddr,
}

impl Default for Listen {
    fn default() -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { main: free, ops: free }
    }
}
