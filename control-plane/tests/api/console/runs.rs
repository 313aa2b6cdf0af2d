//! The runs of an automation, and the timeline of one.

use chrono::TimeDelta;
use http::StatusCode;
use sandbox::test::eventually;
use serde_json::{Value, json};
use service::Clock;
use store::automations::{RunResult, StepRow};

use super::visitor::Visitor;
use crate::automations::fixture::{Owner, http, step, with};

const HOSTILE: &str = "<script>alert(1)</script>\u{202e}";

/// An account with an automation of three steps.
struct Scene {
    owner: Owner,
    /// The page of the automation.
    page: String,
    url: String,
}

impl Scene {
    async fn new() -> Self {
        let owner = Owner::new(&[]).await;
        let fetch = |id: &str| json!({"id": id, "type": "fetch", "url": "https://a.test"});
        let each = json!({"id": "each", "type": "for_each", "items": "{{ trigger.payload }}", "steps": [fetch("inner")]});
        let steps = json!([fetch("first"), each, fetch("last")]);
        let (path, created) = owner.automation(with(http(), "steps", steps)).await;
        let url = created["triggerUrl"].as_str().unwrap().to_owned();
        Self { page: path.replace("/api/", "/console/"), url, owner }
    }

    /// Starts a run, stores its steps, ends its walk, and returns the page of the run.
    async fn run(&self, steps: Vec<StepRow>, result: Option<RunResult>) -> String {
        let id = self.owner.trigger(&self.url, &json!([HOSTILE])).await.run_id();
        let run = self.owner.claim_one().await;
        self.owner.store_steps(run.claim, steps).await;
        if let Some(result) = result {
            self.owner.end(run.claim, result).await;
        }
        format!("{}/runs/{id}", self.page)
    }

    async fn visitor(&self) -> Visitor<'_> {
        Visitor::of(&self.owner.api, &self.owner.key, self.owner.account_id).await
    }
}

fn at(position: i32, row: StepRow) -> StepRow {
    StepRow { position, ..row }
}

fn failed() -> RunResult {
    RunResult::Error { path: "last".to_owned(), message: format!("refused {HOSTILE}") }
}

#[tokio::test]
async fn a_failed_run_opens_its_failed_step_and_escapes_what_it_got() {
    let scene = Scene::new().await;
    let ada = scene.visitor().await;
    let last = StepRow {
        status: "error",
        error: Some(HOSTILE.to_owned()),
        attempts: 3,
        ..step("last", "fetch", json!({ "body": HOSTILE, "long": "x".repeat(60_000) }))
    };
    let inner = step("each[0].inner", "fetch", json!({}));
    let steps = vec![at(0, step("first", "fetch", json!({ "status": 200 }))), at(1, inner), at(2, last)];
    let run = scene.run(steps, Some(failed())).await;
    let page = ada.get(&run).await;
    assert_eq!(page.status, StatusCode::OK);
    page.contains("Failed")
        .contains("<details id=\"step-3\" open>")
        .contains("3 attempts")
        .contains("The first 8 KB");
    page.contains("&lt;script&gt;").contains("⟨U+202E⟩").contains("Run by a request");
    assert!(!page.html.contains("<script>alert") && !page.html.contains('\u{202e}'), "{}", page.html);
    assert!(!page.html.contains("step-1\" open") && page.html.len() < 40_000, "{}", page.html.len());
    assert_eq!(page.html.matches("name=\"fromStep\"").count(), 1, "not the first, and none in a loop");
    assert!(!page.html.contains("data-live"), "it has ended");

    let list = ada.get(&format!("{}/runs?status=failed", scene.page)).await;
    list.contains(&run).contains("refused &lt;script&gt;");
    ada.get(&format!("{}/runs?status=done", scene.page)).await.contains("No such run.");
    ada.get(&format!("{}/runs?status=nonsense", scene.page)).await.contains(&run);
    ada.get(&scene.page).await.contains("Last failure").contains(&run);
    ada.get("/console/automations").await.contains("Failed</span>");
}

#[tokio::test]
async fn retrying_waiting_and_running_are_different_words() {
    let scene = Scene::new().await;
    let ada = scene.visitor().await;
    let until = Clock::system().now() + TimeDelta::hours(1);
    let waiting = || Some(RunResult::Waiting { until, resume: None });
    let retried =
        StepRow { status: "waiting", error: Some("503".to_owned()), ..step("first", "fetch", json!({})) };
    let retrying = scene.run(vec![retried], waiting()).await;
    let paused = StepRow { status: "waiting", ..step("first", "wait", json!({})) };
    let waiting = scene.run(vec![paused], waiting()).await;
    let running = scene.run(vec![step("first", "fetch", json!({}))], None).await;
    for (status, own, others) in [
        ("retrying", &retrying, [&waiting, &running]),
        ("waiting", &waiting, [&retrying, &running]),
        ("running", &running, [&retrying, &waiting]),
    ] {
        let list = ada.get(&format!("{}/runs?status={status}", scene.page)).await;
        list.contains(own);
        assert!(others.iter().all(|other| !list.html.contains(other.as_str())), "{status}");
    }
    ada.get(&retrying).await.contains("Next attempt").contains("Retrying");
    ada.get(&waiting).await.contains("Waits until");
    ada.get(&running).await.contains("Running").contains("Cancel the run");
}

