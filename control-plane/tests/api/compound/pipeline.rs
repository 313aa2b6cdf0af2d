//! A pipeline makes a form with its notifications and entries, or nothing.

use std::sync::Arc;

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{get, hold_inserts, once, page, projects, refused, with};
use crate::harness::Api;
use crate::no_side_effects::Snapshot;

const PATH: &str = "/api/pipeline";
const SLACK: &str = "https://hooks.slack.com/services/T0/B0/secret";
const DISCORD: &str = "https://discord.com/api/webhooks/1/secret";

fn contact() -> Value {
    let fields = json!([
        {"name": "email", "label": "E-mail", "type": "email", "required": true},
        {"name": "topic", "label": "Topic", "type": "select", "options": ["a", "b"]},
    ]);
    json!({"name": "Contact", "fields": fields})
}

fn both() -> Value {
    with(contact(), json!({"notify": {"slack": SLACK, "discord": DISCORD}}))
}

async fn create(api: &Api, key: &str, body: &Value) -> (StatusCode, Value) {
    api.send(Method::POST, PATH, Some(key), body).await
}

#[tokio::test]
async fn a_pipeline_creates_a_form_its_notifications_and_its_entries() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let guests = with(page("guests"), json!({"entryTemplate": "<p>{{email}}"}));
    let (_, guests) = api.send(Method::POST, "/api/pages", Some(&key), &guests).await;
    let settings =
        json!({"uniqueBy": ["email"], "successMessage": "Thanks!", "autoEntryPageId": guests["id"]});
    let (status, created) = create(&api, &key, &with(both(), settings)).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let id = created["formId"].as_str().unwrap();
    assert_eq!(created["hostedFormUrl"], format!("http://localhost:8080/f/{id}"));
    assert_eq!(created["submitUrl"], format!("http://localhost:8080/api/forms/{id}/submit"));
    assert!(created["embedCode"].as_str().unwrap().contains(id));
    assert!(!created.to_string().contains("secret"), "an address of a chat is a secret: {created}");

    let form = get(&api, &key, &format!("/api/forms/{id}")).await;
    assert_eq!(
        (
            &form["name"],
            &form["uniqueBy"],
            &form["successMessage"],
            &form["autoEntryPageId"],
            &form["status"]
        ),
        (&json!("Contact"), &json!(["email"]), &json!("Thanks!"), &guests["id"], &json!("open"))
    );
    assert_eq!(form["fields"].as_array().unwrap().len(), 2);
    let webhooks = created["webhooks"].as_array().unwrap();
    assert_eq!(webhooks.iter().map(|one| &one["template"]).collect::<Vec<_>>(), ["slack", "discord"]);
    for (webhook, url) in webhooks.iter().zip([SLACK, DISCORD]) {
        let read = get(&api, &key, &format!("/api/webhooks/{}", webhook["id"].as_str().unwrap())).await;
        assert_eq!((&read["url"], &read["template"]), (&json!(url), &webhook["template"]));
        assert_eq!(
            (&read["formIds"], &read["allForms"], &read["isActive"], &read["description"]),
            (&json!([id]), &json!(false), &json!(true), &json!("Contact"))
        );
    }
    let usage = get(&api, &key, "/api/account/usage").await["usage"].clone();
    assert_eq!((&usage["projects"]["used"], &usage["webhooks"]["used"]), (&json!(2), &json!(2)));
}

#[tokio::test]
async fn a_pipeline_without_chats_is_a_form() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for notify in
        [json!({}), json!({"notify": null}), json!({"notify": {}}), json!({"notify": {"slack": null}})]
    {
        let (status, created) = create(&api, &key, &with(contact(), notify)).await;
        assert_eq!((status, &created["webhooks"]), (StatusCode::CREATED, &json!([])), "{created}");
        assert_eq!(created["autoEntryPageId"], Value::Null);
    }
}

#[tokio::test]
async fn two_chats_with_one_webhook_left_are_refused_as_a_whole() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let problem = refused(&api, &key, PATH, &both(), (403, "quota_exceeded")).await;
    assert_eq!((&problem["limit"], &problem["used"]), (&json!(1), &json!(0)), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("would need 2 webhooks"), "{problem}");
    let one = with(contact(), json!({"notify": {"discord": DISCORD}}));
    let (status, created) = create(&api, &key, &one).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    for body in [&one, &both()] {
        let problem = refused(&api, &key, PATH, body, (403, "quota_exceeded")).await;
        assert_eq!((&problem["limit"], &problem["used"]), (&json!(1), &json!(1)), "{problem}");
    }
    for number in 0..9 {
        assert_eq!(create(&api, &key, &contact()).await.0, StatusCode::CREATED, "{number}");
    }
    let problem = refused(&api, &key, PATH, &contact(), (403, "quota_exceeded")).await;
    assert_eq!((&problem["limit"], &problem["used"]), (&json!(10), &json!(10)), "{problem}");
}

