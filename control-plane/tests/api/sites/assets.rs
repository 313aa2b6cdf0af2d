//! Assets: creation, quota, lists and deletion.

use domain::plans::Plan;
use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::Clock;
use store::blobs::NewBlob;
use store::usage;
use uuid::Uuid;

use crate::harness::{Api, send_to};

fn asset(size: i64) -> Value {
    json!({"filename": "a b.png", "contentType": "image/png", "sizeBytes": size})
}

async fn stored_bytes(api: &Api, key: &str) -> i64 {
    let (_, usage) = api.send(Method::GET, "/api/account/usage", Some(key), &Value::Null).await;
    usage["_meta"]["usage"]["storageBytes"]["used"].as_i64().unwrap()
}

#[tokio::test]
async fn a_new_asset_has_an_upload_url_and_a_public_url() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (status, created) = api.send(Method::POST, "/api/pages/assets", Some(&key), &asset(1_000)).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let id = created["id"].as_str().unwrap();
    assert_eq!(created["publicUrl"], format!("http://assets.localhost:8080/{id}/a%20b.png"));
    let upload = created["uploadUrl"].as_str().unwrap();
    assert!(upload.starts_with(&format!("http://localhost:8080/uploads/{id}?expires=")), "{upload}");
    assert_eq!(
        (&created["uploadMethod"], &created["uploadHeaders"]["Content-Type"]),
        (&json!("PUT"), &json!("image/png"))
    );
    let (_, listed) = api.send(Method::GET, "/api/pages/assets", Some(&key), &Value::Null).await;
    let row = &listed["assets"][0];
    assert_eq!(
        (&row["id"], &row["isUploaded"], &row["sizeBytes"]),
        (&json!(id), &json!(false), &json!(1_000))
    );
}

