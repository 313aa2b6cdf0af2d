//! Difficult texts are returned unchanged, and ids of other accounts behave like unknown ids.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Target, assert_rejected};
use crate::no_side_effects::Snapshot;

const TEXTS: [&str; 8] = [
    "\u{1f980}\u{1f469}\u{200d}\u{1f680} crab and astronaut",
    "\u{202e}right to left\u{202c} מימין לשמאל من اليمين",
    "e\u{301} is not \u{e9}, ﬁ is not fi",
    "'; drop table accounts; --",
    "<script>alert(1)</script>{{7*7}}${7*7}",
    "line\nbreak\ttab\r\u{7f}\u{1}\u{feff}",
    "%00 %ff \\u0000 \\x00",
    "\u{fffd}\u{ffff}\u{10ffff}",
];

#[tokio::test]
async fn every_allowed_text_is_returned_unchanged() {
    let target = Target::start().await;
    for (at, text) in TEXTS.into_iter().enumerate() {
        let (status, folder) = target.post("/api/folders", &json!({"name": text, "description": text})).await;
        assert_eq!(status, StatusCode::CREATED, "{folder}");
        assert_eq!((&folder["name"], &folder["description"]), (&json!(text), &json!(text)));

        let (_, account) =
            target.send("PUT", "/api/account", Some(json!({"name": text}).to_string().into_bytes())).await;
        assert_eq!(account["name"], json!(text));

        let metadata = json!({text: {"deep": [text, 1e300, -0.5, i64::MIN, u64::MAX, null, true]}});
        let page = json!({"slug": format!("page-{at}"), "title": text, "html": text, "css": text, "metadata": metadata});
        let (_, created) = target.post("/api/pages", &page).await;
        let path = format!("/api/pages/{}", created["id"].as_str().unwrap());
        let (_, read) = target.send("GET", &path, None).await;
        for member in ["title", "html", "css"] {
            assert_eq!(read[member], json!(text), "{member}");
        }
        let stored = &read["metadata"][text]["deep"];
        assert_eq!((&stored[0], &stored[3], &stored[5]), (&json!(text), &json!(i64::MIN), &Value::Null));

        let field =
            json!({"name": "a", "label": text, "type": "select", "options": [text], "placeholder": text});
        let form = json!({"name": text, "fields": [field], "successMessage": text, "submitLabel": text});
        let (_, created) = target.post("/api/forms", &form).await;
        let path = format!("/api/forms/{}", created["formId"].as_str().unwrap());
        let (_, read) = target.send("GET", &path, None).await;
        for member in ["name", "fields", "successMessage", "submitLabel"] {
            assert_eq!(read[member], form[member], "{member}");
        }

        let hook = json!({"url": "https://a.example", "description": text, "fieldMapping": {text: text}});
        let (_, created) = target.post("/api/webhooks", &hook).await;
        assert_eq!(
            (&created["description"], &created["fieldMapping"]),
            (&hook["description"], &hook["fieldMapping"])
        );
    }
}

#[tokio::test]
async fn query_parameters_accept_any_text() {
    let target = Target::start().await;
    for text in TEXTS {
        let page = json!({"slug": "index", "title": "T", "html": "x", "metadata": {"collection": text}});
        let (_, created) = target.post("/api/pages", &page).await;
        let query: String = url_encoded(text);
        let (status, listed) = target.send("GET", &format!("/api/pages?collection={query}"), None).await;
        assert_eq!((status, &listed["pages"][0]["id"]), (StatusCode::OK, &created["id"]), "{text:?}");
        target.send("DELETE", &format!("/api/pages/{}", created["id"].as_str().unwrap()), None).await;
    }
}

