//! A control plane of a test's own, by a clock that the test moves, with two providers.

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

pub(crate) struct Stand {
    pub(crate) router: Router,
    pub(crate) app: App,
    pub(crate) database: TestDatabase,
    pub(crate) clock: Clock,
    pub(crate) a: Provider,
    pub(crate) b: Provider,
}

/// A trial as whoever made it knows it.
pub(crate) struct Trial {
    pub(crate) key: String,
    /// The claim link's path.
    pub(crate) path: String,
}

impl Stand {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// With these settings beside the usual ones.
    pub(crate) async fn with(set: &[&str]) -> Self {
        let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let clock = Clock::manual(start);
        let (a, b) = (Provider::start(&clock).await, Provider::start(&clock).await);
        let database = sandbox::test::database().await;
        let config = settings(&database, &a, &b, set).await;
        let app = App::with_clock(&config, clock.clone()).unwrap();
        Self { router: control_plane::router(&app), app, database, clock, a, b }
    }

    /// Somebody's browser that has never been here.
    pub(crate) fn browser(&self) -> Browser {
        Browser::new(self.router.clone())
    }

    /// A browser in which somebody is signed in at `a`.
    pub(crate) async fn signed_in(&self, subject: &str) -> Browser {
        let mut browser = self.browser();
        let back = browser.sign_in("a", &self.a, subject, "/account").await;
        assert_eq!(back.status, StatusCode::SEE_OTHER, "{}", back.text);
        browser
    }

    pub(crate) async fn trial(&self) -> Trial {
        let made = send(&self.router, Method::POST, "/api/trial", &[], "").await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        let made: Value = serde_json::from_str(&made.text).unwrap();
        let path = made["claimUrl"].as_str().unwrap().strip_prefix(BASE).unwrap().to_owned();
        Trial { key: made["key"].as_str().unwrap().to_owned(), path }
    }

    /// What the API says of the key's account.
    pub(crate) async fn account(&self, key: &str) -> (StatusCode, Value) {
        let bearer = format!("Bearer {key}");
        let answer = send(&self.router, Method::GET, "/api/account", &[("authorization", &bearer)], "").await;
        (answer.status, serde_json::from_str(&answer.text).unwrap())
    }

    /// As [`Stand::start`], where whoever called an hour ago would still be remembered: what is forgotten, is
    /// forgotten because somebody said so.
    pub(crate) async fn that_remembers() -> Self {
        Self::with(&["keys.cache_ttl=1h"]).await
    }

    pub(crate) fn later(&self, by: TimeDelta) {
        self.clock.advance(by);
    }

    /// What stands in the database: a statement that gives texts.
    pub(crate) async fn texts(&self, statement: &'static str) -> Vec<String> {
        sqlx::query_scalar(statement).fetch_all(&self.database.db).await.unwrap()
    }

    /// Changes what stands in the database.
    pub(crate) async fn execute(&self, statement: &str) {
        store::execute_raw(&self.database.db, statement).await.unwrap();
    }
}

/// Settings over stores of the test's own, with the providers `a` and `b`.
pub(crate) async fn settings(database: &TestDatabase, a: &Provider, b: &Provider, set: &[&str]) -> Config {
    let redis = sandbox::test::redis().await;
    let mut all = vec![
        format!("store.url={}", database.url),
        format!("redis.url={}", redis.url),
        format!("redis.prefix={}", redis.prefix),
        format!("http.base_url={BASE}"),
        "http.sites_domain=localhost".to_owned(),
        format!("blobs.url={}", std::env::temp_dir().join("web-runtime-no-blobs").display()),
        format!("secrets.master_key={}", "ab".repeat(32)),
        "secrets.key_pepper=a-pepper-for-tests".to_owned(),
        "trial.max_per_hour=100".to_owned(),
        "trial.max_per_day=100".to_owned(),
        "keys.cache_ttl=0s".to_owned(),
        "signin.allow=127.0.0.0/8".to_owned(),
    ];
    for (name, provider) in [("a", a), ("b", b)] {
        all.push(format!("signin.providers.{name}.issuer={}", provider.issuer));
        all.push(format!("signin.providers.{name}.client_id=us"));
        all.push(format!("signin.providers.{name}.client_secret=a-secret-of-ours"));
        all.push(format!("signin.providers.{name}.label=Provider {name}"));
    }
    all.extend(set.iter().map(ToString::to_string));
    load(DEFAULTS, &Sources { set: all, ..Sources::default() }).unwrap().config
}
