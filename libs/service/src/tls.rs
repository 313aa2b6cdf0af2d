//! The process's TLS provider. rustls is built with ring alone, and libraries that leave the choice to the program use
//! the provider installed here.

/// Installs ring as the TLS provider of this process. Repeated calls have no effect.
pub fn install() {
    // An error means that a provider is installed already, and ring is the only one compiled in.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
}
