//! What every order needs: stores, settings, authorities, and the record of DNS-01.

use super::authorities::Authorities;
use super::dns_record::DnsRecord;
use super::settings::Settings;
use crate::state::JobState;

/// Orders certificates.
pub(crate) struct Issuing {
    pub(super) state: JobState,
    pub(super) settings: Settings,
    pub(super) authorities: Authorities,
    pub(super) dns: DnsRecord,
    /// Hosts that are no domains of accounts.
    pub(super) own_names: Vec<String>,
}

impl Issuing {
    /// Fails if a setting is invalid.
    pub(crate) fn new(
        state: &JobState,
        settings: &Settings,
        own_names: Vec<String>,
        sites_domain: &str,
    ) -> anyhow::Result<Self> {
        let authorities = Authorities::new(settings)?;
        let dns = DnsRecord::new(settings, sites_domain)?;
        Ok(Self { state: state.clone(), settings: settings.clone(), authorities, dns, own_names })
    }
}
