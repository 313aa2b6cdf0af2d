//! A dry run of a deploy, and the messages of deploys.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::owner::{Owner, zip_of};
use crate::harness::Api;

async fn dry_run(owner: &Owner, files: &[(&str, &[u8])]) -> (String, Value) {
    let id = owner.uploaded(&zip_of(files)).await;
    let (status, planned) = owner.process_with(&id, json!({"dryRun": true})).await;
    assert_eq!(status, StatusCode::OK, "{planned}");
    (id, planned)
}

fn statuses(deployed: &Value) -> Vec<(&str, &str)> {
    let pages = deployed["pages"].as_array().unwrap().iter();
    pages.map(|page| (page["slug"].as_str().unwrap(), page["status"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_dry_run_answers_what_publishing_does_and_changes_nothing() {
    let owner = Owner::with_plan(Plan::Pro).await;
    owner
        .deploy(&[
            ("index.html", b"one"),
            ("same.html", b"same"),
            ("old.html", b"<img src=old.png>"),
            ("old.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ])
        .await;
    let by_hand = json!({"slug": "by-hand", "title": "T", "html": "x"});
    assert_eq!(owner.send(Method::POST, "/api/pages", by_hand).await.0, StatusCode::CREATED);
    let (pages, bytes) = (owner.pages().await, owner.stored_bytes().await);

    let files: &[(&str, &[u8])] = &[
        ("index.html", b"two <img src=old.png><img src=gone.png>"),
        ("same.html", b"same"),
        ("new.html", b"new"),
        ("a.js", b"12345"),
    ];
    let (id, planned) = dry_run(&owner, files).await;
    assert_eq!(planned["dryRun"], true);
    assert_eq!(statuses(&planned), [("index", "updated"), ("new", "created"), ("same", "unchanged")]);
    assert_eq!(planned["pages"][1]["id"], Value::Null, "it does not exist");
    assert!(planned["pages"][0]["id"].is_string());
    let stale: Vec<_> = planned["stalePagesNotInZip"].as_array().unwrap().iter().collect();
    assert_eq!(stale.iter().map(|page| &page["slug"]).collect::<Vec<_>>(), ["by-hand", "old"]);
    assert_eq!(planned["missingAssets"], json!(["gone.png"]), "old.png is still served for the stale page");
    assert_eq!(planned["stats"]["pagesCreated"], 1);
    assert_eq!((owner.pages().await, owner.stored_bytes().await), (pages, bytes), "nothing was published");
    assert_eq!(owner.file("a.js").await, None);
    let (_, state) = owner.send(Method::GET, &format!("/api/deploy/{id}"), Value::Null).await;
    assert_eq!((&state["status"], &state["filesTotal"]), (&json!("uploaded"), &json!(0)), "{state}");

    let (status, done) = owner.process(&id).await;
    assert_eq!(status, StatusCode::OK, "{done}");
    assert_eq!((statuses(&done), &done["dryRun"]), (statuses(&planned), &json!(false)));
    for same in ["stalePagesNotInZip", "stats", "previousDeployId", "assets", "files", "notes", "errors"] {
        assert_eq!(done[same], planned[same], "{same}");
    }
    assert_eq!(owner.file("a.js").await.as_deref(), Some("12345"));
}

#[tokio::test]
async fn a_dry_run_has_the_problems_of_publishing() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let id = owner.uploaded(&zip_of(&[("a.txt", b"no HTML")])).await;
    let (status, problem) = owner.process_with(&id, json!({"dryRun": true})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("zip")));
    let live = owner.deploy(&[("index.html", b"live")]).await;
    let (id, planned) = dry_run(&owner, &[("index.html", b"x")]).await;
    assert_eq!(statuses(&planned), [("index", "updated")]);
    let (status, problem) = owner.process_with(&id, json!({"dryRun": true, "publish": false})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("publish")));

    // A key that may not create pages learns so before it publishes.
    let key = owner.restricted_key(json!({"pages": [live["pages"][0]["id"]]})).await;
    let own = owner.uploaded_by(&key, &zip_of(&[("index.html", b"x"), ("new.html", b"x")])).await;
    let path = format!("/api/deploy/{own}/process");
    let refused = owner.api.send(Method::POST, &path, Some(&key), &json!({"dryRun": true})).await;
    let publishing = owner.api.send(Method::POST, &path, Some(&key), &Value::Null).await;
    assert_eq!((refused.0, &refused.1["code"]), (publishing.0, &publishing.1["code"]), "{}", refused.1);
    assert_eq!(refused.0, StatusCode::FORBIDDEN);
    assert_eq!(owner.pages().await["index"].0, "live");
}

#[tokio::test]
async fn a_dry_run_beyond_the_storage_of_the_plan_is_refused_like_publishing() {
    let owner = Owner::with_plan(Plan::Free).await;
    let (_, usage) = owner.send(Method::GET, "/api/account/usage", Value::Null).await;
    let limit = usage["_meta"]["usage"]["storageBytes"]["limit"].as_i64().unwrap();
    let statement =
        format!("update usage set storage_bytes = {} where account_id = '{}'", limit - 3, owner.id);
    owner.api.execute(&statement).await.unwrap();
    let id = owner.uploaded(&zip_of(&[("index.html", b"x"), ("a.js", b"12345")])).await;
    let (planned, problem) = owner.process_with(&id, json!({"dryRun": true})).await;
    let (published, _) = owner.process(&id).await;
    assert_eq!(planned, published, "{problem}");
    assert!(planned.is_client_error());
}

#[tokio::test]
async fn a_message_is_shown_with_its_deploy() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let create = async |message: Value| {
        let body = json!({"sizeBytes": 3, "message": message});
        api.send(Method::POST, "/api/deploy", Some(&key), &body).await
    };
    let (status, made) = create(json!("  New programme <b>\u{202e}  ")).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/deploy/{}", made["deployId"].as_str().unwrap());
    let (_, read) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
    let (_, list) = api.send(Method::GET, "/api/deploy", Some(&key), &Value::Null).await;
    for shown in [&read, &list["deploys"][0]] {
        assert_eq!(shown["message"], "New programme <b>\u{202e}");
    }
    let none = create(json!("  ")).await.1;
    let path = format!("/api/deploy/{}", none["deployId"].as_str().unwrap());
    assert_eq!(api.send(Method::GET, &path, Some(&key), &Value::Null).await.1["message"], Value::Null);
    let (status, problem) = create(json!("é".repeat(201))).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("message")));
    assert_eq!(create(json!("é".repeat(200))).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn deploys_and_pages_are_listed_by_their_subdomain() {
    let owner = Owner::with_plan(Plan::Pro).await;
    let (_, other) =
        owner.send(Method::POST, "/api/account/subdomains", json!({"name": "second-site"})).await;
    let other = other["id"].as_str().unwrap().to_owned();
    let deployed = owner.deploy(&[("index.html", b"one")]).await;
    owner.uploaded(&zip_of(&[("index.html", b"not processed")])).await;
    let page = json!({"slug": "index", "title": "T", "html": "x", "subdomainId": other});
    let (_, page) = owner.send(Method::POST, "/api/pages", page).await;
    let ids = async |path: String, list: &str, id: &str| {
        let (status, body) = owner.send(Method::GET, &path, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body[list].as_array().unwrap().iter().map(|one| one[id].clone()).collect::<Vec<_>>()
    };
    let first = owner.subdomain_id;
    let deploys = ids(format!("/api/deploy?subdomainId={first}"), "deploys", "deployId").await;
    assert_eq!(deploys, [deployed["deployId"].clone()]);
    assert!(ids(format!("/api/deploy?subdomainId={other}"), "deploys", "deployId").await.is_empty());
    for sort in ["oldest", "newest"] {
        for slug in ["", "&slug=index"] {
            let path = format!("/api/pages?subdomainId={other}&sort={sort}{slug}");
            assert_eq!(ids(path, "pages", "id").await, [page["id"].clone()]);
        }
    }
    assert_eq!(ids("/api/pages".to_owned(), "pages", "id").await.len(), 2);
}
