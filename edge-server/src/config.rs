//! The edge's settings; `config.toml` beside `src` says what each means.

use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;
use service::config::{Defaults, RenamedKeys, Secret};

/// The commented defaults.
pub const DEFAULTS: Defaults = Defaults { toml: include_str!("../config.toml"), renamed_keys: RENAMED_KEYS };

/// Keys of earlier releases, `(old path, new path)`. The old one is refused with the new one's name.
const RENAMED_KEYS: &RenamedKeys = &[];

/// How long components may take to end.
pub const GRACE: Duration = Duration::from_secs(15);

/// Everything the edge can be told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Its public addresses.
    pub http: Http,
    /// Where the inner services are.
    pub inner: Inner,
    /// Postgres.
    pub store: store::Config,
    /// Redis.
    pub redis: cache::Config,
    /// Where bytes of users are.
    pub blobs: blobs::Config,
    /// How uploads are taken.
    pub uploads: Uploads,
    /// What holds for forms.
    pub forms: Forms,
    /// What must never be shown.
    pub secrets: Secrets,
    /// What is remembered.
    pub cache: Cache,
    /// What visitors' connections may do.
    pub connections: Connections,
    /// How views are counted.
    pub views: Views,
}

/// Section `[http]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// The address visitors and API clients use.
    pub base_url: String,
    /// The domain of all sites.
    pub sites_domain: String,
    /// Whose forwarding headers are believed.
    pub trusted_proxies: Vec<IpNet>,
}

/// Section `[inner]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inner {
    /// The control plane's address.
    pub control_plane: String,
    /// The collector's address.
    pub collector: String,
    /// How long the head of an answer may take.
    #[serde(with = "service::config::duration")]
    pub answer_within: Duration,
    /// The same where much is sent or done.
    #[serde(with = "service::config::duration")]
    pub long_answer_within: Duration,
}

/// Section `[secrets]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Proves an edge.
    pub edge_token: Secret,
}

/// Section `[uploads]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uploads {
    /// How long nothing may come.
    #[serde(with = "service::config::duration")]
    pub patience: Duration,
}

/// Section `[forms]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forms {
    /// How long an answer is given again.
    #[serde(with = "service::config::duration")]
    pub answers_kept_for: Duration,
    /// How long a submission waits for its form, for whoever counts its account's files, or for its turn.
    #[serde(with = "service::config::duration")]
    pub wait_within: Duration,
    /// Connections to Postgres for one form whose submissions wait for each other.
    pub connections_per_form: usize,
    /// How long an upload's address is good.
    #[serde(with = "service::config::duration")]
    pub upload_within: Duration,
    /// How long a challenge is good.
    #[serde(with = "service::config::duration")]
    pub proof_within: Duration,
    /// How long a download's address is good.
    #[serde(with = "service::config::duration")]
    pub download_within: Duration,
    /// Bytes of a form's files that wait to be handed in.
    pub unbound_bytes_per_form: i64,
    /// The same of one visitor.
    pub unbound_bytes_per_visitor: i64,
}

/// Section `[cache]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Memory for pages.
    pub page_bytes: u64,
    /// Memory for hosts.
    pub host_bytes: u64,
    /// Memory for small files.
    pub file_bytes: u64,
    /// Connections to Postgres for what isn't remembered.
    pub lookup_connections: u32,
    /// How old an entry may be.
    #[serde(with = "service::config::duration")]
    pub fresh_for: Duration,
}

impl Cache {
    /// The bounds of a cache of at most `max_bytes`.
    pub(crate) fn bounds(&self, max_bytes: u64) -> cache::Bounds {
        cache::Bounds { max_bytes, max_age: self.fresh_for, retry_interval: Duration::from_secs(1) }
    }
}

/// Section `[connections]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// How many there may be.
    pub max: usize,
    /// How many requests one of HTTP/2 may have open.
    pub streams: u32,
    /// What a request's headers may weigh.
    pub header_bytes: u32,
    /// Whether plain requests for known pages are answered without hyper.
    pub quick_lane: bool,
    /// How long a new connection may take to ask for something.
    #[serde(with = "service::config::duration")]
    pub header_timeout: Duration,
    /// How long one may ask for nothing.
    #[serde(with = "service::config::duration")]
    pub idle_timeout: Duration,
    /// How long a request's body may let us wait.
    #[serde(with = "service::config::duration")]
    pub body_patience: Duration,
}

/// Section `[views]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Views {
    /// How often counts are written down.
    #[serde(with = "service::config::duration")]
    pub flush_every: Duration,
}

/// A weight as caches count it.
pub(crate) fn weight(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
