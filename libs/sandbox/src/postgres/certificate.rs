//! The certificate of a Postgres that speaks TLS.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Result;

use crate::account::Account;

/// A certificate with its private key, both in PEM.
#[derive(Debug, Clone)]
pub struct IssuedCertificate {
    pub certificate: String,
    pub key: String,
}

impl IssuedCertificate {
    /// Writes the certificate and its key into the data directory. Postgres refuses a key that other users can read.
    pub(super) fn write(&self, data: &Path, account: Option<&Account>) -> Result<()> {
        for (name, text) in [("tls.pem", &self.certificate), ("tls.key", &self.key)] {
            let path = data.join(name);
            std::fs::write(&path, text)?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            account.map_or(Ok(()), |account| account.own(&path))?;
        }
        Ok(())
    }
}
