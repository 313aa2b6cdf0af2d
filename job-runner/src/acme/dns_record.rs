//! The record that proves the sites domain's wildcard by DNS-01: published by the operator's program or by a dynamic update.
//! No other name is ever published.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use dns::{DynamicUpdate, UpdateSettings};

use super::dns_hook::DnsHook;
use super::settings::{Rfc2136, Settings, WildcardMode};

/// Publishes the record `_acme-challenge` of the sites domain.
pub(super) struct DnsRecord {
    name: String,
    publisher: Publisher,
}

enum Publisher {
    /// The wildcard is not ordered.
    None,
    Program(DnsHook),
    Update(DynamicUpdate),
}

impl DnsRecord {
    /// Fails if a setting is invalid.
    pub(super) fn new(settings: &Settings, sites_domain: &str) -> anyhow::Result<Self> {
        let name = format!("_acme-challenge.{sites_domain}");
        let publisher = match settings.wildcard {
            WildcardMode::Exec => {
                Publisher::Program(DnsHook::new(settings.exec.command.clone(), name.clone()))
            }
            WildcardMode::Rfc2136 => {
                let update = dynamic_update(&settings.rfc2136, &name, sites_domain);
                Publisher::Update(update.context("acme.rfc2136")?)
            }
            WildcardMode::Off | WildcardMode::Files => Publisher::None,
        };
        Ok(Self { name, publisher })
    }

    /// Publishes a value of the record. Returns when the server that was changed answers with it.
    pub(super) async fn publish(&self, value: &str, now: DateTime<Utc>) -> anyhow::Result<()> {
        let published = match &self.publisher {
            Publisher::None => Err(anyhow::anyhow!("acme.wildcard is off")),
            Publisher::Program(program) => program.publish(value).await,
            Publisher::Update(update) => update.replace(value, seconds(now)).await.map_err(Into::into),
        };
        published.with_context(|| format!("publishing the DNS record {}", self.name))
    }

    /// Removes all values of the record that were published.
    pub(super) async fn remove(&self, now: DateTime<Utc>) {
        let removed = match &self.publisher {
            Publisher::None => Ok(()),
            Publisher::Program(program) => program.remove().await,
            Publisher::Update(update) => update.remove(seconds(now)).await.map_err(Into::into),
        };
        if let Err(error) = removed {
            let error = format!("{error:#}");
            tracing::warn!(error, dns.record = self.name, "a DNS record was not removed");
        }
    }
}

fn dynamic_update(settings: &Rfc2136, record: &str, sites_domain: &str) -> anyhow::Result<DynamicUpdate> {
    let file = settings.tsig_secret_file.display();
    let secret = std::fs::read_to_string(&settings.tsig_secret_file)
        .with_context(|| format!("tsig_secret_file {file} can't be read"))?;
    let secret = STANDARD.decode(secret.trim()).ok();
    let zone = if settings.zone.is_empty() { sites_domain } else { &settings.zone };
    Ok(DynamicUpdate::new(UpdateSettings {
        server: settings.server.clone(),
        zone: zone.to_owned(),
        record: record.to_owned(),
        key_name: settings.tsig_key_name.clone(),
        algorithm: settings.tsig_algorithm.clone(),
        secret: secret.with_context(|| format!("tsig_secret_file {file} must hold a secret in base64"))?,
        ttl_seconds: u32::try_from(settings.ttl.as_secs()).context("ttl is too long")?,
    })?)
}

fn seconds(now: DateTime<Utc>) -> u64 {
    now.timestamp().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    fn settings(secret: &Path) -> Rfc2136 {
        Rfc2136 {
            server: "ns1.example.net:53".to_owned(),
            zone: String::new(),
            tsig_key_name: "acme".to_owned(),
            tsig_algorithm: "hmac-sha256".to_owned(),
            tsig_secret_file: secret.to_owned(),
            ttl: Duration::from_secs(60),
        }
    }

    #[test]
    fn each_setting_that_can_not_work_is_refused_at_the_start_without_the_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "c2VjcmV0\n").unwrap();
        let read = |settings: Rfc2136| {
            let read = dynamic_update(&settings, "_acme-challenge.sites.example.net", "sites.example.net");
            read.err().map(|error| format!("{error:#}"))
        };
        assert_eq!(read(settings(&file)), None);
        let changed = |change: &dyn Fn(&mut Rfc2136)| {
            let mut changed = settings(&file);
            change(&mut changed);
            read(changed).unwrap()
        };
        assert!(changed(&|one| one.server = "ns1.example.net".to_owned()).contains("host with a port"));
        assert!(changed(&|one| one.server = ":53".to_owned()).contains("host with a port"));
        assert!(changed(&|one| one.zone = "example.com".to_owned()).contains("not in the zone example.com"));
        assert!(changed(&|one| one.tsig_key_name = String::new()).contains("tsig_key_name"));
        assert!(changed(&|one| one.tsig_algorithm = "hmac-md5".to_owned()).contains("hmac-sha256"));
        assert!(changed(&|one| one.tsig_secret_file = "/nonexistent".into()).contains("can't be read"));
        std::fs::write(&file, "not base64!").unwrap();
        let error = read(settings(&file)).unwrap();
        assert!(error.contains("base64") && !error.contains("not base64!"), "{error}");
        std::fs::write(&file, "").unwrap();
        assert!(read(settings(&file)).unwrap().contains("empty"));
    }
}
