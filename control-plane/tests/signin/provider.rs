//! A scripted OpenID provider that checks its requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine};
use chrono::TimeDelta;
use http::{HeaderMap, StatusCode};
use openidconnect::core::{
    CoreEdDsaPrivateSigningKey, CoreIdToken, CoreIdTokenClaims, CoreJwsSigningAlgorithm,
};
use openidconnect::{
    Audience, EmptyAdditionalClaims, EndUserEmail, IssuerUrl, JsonWebKeyId, Nonce, PrivateSigningKey,
    StandardClaims, SubjectIdentifier,
};
use serde_json::{Value, json};
use service::Clock;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use url::Url;

/// Deviations from a correct provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overrides {
    /// The issuer in the token.
    pub(crate) issuer: Option<String>,
    /// The nonce in the token.
    pub(crate) nonce: Option<String>,
    /// The audience in the token.
    pub(crate) audience: Option<String>,
    /// How long ago the token expired.
    pub(crate) expired_since: Option<TimeDelta>,
    /// Signs with an unpublished key.
    pub(crate) foreign_key: bool,
    /// Leaves the token unsigned, or signs it with the client secret.
    pub(crate) header: Option<Value>,
    /// The e-mail address in the token.
    pub(crate) email: Option<String>,
    /// The whole response of the userinfo endpoint.
    pub(crate) user_info: Option<Value>,
    /// How long ago the person signed in at the provider, if the token says so.
    pub(crate) signed_in_since: Option<TimeDelta>,
    /// Adds `iss` to the callback, and announces it in the metadata.
    pub(crate) announces_issuer: bool,
}

/// An authorization code that has not been exchanged.
#[derive(Debug, Clone)]
struct Code {
    subject: String,
    nonce: String,
    challenge: String,
}

/// The state shared by the clones of a provider.
#[derive(Debug, Default)]
struct ProviderState {
    overrides: Overrides,
    codes: BTreeMap<String, Code>,
    /// The current signing key.
    key: u8,
    exchanges: usize,
    count: usize,
}

#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) issuer: String,
    shared: Arc<Mutex<ProviderState>>,
    clock: Clock,
}

impl Provider {
    pub(crate) async fn start(clock: &Clock) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let provider = Self { issuer, shared: Arc::default(), clock: clock.clone() };
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(describe))
            .route("/keys", get(keys))
            .route("/token", post(exchange))
            .route("/me", get(user_info))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        provider
    }

    /// Sets the deviations.
    pub(crate) fn set_overrides(&self, overrides: Overrides) {
        self.shared.lock().unwrap().overrides = overrides;
    }

    /// Rotates the key and publishes only the new one.
    pub(crate) fn rotate_key(&self) {
        self.shared.lock().unwrap().key += 1;
    }

    /// The number of code exchanges.
    pub(crate) fn exchanges(&self) -> usize {
        self.shared.lock().unwrap().exchanges
    }

    /// Signs in as `subject` and returns the query of the callback.
    pub(crate) fn approve(&self, request: &Url, subject: &str) -> String {
        let request: BTreeMap<_, _> = request.query_pairs().into_owned().collect();
        assert_eq!((request["response_type"].as_str(), request["client_id"].as_str()), ("code", "us"));
        assert_eq!(request["code_challenge_method"], "S256");
        assert!(request["scope"].split(' ').any(|scope| scope == "openid"));
        let mut shared = self.shared.lock().unwrap();
        shared.count += 1;
        let code = format!("code-{}", shared.count);
        let (nonce, challenge) = (request["nonce"].clone(), request["code_challenge"].clone());
        shared.codes.insert(code.clone(), Code { subject: subject.to_owned(), nonce, challenge });
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("code", &code).append_pair("state", &request["state"]);
        if shared.overrides.announces_issuer {
            query.append_pair("iss", &self.issuer);
        }
        query.finish()
    }

    fn token(&self, shared: &ProviderState, code: &Code) -> String {
        let overrides = &shared.overrides;
        let now = self.clock.now();
        let expires_at = now + overrides.expired_since.map_or(TimeDelta::minutes(5), |since| -since);
        let email = overrides.email.clone().map(EndUserEmail::new);
        let standard = StandardClaims::new(SubjectIdentifier::new(code.subject.clone()))
            .set_email_verified(email.is_some().then_some(true))
            .set_email(email);
        let claims = CoreIdTokenClaims::new(
            IssuerUrl::new(overrides.issuer.clone().unwrap_or_else(|| self.issuer.clone())).unwrap(),
            vec![Audience::new(overrides.audience.clone().unwrap_or_else(|| "us".to_owned()))],
            expires_at,
            now,
            standard,
            EmptyAdditionalClaims {},
        )
        .set_auth_time(overrides.signed_in_since.map(|since| now - since))
        .set_nonce(Some(Nonce::new(overrides.nonce.clone().unwrap_or_else(|| code.nonce.clone()))));
        if let Some(header) = &overrides.header {
            return hmac_signed(header, &claims);
        }
        let key = key(if overrides.foreign_key { 99 } else { shared.key });
        let signed = CoreIdToken::new(claims, &key, CoreJwsSigningAlgorithm::EdDsa, None, None);
        signed.unwrap().to_string()
    }
}

