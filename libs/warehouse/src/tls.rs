//! The HTTP client: of one server or several, with the public authorities or a private one.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clickhouse::Client;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::config::Config;
use crate::error::Error;
use crate::servers::{AnyServer, Servers};

/// The clickhouse crate's own values, which it doesn't export. ClickHouse closes idle connections after three seconds.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns a client of the servers in `config.url` that trusts the roots in `config.ca_file` alone, or the public authorities
/// if it is empty.
pub(crate) fn client(config: &Config, servers: &Arc<Servers>) -> Result<Client, Error> {
    let file = &config.ca_file;
    if file.as_os_str().is_empty() && servers.count() == 1 {
        return Ok(Client::default());
    }
    let mut connector = HttpConnector::new();
    connector.set_keepalive(Some(KEEPALIVE_AFTER));
    connector.enforce_http(false);
    let https = HttpsConnectorBuilder::new();
    let https = if file.as_os_str().is_empty() {
        let https = https.with_provider_and_webpki_roots(ring::default_provider());
        https.map_err(|error| Error::Setting(format!("TLS: {error}")))?.https_or_http()
    } else {
        if !servers.first().starts_with("https://") {
            return Err(Error::Setting(
                "warehouse.ca_file needs a warehouse.url that begins with https://".to_owned(),
            ));
        }
        let wrong =
            |reason: String| Error::Setting(format!("warehouse.ca_file: {}: {reason}", file.display()));
        https.with_tls_config(tls_config(file).map_err(wrong)?).https_only()
    };
    let connector = AnyServer::new(https.enable_http1().wrap_connector(connector), Arc::clone(servers));
    let http = HttpClient::builder(TokioExecutor::new()).pool_idle_timeout(IDLE_TIMEOUT).build(connector);
    Ok(Client::with_http_client(http))
}

fn tls_config(file: &Path) -> Result<ClientConfig, String> {
    let pem = std::fs::read(file).map_err(|error| error.to_string())?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("it has no certificate in PEM".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
