//! Answers of `respond` steps to requests of http triggers.

use contract::Signal;
use domain::plans::Plan;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use http::Method;
use sandbox::test::until;
use serde_json::{Value, json};
use store::automations::RunResult;

use super::fixture::{Owner, PublicResponse, http, responder, with};

/// Sends a request, and lets a worker answer its run with this response.
async fn answered(owner: &Owner, url: &str, response: Value, has_signal: bool) -> PublicResponse {
    let worker = async {
        let run = owner.claim_one().await;
        owner.answer(run.claim, response).await;
        if has_signal {
            let signal = Signal::RunsAnswered { run_ids: vec![run.claim.run_id] };
            owner.api.bus().publish(&signal).await.unwrap();
        }
        run
    };
    let body = json!({});
    let (response, run) = tokio::join!(owner.trigger(url, &body), worker);
    owner.succeed(run.claim).await;
    response
}

#[tokio::test]
async fn a_request_gets_the_answer_of_its_run_with_or_without_a_signal() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(responder()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    for has_signal in [true, false] {
        let response = json!({"status": 201, "headers": {"X-Own": "1"}, "body": {"a": [1]}});
        let response = answered(&owner, url, response, has_signal).await;
        assert_eq!((response.status.as_u16(), response.json()), (201, json!({"a": [1]})));
        assert_eq!((response.header("content-type"), response.header("x-own")), ("application/json", "1"));
    }
}

#[tokio::test]
async fn an_answer_can_not_harm_the_apis_origin() {
    let owner = Owner::new(&[]).await;
    let (_, created) = owner.automation(responder()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let hostile = json!({
        "status": 200,
        "headers": {
            "Content-Type": "text/html", "Set-Cookie": "session=stolen; Path=/", "Content-Security-Policy": "default-src *",
            "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true", "X-Content-Type-Options": "x",
            "Location": "https://evil.test", "Clear-Site-Data": "*", "Strict-Transport-Security": "max-age=0",
            "Cache-Control": "public, max-age=60", "X-Request-Id": "forged-id", "Link": "</x>; rel=preload",
        },
        "body": "<script>fetch('/api/account')</script>",
    });
    let response = answered(&owner, url, hostile, true).await;
    assert_eq!((response.status.as_u16(), response.header("content-type")), (200, "text/html"));
    assert_eq!(response.header("content-security-policy"), "sandbox");
    assert_eq!(response.header("x-content-type-options"), "nosniff");
    assert_eq!(
        response.header("cache-control"),
        "public, max-age=60",
        "it may be cached if the owner says so"
    );
    for never in [
        "set-cookie",
        "access-control-allow-origin",
        "location",
        "clear-site-data",
        "link",
        "strict-transport-security",
    ] {
        assert_eq!(response.header(never), "", "{never}");
    }
    assert_ne!(response.header("x-request-id"), "forged-id");
    let redirect = json!({"status": 303, "headers": {"Location": "https://shop.example/thanks"}});
    let response = answered(&owner, url, redirect, true).await;
    assert_eq!((response.status.as_u16(), response.header("location")), (303, "https://shop.example/thanks"));
    assert_eq!((response.header("cache-control"), response.text.as_str()), ("no-store", ""));
}

#[tokio::test]
async fn a_run_that_ends_without_an_answer_says_only_how() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(responder()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let ended = async |result: Option<RunResult>| {
        let worker = async {
            let run = owner.claim_one().await;
            match result {
                Some(result) => owner.end(run.claim, result).await,
                None => drop(
                    owner
                        .ok(Method::POST, &format!("{path}/runs/{}/cancel", run.claim.run_id), Value::Null)
                        .await,
                ),
            }
        };
        let body = json!({});
        tokio::join!(owner.trigger(url, &body), worker).0
    };
    let success = ended(Some(RunResult::Success { message: Some("internal".to_owned()) })).await;
    assert_eq!((success.status.as_u16(), &success.json()["status"]), (202, &json!("success")));
    for result in [Some(RunResult::Error { path: "fetch".to_owned(), message: "internal".to_owned() }), None]
    {
        let failed = ended(result).await;
        assert_eq!((failed.status.as_u16(), &failed.json()["code"]), (500, &json!("internal")));
        assert!(failed.run_id().get_version_num() == 7 && !failed.text.contains("fetch"), "{failed:?}");
    }
}

#[tokio::test]
async fn a_request_waits_only_for_its_time_and_the_run_goes_on() {
    let owner = Owner::new(&["automations.respond_timeout=300ms"]).await;
    let (path, created) = owner.automation(responder()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let response = owner.trigger(url, &json!({})).await;
    assert_eq!((response.status.as_u16(), &response.json()["status"]), (202, &json!("queued")));
    let run = owner.claim_one().await;
    assert_eq!(run.claim.run_id, response.run_id());
    owner.answer(run.claim, json!({"status": 200})).await;
    owner.succeed(run.claim).await;
    assert_eq!(owner.get(&format!("{path}/logs?status=success")).await["logs"].as_array().unwrap().len(), 1);
    // Without a `respond` step nothing waits.
    let (_, created) = owner.automation(with(http(), "slug", json!("b"))).await;
    let response = owner.trigger(created["triggerUrl"].as_str().unwrap(), &json!({})).await;
    assert_eq!((response.status.as_u16(), &response.json()["status"]), (202, &json!("queued")));
}

#[tokio::test]
async fn requests_to_one_account_can_not_take_all_waits() {
    let owner = Owner::new(&["automations.respond_timeout=300s"]).await;
    let (_, created) = owner.automation(responder()).await;
    let (other_key, _) = owner.api.trial_on(Plan::Scale).await;
    let other = owner.api.send(Method::POST, "/api/automations", Some(&other_key), &responder()).await.1;
    let url = created["triggerUrl"].as_str().unwrap();
    let body = json!({});
    let mut flood: FuturesUnordered<_> = (0..300).map(|_| owner.trigger(url, &body)).collect();
    for _ in 256..300 {
        let response = flood.next().await.unwrap();
        assert_eq!((response.status.as_u16(), &response.json()["status"]), (202, &json!("queued")));
        assert_eq!(response.run_id().get_version_num(), 7);
    }
    assert_eq!(flood.len(), 256, "they wait");
    let stored = "select count(*)::text from automation_runs";
    let waiting = owner.trigger(other["triggerUrl"].as_str().unwrap(), &body);
    let mut waiting = std::pin::pin!(waiting);
    loop {
        assert!(futures::poll!(&mut waiting).is_pending(), "the other account waits as before");
        if owner.column(stored).await == "301" {
            break;
        }
    }
    assert!(futures::poll!(&mut waiting).is_pending());
    assert!(flood.next().now_or_never().is_none());
    drop(flood);
    let worker = async {
        for run in owner.claim().await {
            owner.answer(run.claim, json!({"status": 204})).await;
        }
    };
    let (response, ()) = tokio::join!(owner.trigger(url, &body), async {
        until(async || owner.column(stored).await == "302").await;
        worker.await;
    });
    assert_eq!(response.status.as_u16(), 204, "clients that are gone leave their waits to others");
}
