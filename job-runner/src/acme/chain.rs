//! Reads issued certificates. One that doesn't fit its name and key is never stored, because it would replace one that
//! works.

use anyhow::{Context as _, bail, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use instant_acme::CertificateIdentifier;
use rcgen::{KeyPair, PublicKeyData as _};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// How far the clock here may be behind that of an authority.
const CLOCK_SKEW: TimeDelta = TimeDelta::hours(1);

/// The facts of a chain's first certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChainFacts {
    /// Organization and name of the issuer, such as `Let's Encrypt E7`.
    pub(super) issuer: String,
    pub(super) not_before: DateTime<Utc>,
    pub(super) not_after: DateTime<Utc>,
}

/// Reads a chain in PEM that must be for `name` and `key` and valid now.
pub(super) fn read(chain: &str, name: &str, key: &KeyPair, now: DateTime<Utc>) -> anyhow::Result<ChainFacts> {
    let mut first = None;
    for certificate in CertificateDer::pem_slice_iter(chain.as_bytes()) {
        let certificate = certificate.context("the certificate is not valid PEM")?;
        first.get_or_insert(certificate);
    }
    let first = first.context("it holds no certificate in PEM")?;
    let (_, certificate) = X509Certificate::from_der(&first).context("the certificate can't be read")?;
    ensure!(
        certificate.public_key().raw == key.subject_public_key_info(),
        "the certificate is for another key"
    );
    let names = certificate.subject_alternative_name()?.context("the certificate names no host")?;
    let is_named = |entry: &GeneralName<'_>| matches!(entry, GeneralName::DNSName(host) if host.eq_ignore_ascii_case(name));
    ensure!(names.value.general_names.iter().any(is_named), "the certificate is not for {name}");
    let time = |at: x509_parser::time::ASN1Time| {
        DateTime::from_timestamp(at.timestamp(), 0).context("the certificate's validity can't be read")
    };
    let validity = certificate.validity();
    let facts = ChainFacts {
        issuer: issuer(&certificate),
        not_before: time(validity.not_before)?,
        not_after: time(validity.not_after)?,
    };
    if facts.not_after <= now {
        bail!("the certificate ended at {}", facts.not_after);
    }
    if facts.not_before > now + CLOCK_SKEW {
        bail!("the certificate is valid only from {}", facts.not_before);
    }
    Ok(facts)
}

/// Returns the identifier of a chain's first certificate for renewal information; `None` if it has none.
pub(super) fn identifier(chain: &str) -> Option<CertificateIdentifier<'static>> {
    let first = CertificateDer::pem_slice_iter(chain.as_bytes()).next()?.ok()?;
    CertificateIdentifier::try_from(&first).ok().map(CertificateIdentifier::into_owned)
}

fn issuer(certificate: &X509Certificate<'_>) -> String {
    let issuer = certificate.issuer();
    let organization = issuer.iter_organization().next().and_then(|part| part.as_str().ok());
    let common_name = issuer.iter_common_name().next().and_then(|part| part.as_str().ok());
    let parts: Vec<&str> = organization.into_iter().chain(common_name).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, date_time_ymd};

    use super::*;

    fn issued(name: &str, key: &KeyPair) -> String {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 4, 1);
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "Good CA");
        params.distinguished_name.push(rcgen::DnType::CommonName, "E1");
        params.self_signed(key).unwrap().pem()
    }

    fn day(month: u32) -> DateTime<Utc> {
        use chrono::TimeZone as _;
        Utc.with_ymd_and_hms(2026, month, 1, 0, 0, 0).unwrap()
    }

    #[test]
    fn only_a_certificate_for_the_name_and_key_that_is_valid_is_read() {
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let chain = issued("www.example.com", &key);
        let facts = read(&chain, "www.example.com", &key, day(2)).unwrap();
        assert_eq!((facts.not_before, facts.not_after), (day(1), day(4)));
        assert_eq!(facts.issuer, "Good CA E1");
        let error = |chain: &str, name, key, now| read(chain, name, key, now).unwrap_err().to_string();
        assert!(error(&chain, "www.example.com", &other, day(2)).contains("another key"));
        assert!(error(&chain, "example.com", &key, day(2)).contains("not for example.com"));
        assert!(error(&chain, "www.example.com", &key, day(5)).contains("ended"));
        assert!(error("", "www.example.com", &key, day(2)).contains("no certificate"));
        let cut = chain.replace("-----END", "----");
        assert!(error(&cut, "www.example.com", &key, day(2)).contains("PEM"));
    }

    #[test]
    fn a_wildcard_certificate_covers_its_wildcard() {
        let key = KeyPair::generate().unwrap();
        let chain = issued("*.sites.example.net", &key);
        assert!(read(&chain, "*.sites.example.net", &key, day(2)).is_ok());
        assert!(read(&chain, "*.example.net", &key, day(2)).is_err());
    }
}
