//! Messages are sentences about the fields of a request, and say what to do.

use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

const NO_ID: &str = "00000000-0000-0000-0000-000000000000";

fn messages(problem: &Value) -> Vec<&str> {
    problem["fieldErrors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["message"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn every_wrong_type_of_a_body_and_of_a_query_is_reported_at_once() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let page = json!({
        "slug": 7, "title": "T", "html": null, "isPublished": "yes", "publishAt": "soon", "folderId": "x", "colour": 1,
    });
    let (status, problem) = api.send(Method::POST, "/api/pages", Some(&key), &page).await;
    assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("validation_failed")));
    assert_eq!(
        messages(&problem),
        [
            "slug must be a text, not a number",
            "html must be a text, not null",
            "isPublished must be true or false, not a text",
            "publishAt must be a time, such as 2030-01-31T09:30:00Z",
            "folderId is not an id (expected a UUID)",
            "colour is not a field of this request",
        ]
    );
    let query = "/api/pages?limit=many&folderId=7&sort=up&colour=red";
    let (_, problem) = api.send(Method::GET, query, Some(&key), &Value::Null).await;
    assert_eq!(
        messages(&problem),
        [
            "limit must be a whole number",
            "folderId is not an id (expected a UUID)",
            "sort must be one of oldest, newest",
            "colour is not a parameter of this request",
        ]
    );
}

#[tokio::test]
async fn no_message_is_that_of_a_parser() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let automation = json!({
        "name": "A", "slug": "a", "trigger": {"type": "http", "cors": "yes"}, "enabled": 1,
        "steps": [{"type": "set", "id": "a", "values": {}, "timeoutMs": "x"}],
    });
    let webhook =
        json!({"url": 5, "events": "x", "formIds": ["x"], "fieldMapping": {"a": 1}, "template": "x"});
    for (path, body) in [
        ("/api/automations", &automation),
        ("/api/webhooks", &webhook),
        ("/api/keys", &json!({"label": [], "expiresAt": "", "resourceIds": {"pages": "x"}})),
        ("/api/analytics/funnel", &json!({"siteId": 1, "steps": [{"event": 1}]})),
        ("/api/pages/batch", &json!({"pages": {}, "upsert": "x"})),
    ] {
        let (status, problem) = api.send(Method::POST, path, Some(&key), body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {problem}");
        let messages = messages(&problem);
        assert!(messages.len() > 1, "{path}: {messages:?}");
        for word in
            ["invalid type", "expected a string", "variant", "parsing", "premature", "struct", "u64", "map"]
        {
            assert!(!problem["fieldErrors"].to_string().contains(word), "{path}: {messages:?}");
        }
    }
}

#[tokio::test]
async fn an_invalid_id_in_a_path_is_named() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for (path, name) in [
        ("/api/pages/x".to_owned(), "id"),
        (format!("/api/automations/{NO_ID}/runs/x"), "runId"),
        (format!("/api/automations/x/runs/{NO_ID}"), "id"),
    ] {
        let (status, problem) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
        let detail = format!("`{{{name}}}` of the path is not an id (expected a UUID)");
        assert_eq!((status, &problem["detail"]), (StatusCode::NOT_FOUND, &json!(detail)), "{path}");
    }
}

#[tokio::test]
async fn a_limit_is_told_in_words_and_units() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let key = api.trial().await;
    let post = async |path: &str, body: Value| api.send(Method::POST, path, Some(&key), &body).await;
    let detail = async |path: &str, body: Value| {
        let (status, problem) = post(path, body).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::FORBIDDEN, &json!("quota_exceeded")),
            "{problem}"
        );
        problem["detail"].as_str().unwrap().to_owned()
    };
    let webhook = json!({"url": "https://a.example"});
    assert_eq!(post("/api/webhooks", webhook.clone()).await.0, StatusCode::CREATED);
    let said = detail("/api/webhooks", webhook).await;
    assert_eq!(said, "the free plan allows 1 webhook, and the account has one");
    let asset = |bytes: i64| json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": bytes});
    let said = detail("/api/pages/assets", asset((2 << 20) + 1)).await;
    assert_eq!(said, "the free plan allows assets of up to 2 MB");
    let said = detail("/api/deploy", json!({"sizeBytes": 32 << 20})).await;
    assert_eq!(
        said,
        "this would need 32 MB of storage; 20 MB are free of the 20 MB that the free plan includes"
    );

    let pages: Vec<Value> =
        (0..12).map(|at| json!({"slug": format!("page-{at}"), "title": "T", "html": "x"})).collect();
    let (_, batch) = post("/api/pages/batch", json!({"pages": pages})).await;
    assert_eq!(
        batch["results"][11]["error"], "this would need 11 projects; the free plan allows 10, and 0 are free",
        "{batch}"
    );

    // Beyond the limits of a smaller plan.
    let account_id = api.account_of(&key).await;
    for plan in [domain::plans::Plan::Scale, domain::plans::Plan::Free] {
        let body = json!({"url": "https://b.example"});
        api.set_plan(account_id, plan).await;
        let (status, problem) = post("/api/webhooks", body).await;
        if status != StatusCode::CREATED {
            let said = "this would need 3 webhooks; the free plan allows 1, and 0 are free";
            assert_eq!((&problem["detail"], &problem["used"]), (&json!(said), &json!(2)), "{problem}");
        }
    }
    let (status, page) = post("/api/pages", json!({"slug": "over", "title": "T", "html": "x"})).await;
    assert_eq!((status, &page["used"]), (StatusCode::FORBIDDEN, &json!(10)), "{page}");
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let rename = async |at: usize| {
        let body = json!({"subdomain": format!("renamed-{at}")});
        api.send(Method::PUT, "/api/account/subdomain", Some(&key), &body).await
    };
    for at in 0..3 {
        assert_eq!(rename(at).await.0, StatusCode::OK);
    }
    let (status, problem) = rename(3).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{problem}");
    assert_eq!(
        problem["detail"],
        "a subdomain may be renamed at most 3 times in 24 hours; try again in 24 hours"
    );
    assert!((86_000..=86_400).contains(&problem["retryAfterSeconds"].as_u64().unwrap()), "{problem}");
}

