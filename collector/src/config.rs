//! The collector's settings; `config.toml` beside `src` says what each means.

use std::path::PathBuf;
use std::time::Duration;

use chrono::TimeDelta;
use domain::visits::Rules;
use serde::Deserialize;
use service::config::{Defaults, RenamedKeys, Secret};

/// The commented defaults.
pub const DEFAULTS: Defaults = Defaults { toml: include_str!("../config.toml"), renamed_keys: RENAMED_KEYS };

/// Keys of earlier releases, `(old path, new path)`. The old one is refused with the new one's name.
const RENAMED_KEYS: &RenamedKeys = &[];

/// Everything the collector can be told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Postgres.
    pub store: store::Config,
    /// ClickHouse.
    pub warehouse: warehouse::Config,
    /// Redis.
    pub redis: cache::Config,
    /// What must never be shown.
    pub secrets: Secrets,
    /// Which events are taken.
    pub collector: Collector,
    /// How many of an account are taken.
    pub quota: Quota,
    /// Where they wait.
    pub segments: Segments,
}

/// Section `[secrets]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// Proves an edge.
    pub edge_token: Secret,
}

/// Section `[collector]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collector {
    /// Events of one address in a minute.
    pub events_per_minute: u32,
    /// Connections to Postgres for look-ups alone.
    pub lookup_connections: u32,
    /// How long a site's look-up may be remembered.
    #[serde(with = "service::config::duration")]
    pub site_max_age: Duration,
    /// Whether events may say when they happened.
    pub accept_event_time: bool,
    /// Files of locations.
    pub location_files: Vec<PathBuf>,
    /// How often drops are written down.
    #[serde(with = "service::config::duration")]
    pub drop_flush_interval: Duration,
    /// The longest silence within a visit.
    #[serde(with = "service::config::duration")]
    pub visit_idle_timeout: Duration,
    /// The longest visit.
    #[serde(with = "service::config::duration")]
    pub visit_max_duration: Duration,
}

impl Collector {
    /// Refuses what others can't live with: events that say how a visit goes on over midnight come within half an hour
    /// of it, and questions look for a visit's beginning no further back than a day.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Rules { gap, longest } = self.rules();
        let most = Rules::default();
        anyhow::ensure!(
            gap <= most.gap,
            "collector.visit_idle_timeout may be 30m at most, not {:?}",
            self.visit_idle_timeout
        );
        anyhow::ensure!(
            longest <= most.longest,
            "collector.visit_max_duration may be 24h at most, not {:?}",
            self.visit_max_duration
        );
        Ok(())
    }

    /// When a visit ends.
    pub(crate) fn rules(&self) -> Rules {
        let span = |duration| TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX);
        Rules { gap: span(self.visit_idle_timeout), longest: span(self.visit_max_duration) }
    }
}

/// Section `[quota]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Events leased at a time, at most.
    pub block_size: i64,
    /// How long an account keeps a block it doesn't use.
    #[serde(with = "service::config::duration")]
    pub idle_timeout: Duration,
    /// How long it is trusted_token that a month is used up.
    #[serde(with = "service::config::duration")]
    pub retry_interval: Duration,
    /// How long an event waits for a block.
    #[serde(with = "service::config::duration")]
    pub lease_timeout: Duration,
}

/// Section `[segments]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segments {
    /// The folder.
    pub folder: PathBuf,
    /// The age at which a segment is sealed.
    #[serde(with = "service::config::duration")]
    pub seal_after: Duration,
    /// The size at which it is, whatever its age.
    pub max_bytes: u64,
    /// Bytes that may wait.
    pub max_unsent_bytes: u64,
}

#[cfg(test)]
mod tests {
    use service::config::{Sources, load};

    use super::*;

    #[test]
    fn visits_that_questions_would_not_find_whole_are_refused() {
        let check = |set: &str| {
            let sources = Sources { set: vec![set.to_owned()], ..Sources::default() };
            load::<Config>(DEFAULTS, &sources).unwrap().config.collector.check()
        };
        for fits in [
            "collector.visit_idle_timeout=30m",
            "collector.visit_idle_timeout=1s",
            "collector.visit_max_duration=24h",
        ] {
            assert!(check(fits).is_ok(), "{fits}");
        }
        for (too_long, name) in [
            ("collector.visit_idle_timeout=1801s", "visit_idle_timeout"),
            ("collector.visit_max_duration=25h", "visit_max_duration"),
        ] {
            assert!(check(too_long).unwrap_err().to_string().contains(name), "{too_long}");
        }
    }
}
