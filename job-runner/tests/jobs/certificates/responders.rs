//! Answers challenges from the table `acme_challenges`, as the edges do.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::get;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

/// A test that holds this advisory lock delays all answers.
pub(crate) const VALIDATION_LOCK: i64 = 4_712;

/// Returns the name and the key authorization of a challenge. Repeats the query while the machine is too busy for it, because
/// the authority asks only once.
async fn answer(db: &store::Db, kind: &str, column: &str, value: String) -> Option<(String, String)> {
    let statement = format!(
        "select name, key_authorization from acme_challenges, pg_advisory_xact_lock_shared({VALIDATION_LOCK})
         where kind = '{kind}' and {column} = $1"
    );
    loop {
        let query = sqlx::query_as(sqlx::AssertSqlSafe(statement.as_str())).bind(value.clone());
        match query.fetch_optional(db).await {
            Err(sqlx::Error::PoolTimedOut) => {}
            found => return found.unwrap(),
        }
    }
}

/// Serves `/.well-known/acme-challenge/` at a port.
pub(crate) async fn http_01(port: u16, db: store::Db) {
    async fn respond(
        State(db): State<store::Db>,
        address: Uri,
        headers: HeaderMap,
    ) -> Result<String, StatusCode> {
        let host = headers["host"].to_str().unwrap().split(':').next().unwrap().to_owned();
        let token = address.path().rsplit('/').next().unwrap_or_default();
        let found = answer(&db, "http-01", "token", token.to_owned()).await;
        found.filter(|(name, _)| *name == host).map(|(_, answer)| answer).ok_or(StatusCode::NOT_FOUND)
    }
    let app = Router::new().route("/.well-known/acme-challenge/{token}", get(respond)).with_state(db);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
}

/// Answers TLS-ALPN-01 at a port. Returns at once.
pub(crate) async fn tls_alpn_01(port: u16, db: store::Db) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    let runtime = Handle::current();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (db, runtime) = (db.clone(), runtime.clone());
            let client = client.into_std().unwrap();
            client.set_nonblocking(false).unwrap();
            tokio::task::spawn_blocking(move || handshake(client, &db, &runtime));
        }
    });
}

fn handshake(mut client: std::net::TcpStream, db: &store::Db, runtime: &Handle) {
    let mut acceptor = Acceptor::default();
    let accepted = loop {
        acceptor.read_tls(&mut client).unwrap();
        if let Some(accepted) = acceptor.accept().map_err(|(error, _)| error).unwrap() {
            break accepted;
        }
    };
    let name = accepted.client_hello().server_name().unwrap().to_owned();
    let (_, key_authorization) = runtime.block_on(answer(db, "tls-alpn-01", "name", name.clone())).unwrap();
    let certificate = certificate(&name, &key_authorization);
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(One(Arc::new(certificate))));
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let mut connection = accepted.into_connection(Arc::new(config)).map_err(|(error, _)| error).unwrap();
    // The authority closes the connection after the handshake.
    while connection.is_handshaking() && connection.complete_io(&mut client).is_ok() {}
}

fn certificate(name: &str, key_authorization: &str) -> CertifiedKey {
    let digest = Sha256::digest(key_authorization.as_bytes());
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(&digest)];
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    CertifiedKey::new(vec![certificate.der().clone()], ring::sign::any_supported_type(&key).unwrap())
}

#[derive(Debug)]
struct One(Arc<CertifiedKey>);

impl ResolvesServerCert for One {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}
