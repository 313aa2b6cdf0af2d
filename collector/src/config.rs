//! The collector's configuration. `config.toml` documents each key.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use chrono::TimeDelta;
use domain::encryption::MasterKey;
use domain::visits::Rules;
use serde::Deserialize;
use service::config::{Defaults, ExposeSecret as _, RenamedKeys, Secret};

/// The commented defaults.
pub const DEFAULTS: Defaults = Defaults { toml: include_str!("../config.toml"), renamed_keys: RENAMED_KEYS };

/// Keys of earlier releases, `(old path, new path)`. The old one is refused with the new one's name.
const RENAMED_KEYS: &RenamedKeys = &[
    ("collector.sites_fresh", "collector.site_max_age"),
    ("collector.drops_every", "collector.drop_flush_interval"),
    ("collector.visit_gap", "collector.visit_idle_timeout"),
    ("collector.visit_longest", "collector.visit_max_duration"),
    ("quota.block", "quota.block_size"),
    ("quota.idle", "quota.idle_timeout"),
    ("quota.ask_again", "quota.retry_interval"),
    ("quota.patience", "quota.lease_timeout"),
    ("segments.bytes_max", "segments.max_bytes"),
    ("segments.unsent_bytes_max", "segments.max_unsent_bytes"),
];

/// All sections.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Postgres.
    pub store: store::Config,
    /// ClickHouse.
    pub warehouse: warehouse::Config,
    /// Redis.
    pub redis: cache::Config,
    /// Values that are never shown.
    pub secrets: Secrets,
    /// Copies of the salts.
    pub salts: Salts,
    /// Acceptance of events.
    pub collector: Collector,
    /// Leases of the accounts' monthly events.
    pub quota: Quota,
    /// The write-ahead log.
    pub segments: Segments,
}

/// Section `[secrets]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Authenticates an edge.
    pub edge_token: Secret,
}

/// Section `[salts]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Salts {
    /// Seals the copies of salts; empty for no copies.
    pub master_key: Secret,
}

impl Salts {
    /// Parses the setting; `None` if it is empty.
    pub(crate) fn master_key(&self) -> anyhow::Result<Option<MasterKey>> {
        match self.master_key.expose_secret() {
            "" => Ok(None),
            text => Ok(Some(MasterKey::parse(text).context("salts.master_key")?)),
        }
    }
}

/// Section `[collector]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collector {
    /// Maximum number of events of one address per minute.
    pub events_per_minute: u32,
    /// Connections to Postgres that are reserved for lookups.
    pub lookup_connections: u32,
    /// Maximum age of a cached site.
    #[serde(with = "service::config::duration")]
    pub site_max_age: Duration,
    /// Enables the `x-event-time` header.
    pub accept_event_time: bool,
    /// Location files in MaxMind's format.
    pub location_files: Vec<PathBuf>,
    /// How often counts of dropped events are written to Postgres.
    #[serde(with = "service::config::duration")]
    pub drop_flush_interval: Duration,
    /// A visit ends after this time without an event.
    #[serde(with = "service::config::duration")]
    pub visit_idle_timeout: Duration,
    /// Maximum duration of a visit.
    #[serde(with = "service::config::duration")]
    pub visit_max_duration: Duration,
}

impl Collector {
    /// Rejects values beyond the limits that other code assumes: only events of the first half hour of a day name the
    /// visitor's id of the day before, and queries search for the start of a visit one day back.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Rules { gap, longest } = self.visit_rules();
        let max = Rules::default();
        anyhow::ensure!(
            gap <= max.gap,
            "collector.visit_idle_timeout may be 30m at most, not {:?}",
            self.visit_idle_timeout
        );
        anyhow::ensure!(
            longest <= max.longest,
            "collector.visit_max_duration may be 24h at most, not {:?}",
            self.visit_max_duration
        );
        Ok(())
    }

    /// The rules by which visits end.
    pub(crate) fn visit_rules(&self) -> Rules {
        let delta = |duration| TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX);
        Rules { gap: delta(self.visit_idle_timeout), longest: delta(self.visit_max_duration) }
    }
}

/// Section `[quota]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Maximum number of events in one lease.
    pub block_size: i64,
    /// An account that sends nothing for this long returns the rest of its block.
    #[serde(with = "service::config::duration")]
    pub idle_timeout: Duration,
    /// How often a lease is retried for an account with an exhausted month.
    #[serde(with = "service::config::duration")]
    pub retry_interval: Duration,
    /// How long an event waits for a lease.
    #[serde(with = "service::config::duration")]
    pub lease_timeout: Duration,
}

/// Section `[segments]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segments {
    /// The folder of segment files.
    pub folder: PathBuf,
    /// A segment is sealed at this age.
    #[serde(with = "service::config::duration")]
    pub seal_after: Duration,
    /// A segment is sealed at this size.
    pub max_bytes: u64,
    /// Events are dropped while this many bytes are unsent.
    pub max_unsent_bytes: u64,
    /// Replicas that must have an insert before it counts: empty for one, `auto` for more than half, or a number.
    pub insert_quorum: String,
}

#[cfg(test)]
mod tests {
    use service::config::{Sources, load};

    use super::*;

    #[test]
    fn visits_longer_than_queries_support_are_rejected() {
        let check = |set: &str| {
            let sources = Sources { set: vec![set.to_owned()], ..Sources::default() };
            load::<Config>(DEFAULTS, &sources).unwrap().config.collector.check()
        };
        for valid in [
            "collector.visit_idle_timeout=30m",
            "collector.visit_idle_timeout=1s",
            "collector.visit_max_duration=24h",
        ] {
            assert!(check(valid).is_ok(), "{valid}");
        }
        for (invalid, name) in [
            ("collector.visit_idle_timeout=1801s", "visit_idle_timeout"),
            ("collector.visit_max_duration=25h", "visit_max_duration"),
        ] {
            assert!(check(invalid).unwrap_err().to_string().contains(name), "{invalid}");
        }
    }
}
