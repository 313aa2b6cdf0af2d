//! The HTTPS client for certificate authorities. Only the operator chooses them, so it does not use the guard of other
//! outgoing calls. Responses are limited in time and size.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// Longer than any chain of certificates.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// A client of certificate authorities. Clones share its connections.
#[derive(Clone)]
pub(super) struct AcmeHttp {
    client: Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>,
    timeout: Duration,
}

impl AcmeHttp {
    /// Trusts the roots in `ca_file`; those of the system if the path is empty.
    pub(super) fn new(ca_file: &Path, timeout: Duration) -> anyhow::Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let builder = HttpsConnectorBuilder::new();
        let builder = if ca_file.as_os_str().is_empty() {
            builder
                .with_provider_and_platform_verifier(provider)
                .context("the system's root certificates can't be read; install them or set acme.ca_file")?
        } else {
            let config =
                ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
            builder.with_tls_config(config.with_root_certificates(roots(ca_file)?).with_no_client_auth())
        };
        let connector = builder.https_only().enable_http1().enable_http2().build();
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), timeout })
    }
}

fn roots(ca_file: &Path) -> anyhow::Result<RootCertStore> {
    let context = || format!("acme.ca_file {} must hold certificates in PEM", ca_file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca_file).with_context(context)? {
        roots.add(certificate.with_context(context)?).with_context(context)?;
    }
    ensure!(!roots.is_empty(), context());
    Ok(roots)
}

impl HttpClient for AcmeHttp {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let (response, timeout) = (self.client.request(request), self.timeout);
        let exchange = async move {
            let response = response.await.map_err(|error| Error::Other(Box::new(error)))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(Error::Other)?;
            Ok::<_, Error>((head, body.to_bytes()))
        };
        Box::pin(async move {
            let no_answer = |_| Error::Other(format!("no answer within {timeout:?}").into());
            let (head, body) = tokio::time::timeout(timeout, exchange).await.map_err(no_answer)??;
            let is_problem = head
                .headers
                .get(header::CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"application/problem+json"));
            let status = head.status;
            if !is_problem && (status.is_server_error() || status.is_client_error()) {
                let detail = format!("The certificate authority answered {status} without a reason.");
                let problem = serde_json::json!({ "detail": detail, "status": status.as_u16() });
                return Err(Error::Api(serde_json::from_value(problem)?));
            }
            Ok(BytesResponse::from(Response::from_parts(head, Full::new(body))))
        })
    }
}
