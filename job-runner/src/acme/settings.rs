//! Section `[acme]`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use domain::certificates::{ChallengeKind, OrderLimits};
use serde::Deserialize;

/// Section `[acme]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Empty if no certificates are ordered.
    pub(crate) directory_url: String,
    pub(crate) eab_key_id: String,
    pub(crate) eab_hmac_key_file: PathBuf,
    pub(crate) profile: String,
    pub(crate) fallback_directory_url: String,
    pub(crate) fallback_eab_key_id: String,
    pub(crate) fallback_eab_hmac_key_file: PathBuf,
    pub(crate) fallback_profile: String,
    #[serde(with = "service::config::duration")]
    pub(crate) fallback_after: Duration,
    pub(crate) ca_file: PathBuf,
    pub(crate) email: String,
    pub(crate) challenges: Vec<ChallengeKind>,
    pub(crate) limits: OrderLimits,
    #[serde(with = "service::config::duration::list")]
    pub(crate) retry_schedule: Vec<Duration>,
    #[serde(with = "service::config::duration")]
    pub(crate) poll_interval: Duration,
    pub(crate) max_concurrent: usize,
    #[serde(with = "service::config::duration")]
    pub(crate) request_timeout: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) order_timeout: Duration,
    #[serde(with = "service::config::duration")]
    pub(crate) lease_ttl: Duration,
    pub(crate) wildcard: WildcardMode,
    pub(crate) rfc2136: Rfc2136,
    pub(crate) exec: Exec,
    pub(crate) files: Files,
}

/// How the certificate of the sites domain's wildcard is obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WildcardMode {
    Off,
    /// By DNS-01, with a dynamic update of the zone.
    Rfc2136,
    /// By DNS-01, with a program that publishes the record.
    Exec,
    /// Read from files.
    Files,
}

/// Section `[acme.rfc2136]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rfc2136 {
    pub(crate) server: String,
    /// Empty for the sites domain.
    pub(crate) zone: String,
    pub(crate) tsig_key_name: String,
    pub(crate) tsig_algorithm: String,
    pub(crate) tsig_secret_file: PathBuf,
    #[serde(with = "service::config::duration")]
    pub(crate) ttl: Duration,
}

/// Section `[acme.exec]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exec {
    /// The program's path and its arguments.
    pub(crate) command: Vec<String>,
}

/// Section `[acme.files]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Settings {
    /// Returns whether certificates are ordered.
    pub(crate) fn is_on(&self) -> bool {
        !self.directory_url.is_empty()
    }

    /// Rejects settings that can't work.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.wildcard == WildcardMode::Files {
            let files = &self.files;
            ensure!(
                !files.certificate.as_os_str().is_empty() && !files.key.as_os_str().is_empty(),
                "acme.wildcard = \"files\" needs acme.files.certificate and acme.files.key"
            );
        }
        if self.wildcard == WildcardMode::Rfc2136 {
            ensure!(self.is_on(), "acme.wildcard = \"rfc2136\" needs acme.directory_url");
        }
        if self.wildcard == WildcardMode::Exec {
            ensure!(self.is_on(), "acme.wildcard = \"exec\" needs acme.directory_url");
            let is_absolute = self.exec.command.first().is_some_and(|program| program.starts_with('/'));
            ensure!(is_absolute, "acme.exec.command must begin with the absolute path of a program");
        }
        if !self.is_on() {
            ensure!(
                self.fallback_directory_url.is_empty(),
                "acme.fallback_directory_url needs acme.directory_url"
            );
            return Ok(());
        }
        for (key, url) in
            [("directory_url", &self.directory_url), ("fallback_directory_url", &self.fallback_directory_url)]
        {
            let is_valid = url.is_empty() || url.starts_with("https://");
            ensure!(is_valid, "acme.{key} must begin with https://, because account keys authorize over it");
        }
        ensure!(
            self.fallback_directory_url != self.directory_url,
            "acme.fallback_directory_url must be another authority than acme.directory_url"
        );
        ensure!(!self.challenges.is_empty(), "acme.challenges needs at least one of http-01 and tls-alpn-01");
        ensure!(!self.retry_schedule.is_empty(), "acme.retry_schedule needs at least one delay");
        ensure!(self.max_concurrent > 0, "acme.max_concurrent must be at least 1");
        let limits = &self.limits;
        let are_positive =
            [limits.orders_per_3h, limits.certificates_per_domain_per_week, limits.failures_per_hour]
                .iter()
                .all(|limit| *limit > 0);
        ensure!(are_positive, "each of acme.limits must be at least 1");
        Ok(())
    }
}
