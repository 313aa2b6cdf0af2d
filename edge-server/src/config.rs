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

/// Time that components have to end on shutdown, once the connections are drained.
pub const GRACE: Duration = Duration::from_secs(15);

/// Open files beside connections: stores, files that are being sent, and the log.
const OTHER_OPEN_FILES: usize = 200;

/// By default an address may have this part of all connections: a sixteenth.
const SHARE_PER_ADDRESS_BY_DEFAULT: usize = 16;
/// The default of small installations; an office behind one address needs as many.
const MIN_PER_ADDRESS_BY_DEFAULT: usize = 64;

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
    pub tls: Tls,
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
    pub edges: u32,
}

/// Section `[upstreams]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstreams {
    pub control_plane: String,
    pub collector: String,
    #[serde(with = "service::config::duration")]
    pub connect_retry: Duration,
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
    pub master_key: Secret,
}

/// Section `[tls]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    #[serde(with = "service::config::duration")]
    pub handshake_timeout: Duration,
    pub max_handshakes: usize,
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
    pub max_submissions_per_minute: u32,
    pub max_submissions_per_day: u32,
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
    pub max_certificate_bytes: u64,
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
    pub max_per_address: i64,
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

impl Connections {
    /// Returns the maximum of one address; `None` if it is not limited. A negative setting stands for the default.
    pub(crate) fn address_limit(&self) -> Option<usize> {
        match usize::try_from(self.max_per_address) {
            Ok(0) => None,
            Ok(limit) => Some(limit),
            Err(_negative) => Some(MIN_PER_ADDRESS_BY_DEFAULT.max(self.max / SHARE_PER_ADDRESS_BY_DEFAULT)),
        }
    }

    /// Returns the number of open files that `max` connections may need, each with one to an inner service.
    pub(crate) fn open_files(&self) -> u64 {
        (2 * self.max + OTHER_OPEN_FILES) as u64
    }

    /// Lowers `max` to what fits into a limit of open files. Beyond the limit every accept would fail, also that of a
    /// connection which could replace an idle one.
    pub(crate) fn within(mut self, open_files: u64) -> Self {
        let open_files = usize::try_from(open_files).unwrap_or(usize::MAX);
        let fits = (open_files.saturating_sub(OTHER_OPEN_FILES) / 2).max(1);
        if fits < self.max {
            tracing::warn!(
                max = self.max,
                lowered_to = fits,
                open_files,
                "connections.max is lowered, because the limit of open files (ulimit -Hn) leaves no room for more"
            );
            self.max = fits;
        }
        self
    }
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

#[cfg(test)]
mod tests {
    use service::config::{Sources, load};

    use super::*;

    fn connections(max: usize, max_per_address: i64) -> Connections {
        let defaults: Config = load(DEFAULTS, &Sources::default()).unwrap().config;
        Connections { max, max_per_address, ..defaults.connections }
    }

    #[test]
    fn an_address_has_a_sixteenth_of_the_connections_and_at_least_64() {
        assert_eq!(
            load::<Config>(DEFAULTS, &Sources::default()).unwrap().config.connections.max_per_address,
            -1
        );
        assert_eq!(connections(20_000, -1).address_limit(), Some(1_250));
        assert_eq!(connections(412, -1).address_limit(), Some(64));
        assert_eq!(connections(20_000, 7).address_limit(), Some(7));
        assert_eq!(connections(20_000, 0).address_limit(), None);
    }

    #[test]
    fn https_is_off_unless_it_has_an_address() {
        let listen = |set: &str| {
            let sources = Sources { set: vec![set.to_owned()], ..Sources::default() };
            load::<Config>(DEFAULTS, &sources).map(|loaded| loaded.base.listen)
        };
        assert_eq!(listen("listen.https=").unwrap().https, None);
        assert_eq!(listen("listen.https=0.0.0.0:443").unwrap().https, Some(([0, 0, 0, 0], 443).into()));
        for wrong in ["listen.https=443", "listen.https=localhost:443", "listen.proxy_protocol=on"] {
            let error = listen(wrong).unwrap_err().to_string();
            let key = wrong.split('=').next().unwrap();
            assert!(error.contains(key), "{wrong}: {error}");
        }
    }

    #[test]
    fn connections_are_lowered_unless_twice_as_many_files_and_200_more_fit() {
        let max = |open_files| connections(20_000, -1).within(open_files).max;
        assert_eq!([40_200, 40_199, 1_024, 201, 0, u64::MAX].map(max), [20_000, 19_999, 412, 1, 1, 20_000]);
        assert_eq!(connections(20_000, -1).open_files(), 40_200);
    }
}
