//! https on this machine: an authority that is made once in the data directory, and its certificates.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, bail};
use chrono::{DateTime, Datelike, TimeDelta, Utc};
use domain::addresses::Addresses;
use domain::certificates::KEY_PURPOSE;
use domain::encryption::MasterKey;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use service::{Clock, Rng};
use store::certificates::{IssuedCertificate, replace_certificate};

use super::backends::Urls;
use super::ports::check_is_free;
use super::settings::Secrets;
use super::user_settings::UserSettings;
use crate::arguments::Up;
use crate::folder::Folder;

/// The authority's certificate, which a user may trust.
pub(crate) const AUTHORITY: &str = "authority.pem";
const AUTHORITY_KEY: &str = "authority.key.pem";
const AUTHORITY_NAME: &str = "Web Runtime on this machine";
/// Validity of a certificate. Each start makes new ones.
const VALID_FOR: TimeDelta = TimeDelta::days(90);

/// Returns the address for https: that of the settings, else one of this machine with `--https`.
pub(super) fn address(up: &Up, user_settings: &UserSettings, free_port: u16) -> Result<Option<SocketAddr>> {
    let address = match user_settings.get("listen.https") {
        Some("") => return Ok(None),
        Some(set) => {
            set.parse().with_context(|| format!("listen.https must be an address with a port, not {set}"))?
        }
        None if !up.https => return Ok(None),
        None if up.https_port == 0 => SocketAddr::from((Ipv4Addr::LOCALHOST, free_port)),
        None => {
            check_is_free(up.https_port)?;
            SocketAddr::from((Ipv4Addr::LOCALHOST, up.https_port))
        }
    };
    if address.port() == 0 {
        bail!("listen.https needs a port: with 0, stack.json could not name it");
    }
    Ok(Some(address))
}

/// Stores certificates of the base host and of the sites' wildcard.
pub(super) async fn store_certificates(
    folder: &Folder,
    urls: &Urls,
    secrets: &Secrets,
    addresses: &Addresses,
) -> Result<()> {
    let authority = authority(folder)?;
    let master_key = MasterKey::parse(&secrets.master_key).context("the master key of this installation")?;
    let (rng, now) = (Rng::system(), Clock::system().now());
    let db = store::connect(&store::Config::new(urls.postgres.clone(), 1))?;
    let base = addresses.base_host().to_owned();
    let wildcard = addresses.site_host("*");
    // The files are for other servers on this machine, such as one to compare with.
    for (name, file) in [(base, "certificate-base"), (wildcard, "certificate-sites")] {
        let mut params = CertificateParams::new(vec![name.clone()])?;
        params.distinguished_name.push(DnType::CommonName, name.as_str());
        let (not_before, not_after) = (now - TimeDelta::days(1), now + VALID_FOR);
        let midnight = |time: DateTime<Utc>| {
            let (year, month, day) = (time.year(), u8::try_from(time.month())?, u8::try_from(time.day())?);
            anyhow::Ok(date_time_ymd(year, month, day))
        };
        (params.not_before, params.not_after) = (midnight(not_before)?, midnight(not_after)?);
        let key = KeyPair::generate()?;
        let chain = params.signed_by(&key, &authority)?.pem();
        folder.write(&format!("{file}.key.pem"), &key.serialize_pem())?;
        folder.write(&format!("{file}.pem"), &chain)?;
        let sealed_key = master_key.seal(KEY_PURPOSE, rng.bytes(), &key.serialize_der());
        let issued = IssuedCertificate {
            chain: &chain,
            sealed_key: &sealed_key,
            issuer: AUTHORITY_NAME,
            not_before,
            not_after,
            renew_at: None,
        };
        let mut tx = store::begin(&db).await?;
        // No service runs yet. The relay publishes the signal to edges of other machines.
        let _signals = replace_certificate(&mut tx, &name, &issued, now).await?;
        store::commit(tx).await?;
    }
    Ok(())
}

/// Returns the authority of the data directory. Makes it if it is missing.
fn authority(folder: &Folder) -> Result<Issuer<'static, KeyPair>> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let (certificate, key) = (folder.part(AUTHORITY), folder.part(AUTHORITY_KEY));
    if certificate.exists() && key.exists() {
        let key = KeyPair::from_pem(&std::fs::read_to_string(&key)?)
            .context("reading the local authority's key")?;
        return Ok(Issuer::new(params, key));
    }
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    folder.write(AUTHORITY_KEY, &key.serialize_pem())?;
    folder.write(AUTHORITY, &certificate.pem())?;
    Ok(Issuer::new(params, key))
}
