//! An account with automations, and a worker that plays the job-runner.

use axum::body::Body;
use chrono::TimeDelta;
use contract::Signal;
use domain::plans::Plan;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use sandbox::test::eventually;
use serde_json::{Value, json};
use service::{Clock, Rng};
use sqlx::AssertSqlSafe;
use store::automations::{
    Claim, ClaimedRun, ResponseOutcome, RunEnd, RunLimit, RunResult, StepRow, claim_runs, complete_runs,
    record_ended_runs, store_response, store_steps,
};
use uuid::Uuid;

use crate::harness::Api;

/// An account with automations.
pub(crate) struct Owner {
    pub(crate) api: Api,
    pub(crate) key: String,
    pub(crate) account_id: Uuid,
}

/// A response of a public URL.
#[derive(Debug)]
pub(crate) struct PublicResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl PublicResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn run_id(&self) -> Uuid {
        self.json()["runId"].as_str().unwrap_or_else(|| panic!("{self:?}")).parse().unwrap()
    }
}

impl Owner {
    pub(crate) async fn new(set: &[&str]) -> Self {
        Self::on(Plan::Scale, set).await
    }

    pub(crate) async fn on(plan: Plan, set: &[&str]) -> Self {
        let api = Api::start(set).await;
        let (key, account_id) = api.trial_on(plan).await;
        Self { api, key, account_id }
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        self.api.send(method, path, Some(&self.key), &body).await
    }

    /// Returns the body of a successful call.
    pub(crate) async fn ok(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, response) = self.call(method, path, body).await;
        assert!(status.is_success(), "{path}: {status} {response}");
        response
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ok(Method::GET, path, Value::Null).await
    }

    /// Creates an automation and returns its API path and the response.
    pub(crate) async fn automation(&self, body: Value) -> (String, Value) {
        let created = self.ok(Method::POST, "/api/automations", body).await;
        (format!("/api/automations/{}", created["id"].as_str().unwrap()), created)
    }

    /// Returns the status, and code and fields of the errors of a refused call.
    pub(crate) async fn refused(
        &self,
        method: Method,
        path: &str,
        body: Value,
    ) -> (u16, String, Vec<(String, String)>) {
        let (status, problem) = self.call(method, path, body).await;
        assert!(status.is_client_error(), "{path}: {status} {problem}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let errors = problem["fieldErrors"].as_array().cloned().unwrap_or_default();
        let errors = errors.iter().map(|error| (text(&error["field"]), text(&error["code"])));
        (status.as_u16(), text(&problem["code"]), errors.collect())
    }

    /// Creates a page with an entry template.
    pub(crate) async fn page(&self, slug: &str) -> String {
        let page = json!({"slug": slug, "title": "T", "html": "x", "entryTemplate": "<p>{{a}}</p>"});
        self.ok(Method::POST, "/api/pages", page).await["id"].as_str().unwrap().to_owned()
    }

    /// Sends a request without a key.
    pub(crate) async fn public(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> PublicResponse {
        let path = url.strip_prefix("http://localhost:8080").unwrap_or(url);
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.api.raw_response(request.body(body.into()).unwrap()).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        PublicResponse { status: parts.status, headers: parts.headers, text }
    }

    /// Posts JSON without a key.
    pub(crate) async fn trigger(&self, url: &str, body: &Value) -> PublicResponse {
        self.public(Method::POST, url, &[("content-type", "application/json")], body.to_string()).await
    }

    /// Claims all due runs of the account.
    pub(crate) async fn claim(&self) -> Vec<ClaimedRun> {
        let (mut tx, now) = (self.api.begin().await, Clock::system().now() + TimeDelta::milliseconds(1));
        let lease_id = Rng::system().uuid_v7(now);
        let limits = [RunLimit { account_id: self.account_id, limit: 1_000 }];
        let until = now + TimeDelta::seconds(30);
        let claimed = claim_runs(&mut tx, now, until, lease_id, &limits).await.unwrap();
        store::commit(tx).await.unwrap();
        claimed
    }

    /// Claims the one due run, as soon as there is one.
    pub(crate) async fn claim_one(&self) -> ClaimedRun {
        eventually(async || {
            let mut claimed = self.claim().await;
            assert!(claimed.len() < 2, "{claimed:?}");
            claimed.pop()
        })
        .await
    }

    /// Stores steps of a claimed run.
    pub(crate) async fn store_steps(&self, claim: Claim, steps: Vec<StepRow>) {
        if steps.is_empty() {
            return;
        }
        let mut tx = self.api.begin().await;
        let steps: Vec<(Claim, StepRow)> = steps.into_iter().map(|step| (claim, step)).collect();
        assert_eq!(store_steps(&mut tx, &steps).await.unwrap(), [claim.run_id]);
        store::commit(tx).await.unwrap();
    }

    /// Stores the answer of a claimed run, without a signal.
    pub(crate) async fn answer(&self, claim: Claim, response: Value) {
        let mut tx = self.api.begin().await;
        let stored = store_response(&mut tx, self.account_id, claim.run_id, &response).await.unwrap();
        assert_eq!(stored, ResponseOutcome::Stored);
        store::commit(tx).await.unwrap();
    }

    /// Ends the walk of a claimed run, and signals it.
    pub(crate) async fn end(&self, claim: Claim, result: RunResult) {
        let (mut tx, at) = (self.api.begin().await, Clock::system().now());
        let ended = complete_runs(&mut tx, &[RunEnd { claim, result, at }]).await.unwrap();
        assert_eq!(ended, [claim.run_id]);
        record_ended_runs(&mut tx, &ended).await.unwrap();
        store::commit(tx).await.unwrap();
        self.api.bus().publish(&Signal::RunsAnswered { run_ids: ended }).await.unwrap();
    }

    pub(crate) async fn succeed(&self, claim: Claim) {
        self.end(claim, RunResult::Success { message: None }).await;
    }

    /// Returns a text that one statement finds.
    pub(crate) async fn column(&self, statement: &str) -> String {
        let mut tx = self.api.begin().await;
        let text = sqlx::query_scalar::<_, Option<String>>(AssertSqlSafe(statement))
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        text.unwrap_or_default()
    }
}

pub(crate) fn stop() -> Value {
    json!({"id": "end", "type": "stop", "status": "success"})
}

pub(crate) fn with(mut object: Value, member: &str, value: Value) -> Value {
    object[member] = value;
    object
}

/// An automation with an http trigger that only ends.
pub(crate) fn http() -> Value {
    json!({"name": "A", "slug": "a", "trigger": {"type": "http"}, "steps": [stop()]})
}

/// An automation that answers requests.
pub(crate) fn responder() -> Value {
    with(http(), "steps", json!([{"id": "answer", "type": "respond", "body": {"ok": true}}]))
}

/// A step as a worker stores it.
pub(crate) fn step(path: &str, kind: &'static str, output: Value) -> StepRow {
    let now = Clock::system().now();
    StepRow {
        path: path.to_owned(),
        position: 0,
        step_id: path.split('.').next_back().unwrap().to_owned(),
        kind,
        status: "success",
        input: json!({"of": path}),
        output,
        sealed_output: None,
        is_partial: false,
        error: None,
        attempts: 1,
        started_at: now,
        finished_at: now + TimeDelta::milliseconds(7),
    }
}