#[tokio::test]
async fn invalid_parts_are_named_and_create_nothing() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let (other, _) = api.trial_on(Plan::Pro).await;
    let (_, plain) = api.send(Method::POST, "/api/pages", Some(&key), &page("plain")).await;
    let (_, foreign) = api.send(Method::POST, "/api/pages", Some(&other), &page("foreign")).await;
    let notify = |notify: Value| with(contact(), json!({"notify": notify}));
    let invalid = [
        (json!({}), vec!["name", "fields"]),
        (with(contact(), json!({"fields": []})), vec!["fields"]),
        (with(contact(), json!({"uniqueBy": ["unknown"]})), vec!["uniqueBy"]),
        (notify(json!({"slack": DISCORD})), vec!["notify.slack"]),
        (notify(json!({"discord": SLACK})), vec!["notify.discord"]),
        (notify(json!({"slack": "ftp://x"})), vec!["notify.slack"]),
        (
            notify(json!({"slack": "nonsense", "discord": "https://10.0.0.1/"})),
            vec!["notify.slack", "notify.discord"],
        ),
        (notify(json!({"discord": "http://localhost:8080/api/forms"})), vec!["notify.discord"]),
        (notify(json!({"discord": 7})), vec!["notify.discord"]),
        (notify(json!({"teams": DISCORD})), vec!["notify.teams"]),
        (with(notify(json!({"slack": "nonsense"})), json!({"name": ""})), vec!["name", "notify.slack"]),
        (with(both(), json!({"name": "a\u{0}"})), vec!["name"]),
        (with(contact(), json!({"autoEntryPageId": plain["id"]})), vec!["autoEntryPageId"]),
        (with(contact(), json!({"colour": 1})), vec!["colour"]),
    ];
    for (body, fields) in invalid {
        let problem = refused(&api, &key, PATH, &body, (400, "validation_failed")).await;
        let errors = problem["fieldErrors"].as_array().unwrap();
        let named: Vec<&str> = errors.iter().map(|error| error["field"].as_str().unwrap()).collect();
        assert!(
            fields.iter().all(|field| named.iter().any(|one| one.starts_with(field)))
                && named.iter().all(|one| fields.iter().any(|field| one.starts_with(field))),
            "{body}: {problem}"
        );
        for error in errors.iter().filter(|error| error["code"] != "other_chat") {
            assert!(!error["message"].as_str().unwrap().starts_with("url "), "{problem}");
        }
    }
    for page_id in [json!(Uuid::nil()), foreign["id"].clone()] {
        let body = with(both(), json!({"autoEntryPageId": page_id}));
        refused(&api, &key, PATH, &body, (404, "not_found")).await;
    }
}

#[tokio::test]
async fn a_repeated_pipeline_is_replayed() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let (status, _, first) = api.exchange(once(&key, PATH, &both())).await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    let before = Snapshot::take(&api).await;
    let (status, headers, again) = api.exchange(once(&key, PATH, &both())).await;
    assert_eq!((status, &headers["idempotent-replayed"]), (StatusCode::CREATED, &"true".parse().unwrap()));
    assert_eq!((&again["formId"], &again["webhooks"]), (&first["formId"], &first["webhooks"]));
    assert_eq!(before.check().await, Ok(()));
}

#[tokio::test]
async fn an_account_above_its_webhooks_still_gets_a_pipeline_without_chats() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Pro).await;
    assert_eq!(create(&api, &key, &both()).await.0, StatusCode::CREATED);
    api.set_plan(account_id, Plan::Free).await;
    let (status, created) = create(&api, &key, &contact()).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_pipelines_at_once_as_many_succeed_as_the_plan_has_webhooks() {
    let api = Arc::new(Api::start(&["store.max_connections=5"]).await);
    let key = api.trial().await;
    let mut creating = JoinSet::new();
    for number in 0..20 {
        let (api, key) = (Arc::clone(&api), key.clone());
        let body =
            if number % 2 == 0 { both() } else { with(contact(), json!({"notify": {"slack": SLACK}})) };
        creating.spawn(async move { create(&api, &key, &body).await });
    }
    let responses = creating.join_all().await;
    let created = responses.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    assert_eq!(created, 1, "{responses:?}");
    for (status, response) in responses.iter().filter(|(status, _)| *status != StatusCode::CREATED) {
        assert_eq!((*status, &response["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")));
    }
    assert_eq!(projects(&api, &key).await, 1);
    assert_eq!(get(&api, &key, "/api/forms").await["forms"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_that_ends_in_the_middle_leaves_nothing_behind() {
    let api = Arc::new(Api::start(&[]).await);
    let (key, _) = api.trial_on(Plan::Pro).await;
    let before = Snapshot::take(&api).await;
    let holder = hold_inserts(&api, "webhooks").await;
    let (sender, sent) = (Arc::clone(&api), key.clone());
    let creating = tokio::spawn(async move { create(&sender, &sent, &both()).await });
    api.until_lock_wait().await;
    creating.abort();
    assert!(creating.await.unwrap_err().is_cancelled());
    drop(holder);
    sandbox::test::until(async || before.check().await.is_ok()).await;
    assert_eq!(create(&api, &key, &both()).await.0, StatusCode::CREATED);
}
