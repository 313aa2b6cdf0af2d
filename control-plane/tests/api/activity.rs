//! The log of changes: one row for each, in its transaction.

use std::path::{Path, PathBuf};

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

struct Owner {
    api: Api,
    key: String,
}

impl Owner {
    async fn new() -> Self {
        let api = Api::start(&[]).await;
        let (key, _) = api.trial_on(Plan::Scale).await;
        Self { api, key }
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, response) = self.api.send(method, path, Some(&self.key), &body).await;
        assert!(status.is_success(), "{path}: {status} {response}");
        response
    }

    async fn activity(&self, query: &str) -> Vec<Value> {
        let read = self.call(Method::GET, &format!("/api/activity?{query}"), Value::Null).await;
        read["activity"].as_array().unwrap().clone()
    }

    async fn form(&self, name: &str) -> String {
        let form = json!({"name": name, "fields": [{"name": "a", "label": "A", "type": "text"}]});
        self.call(Method::POST, "/api/forms", form).await["formId"].as_str().unwrap().to_owned()
    }
}

fn text<'a>(row: &'a Value, pointer: &str) -> &'a str {
    row.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {row}"))
}

#[tokio::test]
async fn each_change_has_a_row_with_its_author_its_operation_and_the_names_of_that_time() {
    let owner = Owner::new().await;
    let folder = owner.call(Method::POST, "/api/folders", json!({"name": "Shop"})).await;
    let form = owner.form("Contact").await;
    let path = format!("/api/forms/{form}");
    owner.call(Method::PUT, &path, json!({"name": "Write to us"})).await;
    owner.call(Method::DELETE, &path, Value::Null).await;
    let page = json!({"slug": "home", "title": "T", "html": "x", "folderId": folder["id"]});
    let page = owner.call(Method::POST, "/api/pages", page).await;
    owner.call(Method::GET, "/api/forms", Value::Null).await;

    let rows = owner.activity("").await;
    let shown: Vec<_> = rows
        .iter()
        .map(|row| (text(row, "/operation"), text(row, "/resource/type"), text(row, "/resource/name")))
        .collect();
    let expected = [
        ("pages.create", "pages", "home"),
        ("forms.delete", "forms", "Write to us"),
        ("forms.update", "forms", "Contact"),
        ("forms.create", "forms", "Contact"),
        ("folders.create", "folders", "Shop"),
    ];
    assert_eq!(shown, expected, "newest first, and a read is no change");
    assert_eq!(rows[0]["resource"]["id"], page["id"]);
    assert_eq!(rows[3]["resource"]["id"], json!(form));
    assert_eq!(text(&rows[0], "/actor/type"), "key");
    assert!(!text(&rows[0], "/actor/name").is_empty() && rows[0]["actor"]["id"].is_string(), "{}", rows[0]);
    assert_eq!(rows[0]["requestId"], page["_meta"]["requestId"]);
}

#[tokio::test]
async fn a_refused_change_leaves_no_row() {
    let owner = Owner::new().await;
    let form = owner.form("Contact").await;
    let before = owner.activity("").await.len();
    let wrong = [
        (Method::POST, "/api/forms".to_owned(), json!({"name": ""})),
        (Method::PUT, format!("/api/forms/{form}"), json!({"fields": []})),
        (Method::DELETE, "/api/forms/00000000-0000-0000-0000-000000000000".to_owned(), Value::Null),
        (Method::POST, "/api/account/subdomains".to_owned(), json!({"name": "_"})),
    ];
    for (method, path, body) in wrong {
        let (status, response) = owner.api.send(method, &path, Some(&owner.key), &body).await;
        assert!(status.is_client_error(), "{path}: {response}");
    }
    assert_eq!(owner.activity("").await.len(), before);
}

