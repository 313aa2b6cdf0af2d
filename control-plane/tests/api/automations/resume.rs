//! The link that resumes a run.

use chrono::TimeDelta;
use domain::automations::resume_path;
use http::Method;
use serde_json::json;
use service::Clock;
use store::automations::RunResult;
use uuid::Uuid;

use super::fixture::{Owner, PublicResponse, http};
use crate::no_side_effects::Snapshot;

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml");

/// Starts a run, and lets it wait for its link number `number`. Returns its id and the link.
async fn waiting(owner: &Owner, url: &str, number: u32, until: TimeDelta) -> (Uuid, String) {
    let response = owner.trigger(url, &json!({})).await;
    let run = owner.claim_one().await;
    let until = Clock::system().now() + until;
    owner.end(run.claim, RunResult::Waiting { until, resume: Some(number) }).await;
    (response.run_id(), resume_path(owner.api.master_key(), response.run_id(), number))
}

async fn get(owner: &Owner, link: &str, accept: (&str, &str)) -> PublicResponse {
    owner.public(Method::GET, link, &[accept], "").await
}

#[tokio::test]
async fn a_get_shows_a_button_and_a_post_resumes_once() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let (run_id, link) = waiting(&owner, url, 0, TimeDelta::days(1)).await;
    let before = Snapshot::take(&owner.api).await;
    let page = get(&owner, &link, BROWSER).await;
    assert_eq!(page.status, 200);
    assert!(
        page.text.contains(r#"<form method="post"><button type="submit">"#) && !page.text.contains("<script")
    );
    let policy = page.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("form-action 'self'"), "{policy}");
    assert_eq!((page.header("referrer-policy"), page.header("cache-control")), ("no-referrer", "no-store"));
    let shown = get(&owner, &link, ("accept", "*/*")).await;
    assert_eq!((&shown.json()["runId"], &shown.json()["status"]), (&json!(run_id), &json!("waiting")));
    assert_eq!(owner.public(Method::HEAD, &link, &[], "").await.status, 200);
    assert_eq!(before.check().await, Ok(()), "mail scanners fetch links too");

    let form = [("content-type", "application/x-www-form-urlencoded"), BROWSER];
    let confirmed = owner.public(Method::POST, &link, &form, "note=yes+please&a=1").await;
    assert!(confirmed.status == 200 && confirmed.text.contains("Confirmed"), "{confirmed:?}");
    let again = owner.public(Method::POST, &link, &form, "note=no").await;
    assert!(again.status == 409 && again.text.contains("used already"), "{again:?}");
    let run = owner.claim_one().await;
    let used = json!({"number": 0, "payload": {"note": "yes please", "a": "1"}});
    assert_eq!(run.resumed, Some(used));
    assert_eq!(get(&owner, &link, BROWSER).await.status, 409);
    owner.succeed(run.claim).await;
    assert_eq!(get(&owner, &link, BROWSER).await.status, 410);
    let over = owner.public(Method::POST, &link, &[], "").await;
    assert_eq!((over.status.as_u16(), &over.json()["code"]), (410, &json!("conflict")));
}

#[tokio::test]
async fn a_program_resumes_with_json_or_nothing() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    for (kind, body, payload) in [
        ("application/json", r#"{"approved": true}"#, json!({"approved": true})),
        ("text/plain", "", json!({})),
    ] {
        let (run_id, link) = waiting(&owner, url, 3, TimeDelta::days(1)).await;
        let resumed = owner.public(Method::POST, &link, &[("content-type", kind)], body).await;
        assert_eq!(
            (resumed.status.as_u16(), resumed.json()),
            (200, json!({"runId": run_id, "resumed": true}))
        );
        let run = owner.claim_one().await;
        assert_eq!(run.resumed, Some(json!({"number": 3, "payload": payload})));
        owner.succeed(run.claim).await;
    }
    let (_, link) = waiting(&owner, url, 0, TimeDelta::days(1)).await;
    let post = async |kind: &'static str, body: String| {
        owner.public(Method::POST, &link, &[("content-type", kind)], body).await.status.as_u16()
    };
    assert_eq!(post("application/json", "{".to_owned()).await, 400);
    assert_eq!(post("application/json", r#""\u0000""#.to_owned()).await, 400);
    assert_eq!(post("application/json", format!("{}{}", "[".repeat(65), "]".repeat(65))).await, 400);
    assert_eq!(post("text/plain", "x".to_owned()).await, 415);
    assert_eq!(post("application/json", format!("\"{}\"", "x".repeat(256 << 10))).await, 413);
    assert_eq!(owner.claim().await.len(), 0);
}

#[tokio::test]
async fn a_link_is_of_one_run_one_wait_and_one_time() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let (run_id, link) = waiting(&owner, url, 1, TimeDelta::days(1)).await;
    let (other, other_link) = waiting(&owner, url, 1, TimeDelta::milliseconds(1)).await;
    let (prefix, token) = link.rsplit_once('/').unwrap();
    let key = owner.api.master_key();
    for wrong in [
        format!("{prefix}/{}", "0".repeat(32)),
        format!("{prefix}/{}", token.to_uppercase()),
        format!("{prefix}/"),
        format!("/api/automations/resume/{other}/1/{token}"),
        format!("/api/automations/resume/{run_id}/0/{token}"),
        format!("/api/automations/resume/{run_id}/x/{token}"),
        format!("/api/automations/resume/x/1/{token}"),
        resume_path(key, owner.account_id, 1),
    ] {
        for method in [Method::GET, Method::POST] {
            let response = owner.public(method, &wrong, &[], "").await;
            assert_eq!(response.status, 404, "{wrong}");
        }
    }
    for number in [0, 2] {
        let response = owner.public(Method::POST, &resume_path(key, run_id, number), &[], "").await;
        assert_eq!(response.status, 409, "wait number {number} is over or still to come");
    }
    sandbox::test::until(async || owner.public(Method::POST, &other_link, &[], "").await.status == 410).await;
    owner.api.execute("update accounts set suspended_at = now()").await.unwrap();
    assert_eq!(owner.public(Method::POST, &link, &[], "").await.status, 404);
    owner.api.execute("update accounts set suspended_at = null").await.unwrap();
    owner.ok(Method::DELETE, &path, serde_json::Value::Null).await;
    assert_eq!(get(&owner, &link, BROWSER).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_parallel_uses_of_a_link_one_resumes_the_run() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(http()).await;
    let (_, link) = waiting(&owner, created["triggerUrl"].as_str().unwrap(), 0, TimeDelta::days(1)).await;
    let headers = [("content-type", "application/json")];
    let uses = (0..20).map(|number| owner.public(Method::POST, &link, &headers, json!(number).to_string()));
    let responses = futures::future::join_all(uses).await;
    let resumed: Vec<usize> = (0..20).filter(|at| responses[*at].status == 200).collect();
    assert_eq!(resumed.len(), 1, "{responses:?}");
    assert_eq!(responses.iter().filter(|response| response.status == 409).count(), 19, "{responses:?}");
    let run = owner.claim_one().await;
    assert_eq!(run.resumed, Some(json!({"number": 0, "payload": resumed[0]})));
    owner.succeed(run.claim).await;
    assert_eq!(owner.claim().await.len(), 0);
}
