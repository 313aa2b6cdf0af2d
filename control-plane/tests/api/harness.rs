//! The API over its own database, called without a socket.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use control_plane::{App, Config, DEFAULTS};
use domain::base62;
use domain::keys::{self, KeyKind};
use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use futures::TryStreamExt;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use sandbox::test::{DnsServer, TestDatabase, TestFolder};
use serde_json::Value;
use service::config::{Sources, load};
use service::{Clock, Rng};
use store::blobs::NewBlob;
use store::identities::{self, ProviderIdentity};
use store::keys::NewKey;
use store::mails::Kind;
use store::sessions::NewSession;
use tower::ServiceExt;
use uuid::Uuid;

use crate::served::Served;

/// Sends a request to a replica.
pub(crate) async fn exchange(router: Router, request: Request<Body>) -> (StatusCode, HeaderMap, Value) {
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// The API of one test.
pub(crate) struct Api {
    router: Router,
    app: App,
    pub(crate) database: TestDatabase,
    settings: Vec<String>,
    numbers: AtomicU64,
    /// Answers the lookups of custom domains.
    dns: DnsServer,
    /// The blob store.
    _blobs: TestFolder,
}

impl Api {
    /// Starts the API with these settings over its own stores.
    pub(crate) async fn start(set: &[&str]) -> Self {
        Self::start_with_clock(set, Clock::system()).await
    }

    /// As `start`, with a clock that the test moves.
    pub(crate) async fn start_with_clock(set: &[&str], clock: Clock) -> Self {
        let database = sandbox::test::database().await;
        let redis = sandbox::test::redis().await;
        let blobs = sandbox::test::folder();
        let dns = DnsServer::start().await;
        let mut settings = sandbox::test::settings_for(&[&database, &redis, &blobs]);
        settings.extend([
            "http.base_url=http://localhost:8080".to_owned(),
            "http.sites_domain=localhost".to_owned(),
            "secrets.master_key=8f14e45fceea167a5a36dedd4bea2543c9f0f895fb98ab9159f51fd0297e236d".to_owned(),
            "secrets.key_pepper=a-pepper-for-tests".to_owned(),
            "secrets.edge_token=a-token-for-tests-alone".to_owned(),
            // On a busy machine the last of a hundred parallel calls may wait long for its turn.
            "api.queue_timeout=60s".to_owned(),
            "store.acquire_timeout=60s".to_owned(),
            // No ClickHouse answers there, as one at the default address of this machine might.
            "warehouse.url=http://127.0.0.1:9".to_owned(),
            // No job-runner delivers anything here.
            "webhooks.test_timeout=0s".to_owned(),
            // None executes runs either; tests that play the job-runner wait longer.
            "automations.test_timeout=0s".to_owned(),
            format!("domains.resolvers=[\"{}\"]", dns.address()),
            "domains.recheck_after=0s".to_owned(),
        ]);
        settings.extend(set.iter().map(ToString::to_string));
        let app = App::with_clock(&config(settings.clone()), clock).unwrap();
        Self {
            router: control_plane::router(&app),
            app,
            database,
            settings,
            numbers: AtomicU64::new(1),
            dns,
            _blobs: blobs,
        }
    }

    /// The DNS server of custom domains.
    pub(crate) fn dns(&self) -> &DnsServer {
        &self.dns
    }

    /// The bus of the signals to the caches.
    pub(crate) fn bus(&self) -> &cache::Bus<contract::Signal> {
        &self.app.bus
    }

    /// The key that derives the links of runs.
    pub(crate) fn master_key(&self) -> &domain::encryption::MasterKey {
        &self.app.master_key
    }

    /// Returns the value of a setting.
    pub(crate) fn setting(&self, key: &str) -> &str {
        self.settings.iter().rev().find_map(|entry| entry.strip_prefix(key)?.strip_prefix('=')).unwrap()
    }

    /// Stores the zip of a deploy as the edge would.
    pub(crate) async fn upload(&self, account_id: Uuid, deploy_id: Uuid, zip: &[u8]) {
        let (mut tx, blob_id) = self.store_bytes(account_id, deploy_id, zip).await;
        store::deploys::update_uploaded(&mut tx, account_id, deploy_id, blob_id).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// Stores the bytes of an asset as the edge would.
    pub(crate) async fn upload_asset(&self, account_id: Uuid, asset_id: Uuid, bytes: &[u8]) {
        let (mut tx, blob_id) = self.store_bytes(account_id, asset_id, bytes).await;
        store::assets::update_blob(&mut tx, account_id, asset_id, blob_id).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    async fn store_bytes(&self, account_id: Uuid, upload_id: Uuid, bytes: &[u8]) -> (store::Tx, Uuid) {
        let (app, rng) = (&self.app, Rng::system());
        let mut incoming = app.blobs.receive(account_id, upload_id);
        incoming.write(bytes.to_vec().into()).await.unwrap();
        let received = incoming.finish().await.unwrap();
        let size_bytes = i64::try_from(received.size()).unwrap();
        let id = rng.uuid_v7(Clock::system().now());
        let blob = NewBlob { id, sha256: received.name().sha256, size_bytes };
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let blobs = store::blobs::reference_blobs(&mut tx, account_id, &[blob]).await.unwrap();
        app.blobs.store(&received).await.unwrap();
        (tx, blobs[0].id)
    }

    /// Deletes bytes as the job-runner would.
    pub(crate) async fn delete_bytes(&self, account_id: Uuid, sha256: [u8; 32]) {
        self.app.blobs.delete(blobs::Name { account_id, sha256 }).await.unwrap();
    }

    /// Returns the file that the edge would serve at a path of a site.
    pub(crate) async fn site_file(&self, subdomain_id: Uuid, path: &str) -> Option<(String, Vec<u8>)> {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let now = self.app.clock.now();
        let file = store::deploys::files::find_file(&mut conn, subdomain_id, path, now).await.unwrap()?;
        let name = blobs::Name { account_id: file.account_id, sha256: file.sha256 };
        let bytes = self.app.blobs.read(name, 0..file.size_bytes.unsigned_abs()).await.unwrap();
        let bytes: Vec<bytes::Bytes> = bytes.try_collect().await.unwrap();
        Some((file.content_type, bytes.concat()))
    }

    /// Starts another replica over the same stores, with these settings changed.
    pub(crate) fn replica(&self, set: &[&str]) -> Router {
        control_plane::router(&App::with_clock(&self.config(set), self.app.clock.clone()).unwrap())
    }

    /// The settings with these changed.
    pub(crate) fn config(&self, set: &[&str]) -> Config {
        let set = set.iter().map(ToString::to_string).collect();
        config([self.settings.clone(), set].concat())
    }

    /// Starts the whole service over the same stores, with these settings changed.
    pub(crate) fn serve(&self, set: &[&str]) -> Served {
        Served::start(self.config(set))
    }

    /// Returns why a replica with these settings does not start.
    pub(crate) fn refused(&self, set: &[&str]) -> String {
        App::new(&self.config(set)).err().map(|error| format!("{error:#}")).unwrap_or_default()
    }

    /// Returns subject and reply address of a queued help request.
    pub(crate) async fn help_due(&self, id: &str) -> Option<(String, String)> {
        let (mut conn, now) = (store::acquire(&self.database.db).await.unwrap(), Clock::system().now());
        let id = id.parse().unwrap();
        let due = store::mails::lease(&mut conn, Kind::Help, id, now, now).await.unwrap()?;
        let help = store::help::find_help_request(&mut conn, due.account_id, id).await.unwrap()?;
        Some((help.subject, help.email.unwrap_or_default()))
    }

    /// Sends a request and returns status, headers and body.
    pub(crate) async fn exchange(&self, request: Request<Body>) -> (StatusCode, HeaderMap, Value) {
        exchange(self.router.clone(), request).await
    }

    /// Sends a request; `null` stands for no body.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> (StatusCode, Value) {
        send_to(&self.router, method, path, key, body).await
    }

    /// Sends a request with these headers; `null` stands for no body.
    pub(crate) async fn send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, String)],
        body: &Value,
    ) -> (StatusCode, Value) {
        let (status, _, response) = exchange(self.router.clone(), request(method, path, headers, body)).await;
        (status, response)
    }

    /// Creates a trial and returns its key.
    pub(crate) async fn trial(&self) -> String {
        let (status, trial) = self.send(Method::POST, "/api/trial", None, &Value::Null).await;
        assert_eq!(status, StatusCode::CREATED, "{trial}");
        trial["key"].as_str().unwrap().to_owned()
    }

    /// Creates a trial on this plan and returns its key and account.
    pub(crate) async fn trial_on(&self, plan: Plan) -> (String, Uuid) {
        let key = self.trial().await;
        let account_id = self.account_of(&key).await;
        self.set_plan(account_id, plan).await;
        (key, account_id)
    }

    /// Sets the plan of an account, as an operator would.
    pub(crate) async fn set_plan(&self, account_id: Uuid, plan: Plan) {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        assert!(store::accounts::update_plan(&mut conn, account_id, plan).await.unwrap());
        self.app.credentials.invalidate_account(account_id);
    }

    /// Returns the account of a key.
    pub(crate) async fn account_of(&self, key: &str) -> Uuid {
        let (_, account) = self.send(Method::GET, "/api/account", Some(key), &Value::Null).await;
        account["id"].as_str().unwrap().parse().unwrap()
    }

    /// Creates another key of the account, with these scopes.
    pub(crate) async fn key_with(&self, key: &str, scopes: ScopeSet) -> String {
        let account_id = self.account_of(key).await;
        self.insert_key(account_id, scopes, Restrictions::default(), None).await.1
    }

    /// Inserts another key of an account, without a parent, and returns its id.
    pub(crate) async fn insert_key(
        &self,
        account_id: Uuid,
        scopes: ScopeSet,
        restrictions: Restrictions,
        expires_at: Option<DateTime<Utc>>,
    ) -> (Uuid, String) {
        let (new, secret) = self.new_key(scopes, restrictions, expires_at);
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::keys::insert_key(&mut conn, account_id, &new).await.unwrap();
        (new.id, secret)
    }

    /// As [`Api::insert_key`], made by the account's oldest key.
    pub(crate) async fn insert_child(
        &self,
        account_id: Uuid,
        scopes: ScopeSet,
        restrictions: Restrictions,
        expires_at: Option<DateTime<Utc>>,
    ) -> (Uuid, String) {
        let (mut new, secret) = self.new_key(scopes, restrictions, expires_at);
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let oldest = store::keys::list_keys(&mut conn, account_id, None, false, 1).await.unwrap();
        new.parent_id = Some(oldest.rows[0].id);
        store::keys::insert_key(&mut conn, account_id, &new).await.unwrap();
        (new.id, secret)
    }

    /// Returns a new key without a parent, and its secret.
    pub(crate) fn new_key(
        &self,
        scopes: ScopeSet,
        restrictions: Restrictions,
        expires_at: Option<DateTime<Utc>>,
    ) -> (NewKey, String) {
        let (clock, rng) = (Clock::system(), Rng::system());
        let generated = keys::make(KeyKind::Live, &rng.bytes());
        let new = NewKey {
            id: rng.uuid_v7(clock.now()),
            secret: self.app.credentials.secret(KeyKind::Live, &generated),
            label: "test".to_owned(),
            scopes,
            restrictions,
            expires_at,
            parent_id: None,
            created_at: clock.now(),
        };
        (new, generated)
    }

    /// Returns the cookie of a session that has claimed the account.
    pub(crate) async fn sign_in(&self, account_id: Uuid) -> String {
        let (clock, rng) = (Clock::system(), Rng::system());
        let (now, id) = (clock.now(), rng.uuid_v7(clock.now()));
        let token = base62::encode(&rng.bytes::<32>(), 43);
        let identity_input = ProviderIdentity {
            issuer: "https://provider.test".to_owned(),
            subject: id.to_string(),
            email: Some("ana@example.com".to_owned()),
            email_verified: true,
            name: None,
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let identity_id = identities::upsert_identity(&mut conn, id, &identity_input, now).await.unwrap();
        identities::insert_account(&mut conn, account_id, identity_id, None, now).await.unwrap();
        let session = NewSession {
            id: rng.uuid_v7(now),
            token_hash: control_plane::signin::token::hash(&token),
            identity_id,
            account_id: Some(account_id),
            created_at: now,
            expires_at: now + TimeDelta::days(7),
            ends_at: now + TimeDelta::days(30),
        };
        store::sessions::insert_session(&mut conn, &session).await.unwrap();
        format!("session={token}")
    }

    /// Sends a request and returns the raw response.
    pub(crate) async fn raw_response(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Begins another transaction on the test's database.
    pub(crate) async fn begin(&self) -> store::Tx {
        store::begin(&self.database.db).await.unwrap()
    }

    /// Waits until a statement waits for a lock in the test's database.
    pub(crate) async fn until_lock_wait(&self) {
        let waiting = "do $$ begin
            perform from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid();
            if not found then raise 'closed_port'; end if; end $$";
        let wait = async {
            while self.execute(waiting).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap();
    }

    /// Returns increasing numbers.
    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs statements on the test's database.
    pub(crate) async fn execute(&self, statements: &str) -> Result<(), store::Error> {
        store::execute_raw(&self.database.db, statements).await
    }
}

fn config(set: Vec<String>) -> Config {
    load(DEFAULTS, &Sources { set, ..Sources::default() }).unwrap().config
}

/// Sends a request to a replica; `null` stands for no body.
pub(crate) async fn send_to(
    router: &Router,
    method: Method,
    path: &str,
    key: Option<&str>,
    body: &Value,
) -> (StatusCode, Value) {
    let shown = key.map(|key| ("authorization", format!("Bearer {key}")));
    let headers: Vec<_> = shown.into_iter().collect();
    let (status, _, response) = exchange(router.clone(), request(method, path, &headers, body)).await;
    (status, response)
}

fn request(method: Method, path: &str, headers: &[(&'static str, String)], body: &Value) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    if body.is_null() {
        return request.body(Body::empty()).unwrap();
    }
    request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()
}