#[tokio::test]
async fn bytes_of_an_asset_count_until_its_deletion() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let key = api.trial().await;
    let (_, created) = api.send(Method::POST, "/api/pages/assets", Some(&key), &asset(1_000)).await;
    assert_eq!(stored_bytes(&api, &key).await, 1_000);
    let path = format!("/api/pages/assets/{}", created["id"].as_str().unwrap());
    let (status, deleted) = api.send(Method::DELETE, &path, Some(&key), &Value::Null).await;
    assert_eq!((status, &deleted["deleted"]), (StatusCode::OK, &json!(true)));
    assert_eq!(stored_bytes(&api, &key).await, 0);
    let (status, _) = api.send(Method::DELETE, &path, Some(&key), &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_asset_beyond_the_plan_is_rejected_and_not_counted() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let key = api.trial().await;
    let (status, problem) =
        api.send(Method::POST, "/api/pages/assets", Some(&key), &asset((2 << 20) + 1)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")));
    assert_eq!(problem["limit"], 2 << 20);
    let whole = asset(2 << 20);
    let send = |_| api.send(Method::POST, "/api/pages/assets", Some(&key), &whole);
    let responses = join_all((0..14).map(send)).await;
    let created = responses.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    assert_eq!(created, 10, "20 MB hold ten files of 2 MB, whatever the concurrency");
    let (_, rejected) = responses.iter().find(|(status, _)| *status == StatusCode::FORBIDDEN).unwrap();
    assert_eq!((&rejected["code"], &rejected["limit"]), (&json!("quota_exceeded"), &json!(20 << 20)));
    assert_eq!(stored_bytes(&api, &key).await, 20 << 20);
}

#[tokio::test]
async fn every_invalid_field_of_an_asset_is_named() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for (body, field) in [
        (json!({"filename": "a/b.png", "contentType": "image/png", "sizeBytes": 1}), "filename"),
        (json!({"filename": "a.png", "contentType": "png", "sizeBytes": 1}), "contentType"),
        (json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": 0}), "sizeBytes"),
        (json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": -1}), "sizeBytes"),
        (json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": "1"}), "sizeBytes"),
        (json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": 1, "pageId": "x"}), "pageId"),
        (json!({"contentType": "image/png", "sizeBytes": 1}), "filename"),
    ] {
        let (status, problem) = api.send(Method::POST, "/api/pages/assets", Some(&key), &body).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!(field)),
            "{problem}"
        );
    }
    let missing = json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": 1,
        "pageId": "00000000-0000-0000-0000-000000000000"});
    let (status, _) = api.send(Method::POST, "/api/pages/assets", Some(&key), &missing).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn assets_are_listed_by_page_and_paginated() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let page = json!({"slug": "home", "title": "T", "html": "x"});
    let (_, page) = api.send(Method::POST, "/api/pages", Some(&key), &page).await;
    for n in 0..3 {
        let mut body = asset(10 + n);
        if n > 0 {
            body["pageId"] = page["id"].clone();
        }
        api.send(Method::POST, "/api/pages/assets", Some(&key), &body).await;
    }
    let get = async |query: &str| {
        api.send(Method::GET, &format!("/api/pages/assets{query}"), Some(&key), &Value::Null).await.1
    };
    let sizes = |listed: &Value| -> Vec<i64> {
        listed["assets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|asset| asset["sizeBytes"].as_i64().unwrap())
            .collect()
    };
    let first = get("?limit=2").await;
    assert_eq!((sizes(&first), &first["hasMore"]), (vec![10, 11], &json!(true)));
    let rest = get(&format!("?cursor={}", first["nextCursor"].as_str().unwrap())).await;
    assert_eq!(sizes(&rest), [12]);
    assert_eq!(sizes(&get(&format!("?pageId={}", page["id"].as_str().unwrap())).await), [11, 12]);
}

#[tokio::test]
async fn deleting_an_asset_during_its_upload_does_not_deadlock() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let (key, account_id) = api.trial_on(Plan::Pro).await;
    let (_, created) = api.send(Method::POST, "/api/pages/assets", Some(&key), &asset(3)).await;
    let id: Uuid = created["id"].as_str().unwrap().parse().unwrap();
    let now = Clock::system().now();

    // The steps of the upload, with the deletion between them.
    let mut upload = api.begin().await;
    assert!(store::uploads::finish_upload(&mut upload, account_id, id, now).await.unwrap());
    let path = format!("/api/pages/assets/{id}");
    let (other, own) = (api.replica(&[]), key.clone());
    let deletion =
        tokio::spawn(async move { send_to(&other, Method::DELETE, &path, Some(&own), &Value::Null).await });
    api.until_lock_wait().await;
    let blob = NewBlob { id: Uuid::from_u128(1), sha256: [1; 32], size_bytes: 3 };
    let blobs = store::blobs::reference_blobs(&mut upload, account_id, &[blob]).await.unwrap();
    store::assets::update_blob(&mut upload, account_id, id, blobs[0].id).await.unwrap();
    store::commit(upload).await.unwrap();

    assert_eq!(deletion.await.unwrap().0, StatusCode::OK);
    assert_eq!(stored_bytes(&api, &key).await, 0);
    let mut tx = api.begin().await;
    let unreferenced = store::blobs::lock_unreferenced(&mut tx, Clock::system().now()).await.unwrap();
    assert_eq!(unreferenced.unwrap().sha256, [1; 32], "its bytes are released too");
}

#[tokio::test]
async fn deleting_an_asset_and_its_page_concurrently_does_not_deadlock() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let (key, account_id) = api.trial_on(Plan::Pro).await;
    let page = json!({"slug": "home", "title": "T", "html": "x"});
    let (_, page) = api.send(Method::POST, "/api/pages", Some(&key), &page).await;
    let mut body = asset(3);
    body["pageId"] = page["id"].clone();
    let (_, created) = api.send(Method::POST, "/api/pages/assets", Some(&key), &body).await;

    // The steps of the page's deletion, with the asset's deletion between them.
    let mut deleting = api.begin().await;
    usage::lock(&mut deleting, account_id).await.unwrap();
    let path = format!("/api/pages/assets/{}", created["id"].as_str().unwrap());
    let (other, own) = (api.replica(&[]), key.clone());
    let deletion =
        tokio::spawn(async move { send_to(&other, Method::DELETE, &path, Some(&own), &Value::Null).await });
    api.until_lock_wait().await;
    let page_id = page["id"].as_str().unwrap().parse().unwrap();
    store::pages::delete_page(&mut deleting, account_id, page_id).await.unwrap().unwrap();
    store::commit(deleting).await.unwrap();

    assert_eq!(deletion.await.unwrap().0, StatusCode::OK);
    assert_eq!(stored_bytes(&api, &key).await, 0);
}
