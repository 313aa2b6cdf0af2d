//! Account settings, exact usage counts, and plan changes.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

#[tokio::test]
async fn settings_update_independently_and_null_removes_the_name() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let put = async |body: Value| api.send(Method::PUT, "/api/account", Some(&key), &body).await.1;
    let shown = |account: &Value| (account["name"].clone(), account["timezone"].clone());
    assert_eq!(shown(&put(json!({})).await), (Value::Null, json!("UTC")));
    assert_eq!(shown(&put(json!({"name": " Shop "})).await), (json!("Shop"), json!("UTC")));
    assert_eq!(
        shown(&put(json!({"timezone": "Asia/Kathmandu"})).await),
        (json!("Shop"), json!("Asia/Kathmandu"))
    );
    assert_eq!(shown(&put(json!({"timezone": null})).await), (json!("Shop"), json!("Asia/Kathmandu")));
    let (_, read) = api.send(Method::GET, "/api/account", Some(&key), &Value::Null).await;
    assert_eq!(shown(&read), (json!("Shop"), json!("Asia/Kathmandu")), "visible immediately");
    assert_eq!(shown(&put(json!({"name": null})).await), (Value::Null, json!("Asia/Kathmandu")));
}

#[tokio::test]
async fn usage_is_exact_after_every_change() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let used = async |what: &str| {
        let (_, usage) = api.send(Method::GET, "/api/account/usage", Some(&key), &Value::Null).await;
        usage["usage"][what]["used"].as_i64().unwrap()
    };
    let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
    for (path, body, what) in [
        ("/api/pages", json!({"slug": "index", "title": "T", "html": "x"}), "projects"),
        ("/api/forms", json!({"name": "F", "fields": fields}), "projects"),
        ("/api/analytics/sites", json!({"name": "S"}), "projects"),
        ("/api/webhooks", json!({"url": "https://a.example"}), "webhooks"),
        ("/api/account/subdomains", json!({"name": "second-one"}), "subdomains"),
        ("/api/account/domains", json!({"domain": "www.example.com"}), "domains"),
    ] {
        let before = used(what).await;
        let (status, created) = api.send(Method::POST, path, Some(&key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        assert_eq!(used(what).await, before + 1, "{path}");
    }
    let (_, usage) = api.send(Method::GET, "/api/account/usage", Some(&key), &Value::Null).await;
    assert_eq!(
        (&usage["plan"], &usage["claimed"], &usage["restrictions"]),
        (&json!("pro"), &json!(false), &json!([]))
    );
    assert_eq!(
        (&usage["usage"]["webhooks"]["limit"], &usage["limits"]["eventsPerMonth"]),
        (&json!(-1), &json!(500_000))
    );
}

#[tokio::test]
async fn the_operator_upgrades_plans_unless_the_mode_is_instant() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let path = "/api/account/upgrade";
    let (_, plans) = api.send(Method::GET, path, Some(&key), &Value::Null).await;
    let prices: Vec<i64> = plans["plans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plan| plan["pricePerMonth"].as_i64().unwrap())
        .collect();
    assert_eq!(
        (prices, &plans["mode"], &plans["currentPlan"]),
        (vec![0, 29, 99], &json!("manual"), &json!("free"))
    );
    let (status, response) = api.send(Method::POST, path, Some(&key), &Value::Null).await;
    assert_eq!((status, &response["status"]), (StatusCode::ACCEPTED, &json!("pending")));
    assert_eq!(
        (&response["plan"], &response["requestedPlan"]),
        (&json!("free"), &json!("pro")),
        "the next larger plan"
    );
    assert!(!response["steps"].as_array().unwrap().is_empty());
    let (_, account) = api.send(Method::GET, "/api/account", Some(&key), &Value::Null).await;
    assert_eq!(account["plan"], "free", "nothing has changed");
}

#[tokio::test]
async fn a_downgrade_keeps_resources_and_only_blocks_creates() {
    let api = Api::start(&["upgrade.mode=instant"]).await;
    let key = api.trial().await;
    let call =
        async |method: Method, path: &str, body: Value| api.send(method, path, Some(&key), &body).await;
    let plan = async |plan: &str| {
        let (status, response) = call(Method::POST, "/api/account/upgrade", json!({"plan": plan})).await;
        assert_eq!((status, &response["plan"]), (StatusCode::OK, &json!(plan)), "{response}");
    };
    let hook = json!({"url": "https://a.example"});
    plan("pro").await;
    for at in 0..12 {
        let page = json!({"slug": format!("page-{at}"), "title": "T", "html": "x"});
        assert_eq!(call(Method::POST, "/api/pages", page).await.0, StatusCode::CREATED);
        assert_eq!(call(Method::POST, "/api/webhooks", hook.clone()).await.0, StatusCode::CREATED);
    }
    plan("free").await;
    let (_, pages) = call(Method::GET, "/api/pages", Value::Null).await;
    assert_eq!(pages["pages"].as_array().unwrap().len(), 12, "nothing is removed");
    assert_eq!(pages["_meta"]["usage"]["projects"], json!({"used": 12, "limit": 10}));
    assert_eq!(pages["_meta"]["restrictions"], json!(["no_export", "no_upsert"]));
    let path = format!("/api/pages/{}", pages["pages"][0]["id"].as_str().unwrap());
    assert_eq!(
        call(Method::PUT, &path, json!({"title": "U"})).await.0,
        StatusCode::OK,
        "an existing page can be updated"
    );
    let page = json!({"slug": "one-more", "title": "T", "html": "x"});
    for (path, body) in [("/api/pages", page.clone()), ("/api/webhooks", hook)] {
        let (status, problem) = call(Method::POST, path, body).await;
        assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")));
    }
    for at in 0..3 {
        let (status, _) = call(Method::POST, "/api/pages", page.clone()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{} are still over the limit", 12 - at);
        let path = format!("/api/pages/{}", pages["pages"][at]["id"].as_str().unwrap());
        assert_eq!(call(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
    }
    assert_eq!(call(Method::POST, "/api/pages", page).await.0, StatusCode::CREATED);
}
