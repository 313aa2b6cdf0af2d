//! A small stub of an ACME server with profiles and renewal information (RFC 9773), which pebble lacks. It checks no signature
//! and no name: every order is ready at once.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Datelike as _, TimeDelta, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256,
    PublicKeyData, SignatureAlgorithm, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tempfile::TempDir;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use crate::fixture::account::now;

/// The only profile that it offers.
pub(crate) const PROFILE: &str = "shortlived";
/// `Retry-After` of its renewal information.
pub(crate) const READ_AGAIN_SECONDS: i64 = 7_200;

/// A start and an end.
pub(crate) type Window = (DateTime<Utc>, DateTime<Utc>);

/// A running stub. Its threads end with the process.
pub(crate) struct StubAuthority {
    port: u16,
    folder: TempDir,
    state: Arc<Mutex<State>>,
}

struct State {
    port: u16,
    root: CertifiedIssuer<'static, KeyPair>,
    orders: Vec<Order>,
    window: Window,
    windows: HashMap<String, Window>,
    reads: Vec<String>,
    refuses_replacements: bool,
    order_problem: Option<(u16, &'static str)>,
}

struct Order {
    request: Value,
    chain: Option<String>,
}

struct Response {
    status: u16,
    location: Option<String>,
    kind: &'static str,
    body: String,
}

impl StubAuthority {
    /// Starts a stub that suggests this window for every certificate.
    pub(crate) fn start(window: Window) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), root.pem()).unwrap();
        let config = Arc::new(server_config(&root));
        let state = Arc::new(Mutex::new(State {
            port,
            root,
            orders: Vec::new(),
            window,
            windows: HashMap::new(),
            reads: Vec::new(),
            refuses_replacements: false,
            order_problem: None,
        }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (state, config) = (Arc::clone(&shared), Arc::clone(&config));
                std::thread::spawn(move || serve(client, config, &state));
            }
        });
        Self { port, folder, state }
    }

    pub(crate) fn directory_url(&self) -> String {
        format!("https://127.0.0.1:{}/directory", self.port)
    }

    pub(crate) fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Returns the accepted and refused orders as they were sent.
    pub(crate) fn orders(&self) -> Vec<Value> {
        lock(&self.state).orders.iter().map(|order| order.request.clone()).collect()
    }

    /// Returns the identifiers of certificates, once for each time that their renewal information was read.
    pub(crate) fn reads(&self) -> Vec<String> {
        lock(&self.state).reads.clone()
    }

    /// Suggests another window for one certificate.
    pub(crate) fn suggest(&self, identifier: &str, window: Window) {
        lock(&self.state).windows.insert(identifier.to_owned(), window);
    }

    /// Answers orders that name the certificate they replace with `alreadyReplaced` from now on.
    pub(crate) fn refuse_replacements(&self) {
        lock(&self.state).refuses_replacements = true;
    }

    /// Answers new orders with this status and ACME error type from now on; with `None`, accepts them.
    pub(crate) fn answer_orders_with(&self, problem: Option<(u16, &'static str)>) {
        lock(&self.state).order_problem = problem;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn server_config(root: &CertifiedIssuer<'static, KeyPair>) -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, root);
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.unwrap().der().clone()], key)
        .unwrap()
}

/// Answers one request. A client that goes away ends the thread.
fn serve(client: TcpStream, config: Arc<ServerConfig>, state: &Mutex<State>) -> Option<()> {
    client.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(config).ok()?, client));
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).ok()?;
        let Some((name, value)) = header.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let mut response = lock(state).answer(&path, &payload(&body));
    if line.starts_with("HEAD") {
        response.body.clear();
    }
    let Response { status, location, kind, body } = response;
    let location = location.map(|url| format!("Location: {url}\r\n")).unwrap_or_default();
    let again = if path.starts_with("/renewal/") { READ_AGAIN_SECONDS } else { 0 };
    let stream = stream.get_mut();
    write!(
        stream,
        "HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nReplay-Nonce: bm9uY2U\r\nRetry-After: {again}\r\n\
         Connection: close\r\n{location}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    stream.conn.send_close_notify();
    stream.flush().ok()
}

/// Returns the payload of a signed request; `null` if it has none.
fn payload(body: &[u8]) -> Value {
    let signed: Value = serde_json::from_slice(body).unwrap_or_default();
    let payload = URL_SAFE_NO_PAD.decode(signed["payload"].as_str().unwrap_or_default()).unwrap();
    serde_json::from_slice(&payload).unwrap_or_default()
}

