//! A control plane with its own database, a movable clock and two providers.

use axum::Router;
use chrono::{DateTime, TimeDelta};
use control_plane::{App, Config, DEFAULTS};
use http::{Method, StatusCode};
use sandbox::test::TestDatabase;
use serde_json::Value;
use service::Clock;
use service::config::{Sources, load};

use crate::browser::{Browser, send};
use crate::provider::Provider;

pub(crate) const BASE: &str = "http://localhost:8080";
pub(crate) const MASTER_KEY: &str = "8f14e45fceea167a5a36dedd4bea2543c9f0f895fb98ab9159f51fd0297e236d";

pub(crate) struct Fixture {
    pub(crate) router: Router,
    pub(crate) app: App,
    pub(crate) database: TestDatabase,
    pub(crate) clock: Clock,
    pub(crate) a: Provider,
    pub(crate) b: Provider,
}

/// A trial with its secrets.
pub(crate) struct Trial {
    pub(crate) key: String,
    /// The path of the claim link.
    pub(crate) path: String,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts with these additional settings.
    pub(crate) async fn with(set: &[&str]) -> Self {
        let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let clock = Clock::manual(start);
        let (a, b) = (Provider::start(&clock).await, Provider::start(&clock).await);
        let database = sandbox::test::database().await;
        let config = settings(&database, &a, &b, set).await;
        let app = App::with_clock(&config, clock.clone()).unwrap();
        Self { router: control_plane::router(&app), app, database, clock, a, b }
    }

    /// A browser without cookies.
    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.router.clone())
    }

    /// A browser signed in as `subject` at provider `a`.
    pub(crate) async fn signed_in(&self, subject: &str) -> Browser {
        self.signed_in_from(subject, "/account").await
    }

    /// A browser that came from a claim page to sign in and has claimed nothing: it has no account.
    pub(crate) async fn signed_in_to_claim(&self, subject: &str) -> Browser {
        self.signed_in_from(subject, "/claim/abc").await
    }

    async fn signed_in_from(&self, subject: &str, return_to: &str) -> Browser {
        let mut browser = self.browser();
        let response = browser.sign_in("a", &self.a, subject, return_to).await;
        assert_eq!(response.status, StatusCode::SEE_OTHER, "{}", response.text);
        browser
    }

    pub(crate) async fn trial(&self) -> Trial {
        let created = send(&self.router, Method::POST, "/api/trial", &[], "").await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.text);
        let created: Value = serde_json::from_str(&created.text).unwrap();
        let path = created["claimUrl"].as_str().unwrap().strip_prefix(BASE).unwrap().to_owned();
        Trial { key: created["key"].as_str().unwrap().to_owned(), path }
    }

    /// Returns the API's response for the account of a key.
    pub(crate) async fn account(&self, key: &str) -> (StatusCode, Value) {
        let bearer = format!("Bearer {key}");
        let response =
            send(&self.router, Method::GET, "/api/account", &[("authorization", &bearer)], "").await;
        (response.status, serde_json::from_str(&response.text).unwrap())
    }

    /// As [`Fixture::start`], with credentials cached for an hour, so that only explicit
    /// invalidation removes them.
    pub(crate) async fn with_long_cache() -> Self {
        Self::with(&["keys.cache_ttl=1h"]).await
    }

    pub(crate) fn advance_clock(&self, by: TimeDelta) {
        self.clock.advance(by);
    }

    /// Returns the texts of a query.
    pub(crate) async fn texts(&self, statement: &'static str) -> Vec<String> {
        sqlx::query_scalar(statement).fetch_all(&self.database.db).await.unwrap()
    }

    /// Executes a statement.
    pub(crate) async fn execute(&self, statement: &str) {
        store::execute_raw(&self.database.db, statement).await.unwrap();
    }
}

/// Settings with the test's own stores and the providers `a` and `b`.
pub(crate) async fn settings(database: &TestDatabase, a: &Provider, b: &Provider, set: &[&str]) -> Config {
    let redis = sandbox::test::redis().await;
    let mut all = sandbox::test::settings_for(&[database, &redis]);
    all.extend([
        format!("http.base_url={BASE}"),
        "http.sites_domain=localhost".to_owned(),
        format!("blobs.url={}", std::env::temp_dir().join("web-runtime-no-blobs").display()),
        format!("secrets.master_key={MASTER_KEY}"),
        "secrets.key_pepper=a-pepper-for-tests".to_owned(),
        "secrets.edge_token=a-token-for-tests-alone".to_owned(),
        "trial.max_per_hour=100".to_owned(),
        "trial.max_per_day=100".to_owned(),
        "keys.cache_ttl=0s".to_owned(),
        "signin.allow=127.0.0.0/8".to_owned(),
    ]);
    for (name, provider) in [("a", a), ("b", b)] {
        all.push(format!("signin.providers.{name}.issuer={}", provider.issuer));
        all.push(format!("signin.providers.{name}.client_id=us"));
        all.push(format!("signin.providers.{name}.client_secret=a-secret-of-ours"));
        all.push(format!("signin.providers.{name}.label=Provider {name}"));
    }
    all.extend(set.iter().map(ToString::to_string));
    load(DEFAULTS, &Sources { set: all, ..Sources::default() }).unwrap().config
}
