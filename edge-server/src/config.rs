//! The settings of the edge; `config.toml` documents each.

use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;
use service::config::{Defaults, RenamedKeys, Secret};

/// The commented defaults.
pub const DEFAULTS: Defaults = Defaults { toml: include_str!("../config.toml"), renamed_keys: RENAMED_KEYS };

/// Keys of earlier releases, `(old path, new path)`. The old one is refused with the new one's name.
const RENAMED_KEYS: &RenamedKeys = &[
    ("inner", "upstreams"),
    ("inner.answer_within", "upstreams.response_timeout"),
    ("inner.long_answer_within", "upstreams.long_response_timeout"),
    ("uploads.patience", "uploads.stall_timeout"),
    ("forms.answers_kept_for", "forms.idempotency_ttl"),
    ("forms.wait_within", "forms.lock_timeout"),
    ("forms.connections_per_form", "forms.max_connections_per_form"),
    ("forms.upload_within", "forms.upload_url_ttl"),
    ("forms.download_within", "forms.download_url_ttl"),
    ("forms.proof_within", "forms.challenge_ttl"),
    ("forms.unbound_bytes_per_form", "forms.max_unbound_bytes_per_form"),
    ("forms.unbound_bytes_per_visitor", "forms.max_unbound_bytes_per_visitor"),
    ("cache.page_bytes", "cache.max_page_bytes"),
    ("cache.host_bytes", "cache.max_host_bytes"),
    ("cache.file_bytes", "cache.max_file_bytes"),
    ("cache.fresh_for", "cache.max_age"),
    ("connections.streams", "connections.max_streams"),
    ("connections.header_bytes", "connections.max_header_bytes"),
    ("connections.quick_lane", "connections.fast_path"),
    ("connections.body_patience", "connections.body_timeout"),
    ("views.flush_every", "views.flush_interval"),
];

/// Time that components have to end on shutdown.
pub const GRACE: Duration = Duration::from_secs(15);

/// All settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub http: Http,
    pub upstreams: Upstreams,
    pub store: store::Config,
    pub redis: cache::Config,
    pub blobs: blobs::Config,
    pub uploads: Uploads,
    pub forms: Forms,
    pub secrets: Secrets,
    pub cache: Cache,
    pub connections: Connections,
    pub views: Views,
}

/// Section `[http]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    pub base_url: String,
    pub sites_domain: String,
    pub trusted_proxies: Vec<IpNet>,
}

/// Section `[upstreams]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstreams {
    pub control_plane: String,
    pub collector: String,
    #[serde(with = "service::config::duration")]
    pub response_timeout: Duration,
    #[serde(with = "service::config::duration")]
    pub long_response_timeout: Duration,
}

/// Section `[secrets]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    pub edge_token: Secret,
}

/// Section `[uploads]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uploads {
    #[serde(with = "service::config::duration")]
    pub stall_timeout: Duration,
}

/// Section `[forms]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forms {
    #[serde(with = "service::config::duration")]
    pub idempotency_ttl: Duration,
    #[serde(with = "service::config::duration")]
    pub lock_timeout: Duration,
    pub max_connections_per_form: usize,
    #[serde(with = "service::config::duration")]
    pub upload_url_ttl: Duration,
    #[serde(with = "service::config::duration")]
    pub challenge_ttl: Duration,
    #[serde(with = "service::config::duration")]
    pub download_url_ttl: Duration,
    pub max_unbound_bytes_per_form: i64,
    pub max_unbound_bytes_per_visitor: i64,
}

/// Section `[cache]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    pub max_page_bytes: u64,
    pub max_host_bytes: u64,
    pub max_file_bytes: u64,
    pub lookup_connections: u32,
    #[serde(with = "service::config::duration")]
    pub max_age: Duration,
}

impl Cache {
    /// Returns the bounds of a cache of at most `max_bytes`.
    pub(crate) fn bounds(&self, max_bytes: u64) -> cache::Bounds {
        cache::Bounds { max_bytes, max_age: self.max_age, retry_interval: Duration::from_secs(1) }
    }
}

/// Section `[connections]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    pub max: usize,
    pub max_streams: u32,
    pub max_header_bytes: u32,
    pub fast_path: bool,
    #[serde(with = "service::config::duration")]
    pub header_timeout: Duration,
    #[serde(with = "service::config::duration")]
    pub idle_timeout: Duration,
    #[serde(with = "service::config::duration")]
    pub body_timeout: Duration,
}

/// Section `[views]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Views {
    #[serde(with = "service::config::duration")]
    pub flush_interval: Duration,
}

/// Returns a size as a cache weight.
pub(crate) fn weight(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