fn url_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[tokio::test]
async fn extreme_numbers_and_nesting_are_rejected_in_metadata() {
    let target = Target::start().await;
    let before = Snapshot::take(&target.api).await;
    let page = |metadata: &str| {
        format!(r#"{{"slug": "index", "title": "T", "html": "x", "metadata": {metadata}}}"#).into_bytes()
    };
    let deep = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    for metadata in [
        "[]",
        "7",
        r#"{"n": 1e400}"#,
        r#"{"n": -1e999999999}"#,
        r#"{"a": "\ud800"}"#,
        r#"{"a": "\u0000"}"#,
        r#"{"a\u0000": 1}"#,
        &deep(200),
        &deep(50_000),
    ] {
        let context: String = metadata.chars().take(60).collect();
        let (code, _) =
            assert_rejected(&context, target.send("POST", "/api/pages", Some(page(metadata))).await);
        assert!(["validation_failed", "malformed_json"].contains(&code.as_str()), "{context}: {code}");
    }
    assert_eq!(before.check().await, Ok(()));
    let many: serde_json::Map<String, Value> = (0..1_000).map(|at| (format!("key{at}"), json!(at))).collect();
    let (status, created) =
        target.send("POST", "/api/pages", Some(page(&Value::Object(many).to_string()))).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    // Postgres returns this number with 309 digits.
    let largest =
        br#"{"slug": "largest", "title": "T", "html": "x", "metadata": {"n": -1.7976931348623157e308}}"#;
    let (status, created) = target.send("POST", "/api/pages", Some(largest.to_vec())).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
}

#[tokio::test]
async fn another_accounts_id_behaves_like_an_unknown_id_everywhere() {
    let target = Target::start().await;
    let other = Target { key: target.api.trial().await, api: target.api };
    let create = async |path: &str, body: Value| {
        let (status, response) = other.post(path, &body).await;
        assert_eq!(status, StatusCode::CREATED, "{response}");
        response.get("formId").or(response.get("id")).and_then(Value::as_str).unwrap().to_owned()
    };
    let folder = create("/api/folders", json!({"name": "F"})).await;
    let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
    let form = create("/api/forms", json!({"name": "F", "fields": fields})).await;
    let webhook = create("/api/webhooks", json!({"url": "https://a.example", "formIds": [form]})).await;
    let page = create("/api/pages", json!({"slug": "index", "title": "T", "html": "x"})).await;
    let (_, first) = other.send("GET", "/api/account/subdomain", None).await;
    let subdomain = first["id"].as_str().unwrap().to_owned();

    let caller = Target { key: target.key, api: other.api };
    let unknown_id = "00000000-0000-0000-0000-000000000000";
    let before = Snapshot::take(&caller.api).await;
    for (path, body) in [
        ("/api/pages", json!({"slug": "x1", "title": "T", "html": "x", "folderId": folder})),
        ("/api/pages", json!({"slug": "x1", "title": "T", "html": "x", "subdomainId": subdomain})),
        ("/api/forms", json!({"name": "F", "fields": fields, "folderId": folder})),
        ("/api/forms", json!({"name": "F", "fields": fields, "webhookIds": [webhook]})),
        ("/api/webhooks", json!({"url": "https://a.example", "formIds": [form]})),
        ("/api/analytics/sites", json!({"name": "S", "subdomainId": subdomain})),
        ("/api/analytics/sites", json!({"name": "S", "folderId": folder})),
        ("/api/account/domains", json!({"domain": "www.example.com", "subdomainId": subdomain})),
        ("/api/keys", json!({"label": "K", "folderId": folder})),
        ("/api/keys", json!({"label": "K", "resourceIds": {"pages": [page]}})),
    ] {
        let response = caller.post(path, &body).await;
        let text = [&folder, &subdomain, &webhook, &form, &page]
            .into_iter()
            .fold(body.to_string(), |text, id| text.replace(id.as_str(), unknown_id));
        let unknown = caller.send("POST", path, Some(text.into_bytes())).await;
        assert_eq!(response.0, StatusCode::NOT_FOUND, "{path} {body}: {}", response.1);
        assert_eq!((response.0, &response.1["detail"]), (unknown.0, &unknown.1["detail"]), "{path} {body}");
    }
    assert_eq!(before.check().await, Ok(()));
}
