//! A TLS certificate of a backend.

/// A certificate with its private key, both in PEM.
#[derive(Debug, Clone)]
pub struct IssuedCertificate {
    pub certificate: String,
    pub key: String,
}
