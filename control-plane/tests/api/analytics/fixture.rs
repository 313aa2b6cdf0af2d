//! An API with a warehouse and analytics sites.

use contract::events::Event;
use domain::plans::Plan;
use domain::visits::Rules;
use http::{Method, StatusCode};
use sandbox::test::TestStore as _;
use serde_json::{Value, json};
use service::Clock;
use uuid::Uuid;
use warehouse::Warehouse;

use crate::harness::Api;

/// An account on the largest plan.
pub(super) struct Fixture {
    pub(super) api: Api,
    pub(super) warehouse: Warehouse,
    pub(super) key: String,
    pub(super) account_id: Uuid,
}

impl Fixture {
    pub(super) async fn start(set: &[&str]) -> Self {
        Self::start_with_clock(set, Clock::system()).await
    }

    /// As `start`, with a clock that the test moves.
    pub(super) async fn start_with_clock(set: &[&str], clock: Clock) -> Self {
        let clickhouse = sandbox::test::clickhouse().await;
        let mut settings = clickhouse.settings();
        // A machine that compiles beside the tests takes longer for a query than the default permits.
        settings.push("analytics.timeout=60s".to_owned());
        settings.extend(set.iter().map(ToString::to_string));
        let settings: Vec<_> = settings.iter().map(String::as_str).collect();
        let api = Api::start_with_clock(&settings, clock).await;
        let (key, account_id) = api.trial_on(Plan::Scale).await;
        Self { api, warehouse: clickhouse.connect(), key, account_id }
    }

    /// Creates a site in this time zone.
    pub(super) async fn site(&self, zone: &str) -> Uuid {
        let (status, created) = self.send(Method::POST, "/api/analytics/sites", &json!({"name": "S"})).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        let id = created["site"]["id"].as_str().unwrap();
        let path = format!("/api/analytics/sites/{id}");
        let (status, set) = self.send(Method::PATCH, &path, &json!({"timezone": zone})).await;
        assert_eq!((status, &set["timezone"]), (StatusCode::OK, &json!(zone)), "{set}");
        id.parse().unwrap()
    }

    pub(super) async fn send(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        self.api.send(method, path, Some(&self.key), body).await
    }

    /// Returns the body of a successful GET.
    pub(super) async fn get(&self, path: &str) -> Value {
        let (status, response) = self.send(Method::GET, path, &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{path}: {response}");
        response
    }

    /// Returns the body of a successful POST.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Value {
        let (status, response) = self.send(Method::POST, path, body).await;
        assert_eq!(status, StatusCode::OK, "{path} {body}: {response}");
        response
    }

    /// Stores events as the collector does, in batches of `at_a_time`.
    pub(super) async fn store(&self, events: &[Event], at_a_time: usize) {
        for batch in events.chunks(at_a_time) {
            let token = batch[0].id.to_string();
            self.warehouse.insert_events(&token, batch).await.unwrap();
            self.warehouse.insert_retention(batch).await.unwrap();
            self.warehouse.recompute_visits(batch, Rules::default()).await.unwrap();
        }
    }
}