#[tokio::test]
async fn a_missing_scope_comes_with_the_way_to_get_it() {
    let api = Api::start(&[]).await;
    let (_, account_id) = api.trial_on(Plan::Free).await;
    let scopes = ScopeSet::parse(["forms:read"]).unwrap();
    let (_, key) = api.insert_key(account_id, scopes, Restrictions::default(), None).await;
    let (status, problem) = api.send(Method::GET, "/api/pages", Some(&key), &Value::Null).await;
    assert_eq!((status, &problem["requiredScope"]), (StatusCode::FORBIDDEN, &json!("pages:read")));
    let hint = problem["hint"].as_str().unwrap();
    assert!(hint.contains("POST /api/keys") && hint.contains(r#""scopes": ["pages:read"]"#), "{hint}");
}

#[tokio::test]
async fn the_meta_of_an_upgrade_agrees_with_it() {
    let api = Api::start(&["upgrade.mode=instant"]).await;
    let key = api.trial().await;
    let body = json!({"plan": "pro"});
    let (status, done) = api.send(Method::POST, "/api/account/upgrade", Some(&key), &body).await;
    assert_eq!((status, &done["plan"]), (StatusCode::OK, &json!("pro")));
    assert_eq!(done["_meta"]["plan"], "pro", "{done}");
    assert_eq!(done["_meta"]["usage"]["projects"]["limit"], 100, "{done}");
}

#[tokio::test]
async fn a_malformed_id_of_a_batch_fails_alone() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let post =
        async |method: Method, path: &str, body: Value| api.send(method, path, Some(&key), &body).await;
    let page = json!({"slug": "index", "title": "T", "html": "x"});
    let (_, page) = post(Method::POST, "/api/pages", page).await;
    let (_, folder) = post(Method::POST, "/api/folders", json!({"name": "F"})).await;
    let items = json!({"resources": [
        {"type": "page", "id": "x"}, {"type": "page", "id": page["id"]}, {"type": "car", "id": NO_ID}, 7,
    ]});
    for action in ["organize", "ungroup"] {
        let path = format!("/api/folders/{}/{action}", folder["id"].as_str().unwrap());
        let (status, done) = post(Method::POST, &path, items.clone()).await;
        assert_eq!(
            (status, &done["moved"], &done["failed"]),
            (StatusCode::OK, &json!(1), &json!(3)),
            "{done}"
        );
        let results = done["results"].as_array().unwrap();
        let errors: Vec<&str> = results.iter().map(|one| one["error"].as_str().unwrap_or("moved")).collect();
        assert_eq!(
            errors,
            [
                "id is not an id (expected a UUID)",
                "moved",
                "type must be one of form, page, analytics, automation",
                "the item must be a JSON object",
            ]
        );
        assert_eq!((&results[0]["id"], &results[1]["id"]), (&json!("x"), &page["id"]));
        assert_eq!(
            (&results[3]["type"], &results[3]["id"]),
            (&json!(""), &json!("")),
            "absent, not the text null"
        );
    }
    let ids = json!({"pageIds": ["x", page["id"], null]});
    let (status, done) = post(Method::DELETE, "/api/pages/batch", ids).await;
    assert_eq!((status, &done["deleted"], &done["failed"]), (StatusCode::OK, &json!(1), &json!(2)), "{done}");
    assert_eq!(
        done["results"][0],
        json!({"id": "x", "status": "error", "error": "pageIds[0] is not an id (expected a UUID)"})
    );
}
