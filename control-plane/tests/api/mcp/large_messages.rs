//! Messages over 1 MiB, up to the largest.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::client::{call, called, legacy};
use crate::harness::Api;

/// So many pages of 512 KB.
fn pages(count: usize) -> Value {
    let html = "x".repeat(512 * 1024);
    (0..count).map(|at| json!({"slug": format!("page-{at}"), "title": "T", "html": html})).collect()
}

async fn start(max_in_flight_mib: u32) -> (Api, String) {
    let max = format!("large_bodies.max_in_flight_mib={max_in_flight_mib}");
    let api = Api::start(&[&max, "large_bodies.queue_timeout=500ms"]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    (api, key)
}

#[tokio::test]
async fn a_large_message_does_not_wait_for_itself() {
    for max_in_flight_mib in [1, 3, 320] {
        let (api, key) = start(max_in_flight_mib).await;
        let launched = called(&api, &key, "launch_create", json!({"pages": pages(4)})).await;
        assert_eq!(launched["created"], 4, "{max_in_flight_mib} {launched}");
        let batch = json!({"pages": pages(7), "upsert": true});
        let published = called(&api, &key, "pages_batch", batch.clone()).await;
        assert_eq!(published["created"], 3, "{max_in_flight_mib} {published}");
        let once = json!({"operation": "pages.batch", "params": batch, "idempotencyKey": "once"});
        called(&api, &key, "call_api_write", once).await;
        let (status, response) =
            api.send(Method::POST, "/api/launch", Some(&key), &json!({"pages": pages(4)})).await;
        assert_eq!(status, StatusCode::OK, "the share is free again: {response}");
    }
}

#[tokio::test]
async fn large_messages_of_an_account_come_one_after_the_other() {
    let (api, key) = start(320).await;
    let (one, other) = (json!({"pages": pages(3)}), json!({"pages": pages(4)}));
    let both = futures::future::join(
        call(&api, &key, "launch_create", one),
        api.send(Method::POST, "/api/launch", Some(&key), &other),
    );
    let (launched, (status, response)) = both.await;
    let refusals = [launched["structuredContent"]["status"].clone(), response["status"].clone()];
    assert!(
        launched["isError"] == false || refusals[0] == 503,
        "one waits for the other, at most: {launched}"
    );
    assert!(status.is_success() || refusals[1] == 503, "{response}");
    assert!(launched["isError"] == false || status.is_success(), "{launched} {response}");
}

#[tokio::test]
async fn a_body_over_the_limit_of_its_operation_says_what_to_do() {
    let (api, key) = start(320).await;
    let name = "x".repeat(2 << 20);
    let refused = call(&api, &key, "folders_create", json!({"name": name})).await;
    let problem = &refused["structuredContent"];
    assert_eq!((&refused["isError"], &problem["code"]), (&json!(true), &json!("payload_too_large")));
    let hint = problem["hint"].as_str().unwrap();
    assert!(hint.contains("1 MiB") && hint.contains("POST /api/launch"), "{hint}");
    let listed = legacy(&api, &key, "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let write = tools.iter().find(|tool| tool["name"] == "call_api_write").unwrap();
    assert!(write["description"].as_str().unwrap().contains("1 MiB"), "{write}");
}

#[tokio::test]
async fn an_answer_over_4_mib_names_its_address_by_http() {
    let (api, key) = start(320).await;
    let form = json!({"name": "F", "fields": [{"name": "note", "label": "N", "type": "text"}]});
    let form = called(&api, &key, "forms_create", form).await["formId"].clone();
    let statement = format!(
        "insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
         select gen_random_uuid(), account_id, f.id, jsonb_build_object('note', repeat('x', 1000)), now(), now()
         from forms f, generate_series(1, 5000) where f.id = {}",
        form.to_string().replace('"', "'")
    );
    api.execute(&statement).await.unwrap();
    let refused = call(&api, &key, "submissions_export", json!({"id": form})).await;
    let problem = &refused["structuredContent"];
    assert_eq!((&refused["isError"], &problem["code"]), (&json!(true), &json!("payload_too_large")));
    let address = format!("GET http://localhost:8080/api/forms/{}/export", form.as_str().unwrap());
    assert!(problem["hint"].as_str().unwrap().ends_with(&address), "{problem}");
}
