//! Certificates of a test's own authority, and clients that trust it.

use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use contract::Change;
use domain::encryption::MasterKey;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use service::config::{Listen, ProxyProtocol};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use sandbox::test::until;

use crate::harness::{Edge, over_https};

pub(crate) const MASTER_KEY: &str = "abababababababababababababababababababababababababababababababab";
/// Two labels, because clients refuse wildcards of one.
pub(crate) const SITES_DOMAIN: &str = "sites.localhost";
pub(crate) const SITE: &str = "quiet-otter.sites.localhost";

/// The settings of an edge with https.
pub(crate) const SET: [&str; 2] = [
    "secrets.master_key=abababababababababababababababababababababababababababababababab",
    "http.sites_domain=sites.localhost",
];

/// An edge with https and a certificate authority of its own.
pub(crate) struct TlsEdge {
    pub(crate) edge: Edge,
    /// Whether each connection begins with the header of the PROXY protocol.
    is_behind_proxy: bool,
    pub(crate) authority: Authority,
}

impl TlsEdge {
    /// Starts an edge with certificates of the base host and the wildcard.
    pub(crate) async fn start(set: &[&str]) -> Self {
        Self::listening(over_https(), set).await
    }

    /// As [`Self::start`], listening as told.
    pub(crate) async fn listening(listen: Listen, set: &[&str]) -> Self {
        let is_behind_proxy = listen.https_proxy_protocol == ProxyProtocol::Required;
        let edge = Edge::listening(listen, &[&SET, set].concat()).await;
        let this = Self { edge, is_behind_proxy, authority: Authority::new() };
        this.insert("localhost", &["localhost"], later()).await;
        let wildcard = this.edge.site_host("*");
        this.insert(&wildcard, &[&wildcard], later()).await;
        this
    }

    /// Stores a certificate for these names, replacing that of `name`, signals it, and waits until handshakes find it.
    pub(crate) async fn insert(&self, name: &str, names: &[&str], not_after: DateTime<Utc>) {
        self.store(name, names, not_after).await;
        self.signal(name).await;
        let hello = hello(&name.replace('*', "any"));
        let is_found = async || {
            let mut stream = self.open().await;
            stream.write_all(&hello).await.unwrap();
            // A handshake record, and no alert.
            stream.read_u8().await.unwrap() == 22
        };
        // An expired one is never found.
        if not_after > crate::fixtures::now() {
            until(is_found).await;
        }
    }

    /// Stores a certificate for these names, replacing that of `name`, and returns it. Signals nothing.
    pub(crate) async fn store(&self, name: &str, names: &[&str], not_after: DateTime<Utc>) -> Vec<u8> {
        let (chain, key, der) = self.authority.issue(names);
        let sealed = MasterKey::from_hex(MASTER_KEY).unwrap().seal("certificate_key", [7; 24], &key);
        self.edge
            .run(&format!(
                "insert into certificates (name, chain, sealed_key, not_after, created_at)
                 values ('{name}', '{chain}', '\\x{}', '{}', now())
                 on conflict (name) do update set chain = excluded.chain, sealed_key = excluded.sealed_key,
                   not_after = excluded.not_after",
                hex::encode(sealed),
                not_after.to_rfc3339(),
            ))
            .await;
        der
    }

    /// Signals the change of a certificate.
    pub(crate) async fn signal(&self, name: &str) {
        self.edge.publish_change(Change::Certificate { name: name.to_owned() }).await;
    }

    /// Opens a connection on which TLS has not begun.
    async fn open(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.edge.https()).await.unwrap();
        if self.is_behind_proxy {
            stream.write_all(b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 443\r\n").await.unwrap();
        }
        stream
    }

    /// Connects by a name.
    pub(crate) async fn connect(&self, name: &str) -> std::io::Result<TlsStream<TcpStream>> {
        over(self.open().await, name, &self.authority.client()).await
    }

    /// Sends a GET request by a name and returns the whole response.
    pub(crate) async fn get(&self, name: &str, host: &str, path: &str) -> String {
        let mut stream = self.connect(name).await.unwrap();
        get(&mut stream, host, path).await
    }
}

/// A time until which a certificate is valid.
pub(crate) fn later() -> DateTime<Utc> {
    crate::fixtures::now() + TimeDelta::days(3_650)
}

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "the authority of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let (der, pem) = (certificate.der().clone(), certificate.pem());
        Self { issuer: Issuer::new(params, key), certificate: der, pem }
    }

    /// Returns a chain in PEM, its key in DER, and the certificate in DER.
    fn issue(&self, names: &[&str]) -> (String, Vec<u8>, Vec<u8>) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_der(), certificate.der().to_vec())
    }

    /// A client that trusts the authority, with TLS 1.3 and 1.2.
    pub(crate) fn client(&self) -> ClientConfig {
        self.client_of(&[&rustls::version::TLS13, &rustls::version::TLS12])
    }

    /// A client with these versions.
    pub(crate) fn client_of(&self, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        builder.with_root_certificates(roots).with_no_client_auth()
    }
}

/// Connects to an edge by a name.
pub(crate) async fn connect(
    edge: SocketAddr,
    name: &str,
    client: &ClientConfig,
) -> std::io::Result<TlsStream<TcpStream>> {
    over(TcpStream::connect(edge).await.unwrap(), name, client).await
}

/// Begins TLS over an open connection.
async fn over(stream: TcpStream, name: &str, client: &ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let connector = TlsConnector::from(Arc::new(client.clone()));
    connector.connect(ServerName::try_from(name.to_owned()).unwrap(), stream).await
}

/// Sends a GET request and returns the whole response.
pub(crate) async fn get(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    host: &str,
    path: &str,
) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    response(stream).await
}

/// Reads one response with a `content-length`.
pub(crate) async fn response(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap_or("0").parse().unwrap() {
                return text;
            }
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the connection was closed: {text}");
    }
}

/// Returns the certificate that the edge presented.
pub(crate) fn presented(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

/// A client that trusts no authority, for hellos alone.
pub(crate) fn any_client() -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

/// Returns a client's hello for a name.
pub(crate) fn hello(name: &str) -> Vec<u8> {
    let mut connection =
        rustls::ClientConnection::new(Arc::new(any_client()), ServerName::try_from(name.to_owned()).unwrap())
            .unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}
