//! The client of `fetch` steps: public addresses and the base host.

use std::time::Duration;

use outbound::{Allow, Client, Config};
use url::{Origin, Url};

/// Maximum size of an answer's body, in bytes.
pub(super) const BODY_BYTES_MAX: usize = 1 << 20;
/// The longest time limit that a step may have.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The client of `fetch` steps.
pub(crate) struct FetchClient {
    pub(super) client: Client,
    /// The origin of the base host.
    pub(super) base: Origin,
}

impl FetchClient {
    /// Creates a client that may call public addresses, those of `allow` and the base host.
    pub(crate) fn new(allow: Vec<Allow>, base_url: &str) -> anyhow::Result<Self> {
        let base = Url::parse(base_url)?.origin();
        Ok(Self { client: Client::new(config(allow, base_url)?)?, base })
    }

    /// As [`Self::new`], with another resolver.
    #[cfg(test)]
    pub(super) fn with_resolver(
        allow: Vec<Allow>,
        base_url: &str,
        resolver: impl outbound::Resolve,
    ) -> anyhow::Result<Self> {
        let base = Url::parse(base_url)?.origin();
        Ok(Self { client: Client::with_resolver(config(allow, base_url)?, resolver)?, base })
    }
}

fn config(mut allow: Vec<Allow>, base_url: &str) -> anyhow::Result<Config> {
    allow.push(Allow::origin(base_url)?);
    Ok(Config { allow, total_timeout: TIMEOUT_MAX, max_body_bytes: BODY_BYTES_MAX, ..Config::default() })
}
