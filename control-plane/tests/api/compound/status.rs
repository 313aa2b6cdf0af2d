//! The status shows what the account has, as far as the key may see it.

use domain::plans::Plan;
use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{folder_key, get, launch, page, with};
use crate::harness::Api;

const PATH: &str = "/api/status";

fn form(name: &str) -> Value {
    json!({"name": name, "fields": [{"name": "a", "label": "A", "type": "text"}]})
}

fn automation(slug: &str) -> Value {
    let stop = json!({"id": "end", "type": "stop", "status": "success"});
    json!({"name": slug, "slug": slug, "trigger": {"type": "http"}, "steps": [stop]})
}

async fn create(api: &Api, key: &str, path: &str, body: &Value) -> Value {
    let (status, created) = api.send(Method::POST, path, Some(key), body).await;
    assert_eq!(status, StatusCode::CREATED, "{path}: {created}");
    created
}

#[tokio::test]
async fn the_status_of_a_new_account_is_empty() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let status = get(&api, &key, PATH).await;
    let account = get(&api, &key, "/api/account").await;
    assert_eq!(
        (&status["plan"], &status["claimed"], &status["claimDeadline"], &status["siteUrl"]),
        (&json!("free"), &json!(false), &account["claimDeadline"], &account["siteUrl"])
    );
    assert_eq!(status["usage"], get(&api, &key, "/api/account/usage").await["usage"]);
    assert_eq!(status["pages"], json!({"total": 0, "published": 0, "newest": []}));
    assert_eq!(status["forms"], json!({"total": 0, "submissions": 0, "newest": []}));
    assert_eq!(status["analyticsSites"], json!({"total": 0, "newest": []}));
    assert_eq!(
        status["automations"],
        json!({"total": 0, "enabled": 0, "failing": 0, "disabled": 0, "newest": []})
    );
    assert_eq!(status["webhooks"], json!({"total": 0, "active": 0, "failing": 0, "disabled": 0}));
}

#[tokio::test]
async fn the_status_shows_the_newest_of_each_kind_with_figures() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let pages: Vec<Value> = (0..12).map(|at| page(&format!("page-{at}"))).collect();
    let (_, launched) = launch(&api, &key, &json!({"pages": pages, "subdomain": "my-site"})).await;
    create(&api, &key, "/api/pages", &with(page("hidden"), json!({"isPublished": false}))).await;
    let slack = json!({"notify": {"slack": "https://hooks.slack.com/services/T0/B0/x"}});
    let made = create(&api, &key, "/api/pipeline", &with(form("First"), slack)).await;
    create(&api, &key, "/api/forms", &form("Second")).await;
    create(&api, &key, "/api/automations", &automation("runs")).await;
    create(&api, &key, "/api/automations", &with(automation("rests"), json!({"enabled": false}))).await;
    for (id, answer) in [("x", "1"), ("y", "2")] {
        let upsert = format!("/api/forms/{}/submissions/upsert", made["formId"].as_str().unwrap());
        let submission = json!({"externalId": id, "payload": {"a": answer}});
        let (status, stored) = api.send(Method::PUT, &upsert, Some(&key), &submission).await;
        assert_eq!(status, StatusCode::CREATED, "{stored}");
    }

    let status = get(&api, &key, PATH).await;
    assert_eq!((&status["plan"], &status["siteUrl"]), (&json!("scale"), &launched["siteUrl"]));
    assert_eq!((&status["pages"]["total"], &status["pages"]["published"]), (&json!(13), &json!(12)));
    let newest = status["pages"]["newest"].as_array().unwrap();
    assert_eq!((newest.len(), &newest[0]["slug"]), (10, &json!("hidden")), "{newest:?}");
    assert_eq!(newest[1]["subdomainUrl"], "http://my-site.localhost:8080/page-11");
    assert_eq!((&newest[1]["isPublished"], &newest[1]["viewCount"]), (&json!(true), &json!(0)));

    let forms = &status["forms"];
    assert_eq!((&forms["total"], &forms["submissions"]), (&json!(2), &json!(2)));
    let form = &forms["newest"][1];
    assert_eq!((&form["id"], &form["hostedFormUrl"]), (&made["formId"], &made["hostedFormUrl"]));
    assert_eq!((&form["status"], &form["submissionCount"]), (&json!("open"), &json!(2)));

    let sites = &status["analyticsSites"];
    assert_eq!((&sites["total"], &sites["newest"][0]["id"]), (&json!(1), &launched["analyticsSite"]["id"]));
    assert_eq!(sites["newest"][0]["eventCount"], Value::Null, "events can't be counted without their store");
    let automations = &status["automations"];
    let counts = ["total", "enabled", "failing", "disabled"].map(|name| automations[name].as_i64().unwrap());
    assert_eq!(counts, [2, 1, 0, 1]);
    assert_eq!(
        (&automations["newest"][0]["name"], &automations["newest"][0]["enabled"]),
        (&json!("rests"), &json!(false))
    );
    assert_eq!(status["webhooks"], json!({"total": 1, "active": 1, "failing": 0, "disabled": 0}));
    assert_eq!(status["usage"], get(&api, &key, "/api/account/usage").await["usage"]);
}

#[tokio::test]
async fn a_restricted_key_sees_the_status_of_its_folder() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Scale).await;
    let (folder, restricted) = folder_key(&api, &key, account_id).await;
    for (name, folder) in [("inside", folder), ("outside", Value::Null)] {
        let in_folder = json!({"folderId": folder});
        create(&api, &key, "/api/pages", &with(page(name), in_folder.clone())).await;
        let made = create(&api, &key, "/api/forms", &with(form(name), in_folder.clone())).await;
        let hook = json!({"url": "https://example.com/hook", "formIds": [made["formId"]]});
        create(&api, &key, "/api/webhooks", &hook).await;
        create(&api, &key, "/api/analytics/sites", &with(json!({"name": name}), in_folder.clone())).await;
        create(&api, &key, "/api/automations", &with(automation(name), in_folder)).await;
    }
    let status = get(&api, &restricted, PATH).await;
    for kind in ["pages", "forms", "analyticsSites", "automations", "webhooks"] {
        assert_eq!(status[kind]["total"], 1, "{kind}: {status}");
    }
    let text = status.to_string();
    assert!(text.contains("inside") && !text.contains("outside"), "{text}");
    assert_eq!(get(&api, &key, PATH).await["pages"]["total"], 2);
}

#[tokio::test]
async fn a_key_sees_only_the_parts_that_it_may_read() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    launch(&api, &key, &json!({"pages": [page("index")]})).await;
    let narrow = api.key_with(&key, ScopeSet::parse(["account:read", "pages:read"]).unwrap()).await;
    let status = get(&api, &narrow, PATH).await;
    assert_eq!(status["pages"]["newest"][0]["slug"], "index");
    for hidden in ["forms", "analyticsSites", "automations", "webhooks"] {
        assert_eq!(status[hidden], Value::Null, "{hidden}: {status}");
    }
    let none = api.key_with(&key, ScopeSet::parse(["pages:read"]).unwrap()).await;
    let (status, problem) = api.send(Method::GET, PATH, Some(&none), &Value::Null).await;
    assert_eq!((status, &problem["requiredScope"]), (StatusCode::FORBIDDEN, &json!("account:read")));
}
