//! The API over a database of its own, called without a socket.

use axum::Router;
use axum::body::Body;
use control_plane::{App, Config, DEFAULTS};
use domain::keys::{self, KeyKind};
use domain::scopes::ScopeSet;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use sandbox::test::TestDatabase;
use serde_json::Value;
use service::config::{Sources, load};
use service::{Clock, Rng};
use store::keys::NewKey;
use tower::ServiceExt;
use uuid::Uuid;

/// Sends one request to a replica.
pub(crate) async fn exchange(router: Router, request: Request<Body>) -> (StatusCode, HeaderMap, Value) {
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// One test's API.
pub(crate) struct Api {
    router: Router,
    app: App,
    config: Config,
    database: TestDatabase,
}

impl Api {
    /// The API with these settings, over stores of the test's own.
    pub(crate) async fn start(set: &[&str]) -> Self {
        let database = sandbox::test::database().await;
        let redis = sandbox::test::redis().await;
        let mut settings = vec![
            format!("store.url={}", database.url),
            format!("redis.url={}", redis.url),
            format!("redis.prefix={}", redis.prefix),
            "http.base_url=http://localhost:8080".to_owned(),
            "http.sites_domain=localhost".to_owned(),
            format!("secrets.master_key={}", "ab".repeat(32)),
            "secrets.key_pepper=a-pepper-for-tests".to_owned(),
        ];
        settings.extend(set.iter().map(ToString::to_string));
        let sources = Sources { set: settings, ..Sources::default() };
        let config: Config = load(DEFAULTS, &sources).unwrap().config;
        let app = App::new(&config).unwrap();
        Self { router: control_plane::router(&app), app, config, database }
    }

    /// Another replica over the same stores.
    pub(crate) fn beside(&self) -> Router {
        control_plane::router(&App::new(&self.config).unwrap())
    }

    /// Runs one statement on its database, as nothing in the system would.
    pub(crate) async fn tamper(&self, statement: &str) -> Result<(), store::Error> {
        store::execute_raw(&self.database.db, statement).await
    }

    /// Sends one request as it is; gives the answer with its headers.
    pub(crate) async fn exchange(&self, request: Request<Body>) -> (StatusCode, HeaderMap, Value) {
        exchange(self.router.clone(), request).await
    }

    /// Sends one request; a null body is none.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header("content-type", "application/json");
            Body::from(body.to_string())
        };
        let (status, _, answer) = self.exchange(request.body(body).unwrap()).await;
        (status, answer)
    }

    /// A trial's key.
    pub(crate) async fn trial(&self) -> String {
        let (status, trial) = self.send(Method::POST, "/api/trial", None, &Value::Null).await;
        assert_eq!(status, StatusCode::CREATED, "{trial}");
        trial["key"].as_str().unwrap().to_owned()
    }

    /// A further key of the account behind `key`, with those scopes.
    pub(crate) async fn key_with(&self, key: &str, scopes: ScopeSet) -> String {
        let (_, account) = self.send(Method::GET, "/api/account", Some(key), &Value::Null).await;
        let account_id: Uuid = account["id"].as_str().unwrap().parse().unwrap();
        let (clock, rng) = (Clock::system(), Rng::system());
        let made = keys::make(KeyKind::Live, &rng.bytes());
        let new = NewKey {
            id: rng.uuid_v7(clock.now()),
            fingerprint: self.app.callers.fingerprint(&made),
            shown_prefix: keys::shown_prefix(KeyKind::Live, &made),
            label: "test".to_owned(),
            scopes,
            expires_at: None,
            created_at: clock.now(),
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::keys::insert_key(&mut conn, account_id, &new).await.unwrap();
        made
    }
}