#[tokio::test]
async fn rows_are_filtered_and_paginated_and_belong_to_their_account() {
    let owner = Owner::new().await;
    let form = owner.form("One").await;
    owner.form("Two").await;
    owner.call(Method::PUT, &format!("/api/forms/{form}"), json!({"name": "Three"})).await;
    let names =
        |rows: Vec<Value>| rows.iter().map(|row| text(row, "/resource/name").to_owned()).collect::<Vec<_>>();
    assert_eq!(names(owner.activity("operation=forms.create").await), ["Two", "One"]);
    assert_eq!(names(owner.activity(&format!("resourceId={form}")).await), ["One", "One"]);
    assert_eq!(owner.activity("actorType=person").await, Vec::<Value>::new());
    assert_eq!(owner.activity("actorType=key").await.len(), 3);
    assert_eq!(owner.activity("to=2020-01-01").await, Vec::<Value>::new());
    assert_eq!(owner.activity("from=2020-01-01").await.len(), 3);
    let page = owner.call(Method::GET, "/api/activity?limit=2", Value::Null).await;
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(names(owner.activity(&format!("limit=2&cursor={cursor}")).await), ["One"]);

    let stranger = owner.api.trial().await;
    let (status, read) = owner.api.send(Method::GET, "/api/activity", Some(&stranger), &Value::Null).await;
    assert_eq!((status, &read["activity"]), (StatusCode::OK, &json!([])));
}

#[tokio::test]
async fn a_restricted_key_cannot_read_the_names_of_what_it_may_not_see() {
    let owner = Owner::new().await;
    let form = owner.form("Contact").await;
    let folder = owner.call(Method::POST, "/api/folders", json!({"name": "Shop"})).await;
    for restriction in [json!({"resourceIds": {"forms": [form]}}), json!({"folderId": folder["id"]})] {
        let mut body = restriction;
        body["label"] = json!("k");
        let key = owner.call(Method::POST, "/api/keys", body).await;
        for path in ["/api/activity", "/api/activity/export"] {
            let (status, problem) =
                owner.api.send(Method::GET, path, key["key"].as_str(), &Value::Null).await;
            assert_eq!(
                (status, &problem["code"]),
                (StatusCode::FORBIDDEN, &json!("insufficient_scope")),
                "{path}: {problem}"
            );
        }
    }
}

#[tokio::test]
async fn the_export_has_every_row_and_no_formula() {
    let owner = Owner::new().await;
    owner.form("=cmd()").await;
    owner.form("a \"b\", c").await;
    let request = http::Request::get("/api/activity/export")
        .header("authorization", format!("Bearer {}", owner.key))
        .body(axum::body::Body::empty());
    let response = owner.api.raw_response(request.unwrap()).await;
    assert_eq!(response.headers()["content-type"], "text/csv; charset=utf-8; header=present");
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    let csv = String::from_utf8(body.to_vec()).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(lines[0].starts_with("at,actorType,actorId,actorName,operation,resourceType"), "{csv}");
    assert!(lines[1].contains(r#""a ""b"", c""#), "{csv}");
    assert!(lines[2].contains(r#""'=cmd()""#), "{csv}");
}

#[tokio::test]
async fn the_author_of_a_change_in_a_session_is_its_person() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Pro).await;
    let cookie = api.sign_in(account_id).await;
    let headers = [("cookie", cookie), ("origin", "http://localhost:8080".to_owned())];
    let body = json!({"name": "Shop"});
    let (status, response) = api.send_with(Method::POST, "/api/folders", &headers, &body).await;
    assert_eq!(status, StatusCode::CREATED, "{response}");
    let owner = Owner { api, key };
    let row = &owner.activity("").await[0];
    assert_eq!((text(row, "/actor/type"), text(row, "/actor/name")), ("person", "ana@example.com"));
}

#[tokio::test]
async fn rows_are_kept_as_long_as_the_plan_says() {
    let owner = Owner::new().await;
    owner.form("One").await;
    let account = owner.api.account_of(&owner.key).await;
    owner.api.set_plan(account, Plan::Free).await;
    owner.form("Two").await;
    let check = "do $$ begin
        assert (select array_agg(expires_at - at order by at) from activity)
            = array[make_interval(days => 365), make_interval(days => 90)];
        end $$";
    owner.api.execute(check).await.unwrap();
}

/// A handler that commits without its call would change something without a row.
#[test]
fn handlers_commit_through_their_call() {
    // A check of records is no change by the caller, a trial has none yet, and a deletion in two steps is one change.
    let others = ["domains/checks.rs", "trial.rs", "automations/mod.rs", "automations/public/resume.rs"];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api");
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read_to_string(&path).unwrap().contains("app.commit") {
                found.push(path.strip_prefix(&source).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    let mut others = others.map(str::to_owned);
    others.sort();
    assert_eq!(found, others);
}
