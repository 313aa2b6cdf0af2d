//! A private certificate authority, and a TLS server in front of a backend that speaks none itself.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use super::backends::must;
use super::folder::{TestFolder, folder};
use crate::port;
use crate::postgres::IssuedCertificate;

/// A certificate authority of one test.
#[derive(Debug)]
pub struct TestAuthority {
    root: CertifiedIssuer<'static, KeyPair>,
    folder: TestFolder,
}

impl TestAuthority {
    /// Creates an authority, which nothing trusts yet.
    #[must_use]
    pub fn new() -> Self {
        let folder = folder();
        let root = must(self_signed_root(&folder.path().display().to_string()));
        let authority = Self { root, folder };
        must(std::fs::create_dir_all(authority.folder.path()).map_err(Into::into));
        must(std::fs::write(authority.ca_file(), authority.root.pem()).map_err(Into::into));
        authority
    }

    /// Returns the file with its root.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Issues a certificate for a host name or an address.
    #[must_use]
    pub fn issue(&self, host: &str) -> IssuedCertificate {
        let key = must(KeyPair::generate().map_err(Into::into));
        let issued =
            CertificateParams::new(vec![host.to_owned()]).and_then(|new| new.signed_by(&key, &self.root));
        IssuedCertificate { certificate: must(issued.map_err(Into::into)).pem(), key: key.serialize_pem() }
    }
}

impl Default for TestAuthority {
    fn default() -> Self {
        Self::new()
    }
}

/// Each root has a name of its own: with a common one, a client would find a wrong signature and not an unknown issuer.
fn self_signed_root(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>> {
    let mut root = CertificateParams::new(Vec::new())?;
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    root.distinguished_name.push(DnType::CommonName, name);
    Ok(CertifiedIssuer::self_signed(root, KeyPair::generate()?)?)
}

/// A server on loopback that ends TLS and passes the bytes on. Dropping it closes its socket.
#[derive(Debug)]
pub struct TlsFront {
    port: u16,
    accepting: AbortHandle,
}

impl TlsFront {
    /// Starts a server with this certificate in front of a port on loopback.
    pub async fn start(issued: &IssuedCertificate, backend: u16) -> Self {
        let acceptor = must(acceptor(issued));
        let listener = must(TcpListener::bind(port::on_loopback(0)).await.map_err(Into::into));
        let port = must(listener.local_addr().map_err(Into::into)).port();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // Clients that distrust the certificate end the handshake.
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    let Ok(mut backend) = TcpStream::connect(port::on_loopback(backend)).await else {
                        return;
                    };
                    let _closed = copy_bidirectional(&mut client, &mut backend).await;
                });
            }
        });
        Self { port, accepting: accepting.abort_handle() }
    }

    /// Returns its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn acceptor(issued: &IssuedCertificate) -> Result<TlsAcceptor> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(issued.certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes())?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the certificate of a TLS server")?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