/// A token with a custom header, unsigned or signed with the client secret.
fn hmac_signed(header: &Value, claims: &CoreIdTokenClaims) -> String {
    let part = |text: String| BASE64_URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", part(header.to_string()), part(serde_json::to_string(claims).unwrap()));
    if header["alg"] == "none" {
        return format!("{signed}.");
    }
    let mac = domain::keys::Pepper::new(b"a-secret-of-ours").unwrap().fingerprint(&signed);
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(mac))
}

/// An Ed25519 key derived from one number: PKCS #8 is a fixed prefix and 32 bytes.
fn key(number: u8) -> CoreEdDsaPrivateSigningKey {
    let prefix = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let der = [prefix.as_slice(), &[number; 32]].concat();
    let pem =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", BASE64_STANDARD.encode(der));
    let id = JsonWebKeyId::new(format!("key-{number}"));
    CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, Some(id)).unwrap()
}

fn respond(status: StatusCode, body: &Value) -> Response {
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

async fn describe(State(provider): State<Provider>) -> Response {
    let at = |path: &str| format!("{}{path}", provider.issuer);
    let announces_issuer = provider.shared.lock().unwrap().overrides.announces_issuer;
    respond(
        StatusCode::OK,
        &json!({
            "issuer": provider.issuer,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "userinfo_endpoint": at("/me"),
            "jwks_uri": at("/keys"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            // Includes algorithms that the client must reject.
            "id_token_signing_alg_values_supported": ["EdDSA", "HS256", "none"],
            "authorization_response_iss_parameter_supported": announces_issuer,
        }),
    )
}

async fn keys(State(provider): State<Provider>) -> Response {
    let number = provider.shared.lock().unwrap().key;
    respond(StatusCode::OK, &json!({ "keys": [key(number).as_verification_key()] }))
}

async fn exchange(State(provider): State<Provider>, headers: HeaderMap, form: Bytes) -> Response {
    let request: BTreeMap<_, _> = form_urlencoded::parse(&form).into_owned().collect();
    let mut shared = provider.shared.lock().unwrap();
    shared.exchanges += 1;
    let client_credentials = format!("Basic {}", BASE64_STANDARD.encode("us:a-secret-of-ours"));
    let code = shared.codes.remove(&request["code"]);
    let hashed = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&request["code_verifier"]));
    match code {
        Some(code) if headers["authorization"] == client_credentials.as_str() && code.challenge == hashed => {
            let id_token = provider.token(&shared, &code);
            let body = json!({ "access_token": "let-me-see", "token_type": "Bearer", "id_token": id_token });
            respond(StatusCode::OK, &body)
        }
        _ => respond(StatusCode::BAD_REQUEST, &json!({ "error": "invalid_grant" })),
    }
}

async fn user_info(State(provider): State<Provider>, headers: HeaderMap) -> Response {
    let received = provider.shared.lock().unwrap().overrides.user_info.clone();
    match received {
        Some(received) if headers["authorization"] == "Bearer let-me-see" => {
            respond(StatusCode::OK, &received)
        }
        _ => respond(StatusCode::NOT_FOUND, &Value::Null),
    }
}