impl State {
    fn answer(&mut self, path: &str, payload: &Value) -> Response {
        let (what, id) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
        let url = |path: &str| format!("https://127.0.0.1:{}/{path}", self.port);
        match what {
            "directory" => ok(&json!({
                "newNonce": url("nonce"), "newAccount": url("account"), "newOrder": url("new-order"),
                "revokeCert": url("revoke"), "keyChange": url("key"), "renewalInfo": url("renewal"),
                "meta": { "profiles": { PROFILE: "for tests" } },
            })),
            "nonce" => ok(&Value::Null),
            "account" => created(url("account/1"), &json!({ "status": "valid" })),
            "new-order" => self.new_order(payload),
            "order" => ok(&self.order(id.parse().unwrap())),
            "finalize" => self.finalize(id.parse().unwrap(), payload),
            "certificate" => {
                let chain = self.orders[id.parse::<usize>().unwrap()].chain.clone().unwrap();
                Response { kind: "application/pem-certificate-chain", body: chain, ..ok(&Value::Null) }
            }
            "renewal" => {
                self.reads.push(id.to_owned());
                let (start, end) = self.windows.get(id).unwrap_or(&self.window);
                ok(&json!({ "suggestedWindow": { "start": start.to_rfc3339(), "end": end.to_rfc3339() } }))
            }
            _ => problem(404, "malformed", "There is nothing here."),
        }
    }

    fn new_order(&mut self, request: &Value) -> Response {
        self.orders.push(Order { request: request.clone(), chain: None });
        if let Some((status, kind)) = self.order_problem {
            return problem(status, kind, "The stub accepts no order.");
        }
        if request["profile"].as_str().is_some_and(|profile| profile != PROFILE) {
            return problem(400, "invalidProfile", "The stub offers only the profile shortlived.");
        }
        if self.refuses_replacements && !request["replaces"].is_null() {
            return problem(409, "alreadyReplaced", "Another order replaced it.");
        }
        let id = self.orders.len() - 1;
        created(format!("https://127.0.0.1:{}/order/{id}", self.port), &self.order(id))
    }

    fn order(&self, id: usize) -> Value {
        let Order { request, chain } = &self.orders[id];
        let url = |what: &str| format!("https://127.0.0.1:{}/{what}/{id}", self.port);
        let mut order = json!({
            "status": if chain.is_some() { "valid" } else { "ready" },
            "identifiers": request["identifiers"], "authorizations": [], "finalize": url("finalize"),
        });
        if chain.is_some() {
            order["certificate"] = url("certificate").into();
        }
        for key in ["replaces", "profile"] {
            if !request[key].is_null() {
                order[key] = request[key].clone();
            }
        }
        order
    }

    fn finalize(&mut self, id: usize, payload: &Value) -> Response {
        let csr = URL_SAFE_NO_PAD.decode(payload["csr"].as_str().unwrap()).unwrap();
        let (_, csr) = X509CertificationRequest::from_der(&csr).unwrap();
        let key = csr.certification_request_info.subject_pki.subject_public_key.data.to_vec();
        let name = self.orders[id].request["identifiers"][0]["value"].as_str().unwrap().to_owned();
        let mut params = CertificateParams::new(vec![name]).unwrap();
        params.use_authority_key_identifier_extension = true;
        let date = |days| {
            let day = now() + TimeDelta::days(days);
            date_time_ymd(day.year(), day.month().try_into().unwrap(), day.day().try_into().unwrap())
        };
        (params.not_before, params.not_after) = (date(-1), date(89));
        let certificate = params.signed_by(&RequestedKey(key), &self.root).unwrap();
        self.orders[id].chain = Some(certificate.pem());
        ok(&self.order(id))
    }
}

/// The public key of a request.
struct RequestedKey(Vec<u8>);

impl PublicKeyData for RequestedKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

fn ok(body: &Value) -> Response {
    Response { status: 200, location: None, kind: "application/json", body: body.to_string() }
}

fn created(location: String, body: &Value) -> Response {
    Response { status: 201, location: Some(location), ..ok(body) }
}

fn problem(status: u16, kind: &str, detail: &str) -> Response {
    let kind = format!("urn:ietf:params:acme:error:{kind}");
    let body = json!({ "type": kind, "detail": detail, "status": status });
    Response { status, kind: "application/problem+json", ..ok(&body) }
}