#[tokio::test]
async fn a_live_timeline_is_polled_with_its_tag() {
    let scene = Scene::new().await;
    let ada = scene.visitor().await;
    let run = scene.run(vec![step("first", "fetch", json!({}))], None).await;
    ada.get(&run).await.contains("data-live data-part=\"#run\"");
    let part = ada.get_with(&run, &[("x-part", "#run")]).await;
    part.contains("id=\"run\"").contains("first");
    assert!(!part.html.contains("<html") && !part.html.contains("idempotency_key"), "{}", part.html);
    // A step that has lasted a second longer is another text.
    let (known, tag) = eventually(async || {
        let tag = ada.get_with(&run, &[("x-part", "#run")]).await.header("etag").to_owned();
        let known = ada.get_with(&run, &[("x-part", "#run"), ("if-none-match", &tag)]).await;
        (known.status == StatusCode::NOT_MODIFIED).then_some((known, tag))
    })
    .await;
    assert_eq!((known.html.as_str(), known.header("etag")), ("", tag.as_str()));

    let account = scene.owner.account_id.to_string();
    let cancelled = ada.post(&format!("{run}/cancel"), &[("account", &account)]).await;
    assert_eq!((cancelled.status, cancelled.header("location")), (StatusCode::SEE_OTHER, run.as_str()));
    let ended = ada.get_with(&run, &[("x-part", "#run"), ("if-none-match", &tag)]).await;
    assert_eq!(ended.status, StatusCode::OK);
    ended.contains("Cancelled");
    let again = ada.post(&format!("{run}/cancel"), &[("account", &account)]).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    again.contains("role=\"alert\"");
}

#[tokio::test]
async fn a_run_is_repeated_from_its_beginning_and_from_a_step() {
    let scene = Scene::new().await;
    let ada = scene.visitor().await;
    let run = scene.run(vec![step("first", "fetch", json!({ "status": 200 }))], Some(failed())).await;
    let account = scene.owner.account_id.to_string();
    let repeat = async |from: &str| {
        ada.post(&format!("{run}/again"), &[("account", &account), ("fromStep", from)]).await
    };
    for from in ["", "each"] {
        let started = repeat(from).await;
        assert_eq!(started.status, StatusCode::SEE_OTHER, "{from}: {}", started.html);
        let new = started.header("location").to_owned();
        assert!(new.starts_with(&format!("{}/runs/", scene.page)) && new != run, "{new}");
        ada.get(&new).await.contains("Queued");
        let claimed = scene.owner.claim_one().await;
        scene.owner.succeed(claimed.claim).await;
    }
    let refused = repeat("inner").await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("outside branches and loops").contains("Failed");
}

#[tokio::test]
async fn many_steps_are_shown_a_hundred_at_a_time() {
    let scene = Scene::new().await;
    let ada = scene.visitor().await;
    let steps = (0..250).map(|n| at(n, step(&format!("each[{n}].inner"), "fetch", Value::Null))).collect();
    let run = scene.run(steps, Some(RunResult::Success { message: Some("all sent".to_owned()) })).await;
    let count = |html: &str| html.matches("<details id=\"step-").count();
    let first = ada.get(&run).await;
    first.contains("Page 1 of 3").contains("?steps=2").contains("all sent");
    assert_eq!(count(&first.html), 100);
    let last = ada.get(&format!("{run}?steps=3")).await;
    assert_eq!(count(&last.html), 50);
    last.contains("id=\"step-201\"").contains("Earlier steps");
    assert_eq!(count(&ada.get(&format!("{run}?steps=99")).await.html), 50);
}

#[tokio::test]
async fn another_accounts_run_is_not_found() {
    let scene = Scene::new().await;
    let run = scene.run(Vec::new(), Some(failed())).await;
    let eve = Visitor::sign_in(&scene.owner.api).await;
    let account = eve.account_id.to_string();
    assert_eq!(eve.get(&run).await.status, StatusCode::NOT_FOUND);
    for act in ["again", "cancel"] {
        let refused = eve.post(&format!("{run}/{act}"), &[("account", &account)]).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND, "{act}");
    }
}
