//! The process's TLS provider. The house builds rustls with ring alone, and libraries that leave the choice to
//! the program find it here.

/// Makes ring the provider of every TLS connection in this process; calling it again changes nothing.
pub fn install() {
    // An error says that a provider is already installed: ring is the only one compiled in.
    let _already_there = rustls::crypto::ring::default_provider().install_default();
}
