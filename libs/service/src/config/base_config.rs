//! The configuration sections that every service has.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::defaults::Defaults;
use crate::{Drain, telemetry};

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
    /// Address of the service's own traffic over TLS; an empty text turns it off.
    #[serde(default, deserialize_with = "optional_address")]
    pub https: Option<SocketAddr>,
    /// Whether connections to `main` begin with a PROXY protocol header.
    #[serde(default)]
    pub proxy_protocol: ProxyProtocol,
    /// Whether connections to `https` begin with a PROXY protocol header.
    #[serde(default)]
    pub https_proxy_protocol: ProxyProtocol,
    /// Address of the health, readiness and metrics endpoints.
    pub ops: SocketAddr,
    /// How long connections are still accepted after SIGTERM.
    #[serde(default, with = "super::duration")]
    pub drain: Duration,
    /// How long running requests have when connections are no longer accepted.
    #[serde(default = "default_drain_timeout", with = "super::duration")]
    pub drain_timeout: Duration,
}

impl Listen {
    /// Returns how connections end on shutdown.
    pub(crate) fn drain(&self) -> Drain {
        Drain { period: self.drain, timeout: self.drain_timeout }
    }
}

fn default_drain_timeout() -> Duration {
    Drain::default().timeout
}

/// Whether connections begin with a PROXY protocol header, which names the client of a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyProtocol {
    /// No connection has one.
    #[default]
    Off,
    /// Every connection has one, and is closed otherwise.
    Required,
}

fn optional_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    let address = text.parse().map_err(|_invalid| {
        D::Error::custom(format!(
            "must be an IP address with a port, like 0.0.0.0:443, or empty, not `{text}`"
        ))
    })?;
    Ok(Some(address))
}

impl Default for Listen {
    fn default() -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self {
            main: free,
            https: None,
            proxy_protocol: ProxyProtocol::Off,
            https_proxy_protocol: ProxyProtocol::Off,
            ops: free,
            drain: Duration::ZERO,
            drain_timeout: default_drain_timeout(),
        }
    }
}
