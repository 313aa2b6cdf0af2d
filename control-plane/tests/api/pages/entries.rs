//! Entries: limits, order and deletion.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

/// Creates a page with a template and returns the path of its entries.
async fn page(api: &Api, key: &str) -> String {
    let body =
        json!({"slug": "index", "title": "T", "html": "<!-- service:entries -->", "entryTemplate": "{{a}}"});
    let (status, created) = api.send(Method::POST, "/api/pages", Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    format!("/api/pages/{}/entries", created["id"].as_str().unwrap())
}

async fn add(api: &Api, key: &str, path: &str, data: Value) -> (StatusCode, Value) {
    api.send(Method::POST, path, Some(key), &json!({"data": data})).await
}

#[tokio::test]
async fn entries_are_listed_newest_first_and_deleted_permanently() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let path = page(&api, &key).await;
    let (status, first) =
        add(&api, &key, &path, json!({"a": "<b>", "n": 1.5, "l": ["x", 2], "z": null})).await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    assert_eq!(first["data"], json!({"a": "<b>", "n": 1.5, "l": ["x", 2], "z": null}));
    let (_, second) = add(&api, &key, &path, json!({})).await;
    let list = async || api.send(Method::GET, &path, Some(&key), &Value::Null).await.1;
    let listed = list().await;
    let ids: Vec<&Value> = listed["entries"].as_array().unwrap().iter().map(|entry| &entry["id"]).collect();
    assert_eq!((ids, &listed["count"]), (vec![&second["id"], &first["id"]], &json!(2)));
    assert_eq!(
        listed["entries"][1]["createdAt"].as_str().unwrap()[..19],
        first["createdAt"].as_str().unwrap()[..19]
    );

    let entry_path = format!("{path}/{}", first["id"].as_str().unwrap());
    assert_eq!(api.send(Method::DELETE, &entry_path, Some(&key), &Value::Null).await.0, StatusCode::OK);
    assert_eq!(list().await["count"], 1);
    let (status, problem) = api.send(Method::DELETE, &entry_path, Some(&key), &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
}

#[tokio::test]
async fn a_template_that_repeats_large_values_shows_the_newest_entries_within_four_megabytes() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let path = page(&api, &key).await;
    let page_path = path.trim_end_matches("/entries");
    let read = async || api.send(Method::GET, page_path, Some(&key), &Value::Null).await.1;
    assert_eq!(read().await["entriesRendered"], 0, "there are no entries");
    // Each entry renders to more than a megabyte.
    let large = json!({"entryTemplate": "{{a}}".repeat(80)});
    let (status, edited) = api.send(Method::PUT, page_path, Some(&key), &large).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    for _ in 0..5 {
        let (status, added) = add(&api, &key, &path, json!({"a": "x".repeat(16_000)})).await;
        assert_eq!(status, StatusCode::CREATED, "{added}");
    }
    let shown = read().await;
    let listed = shown["entries"].as_array().unwrap();
    assert_eq!((listed.len(), &shown["entriesRendered"]), (5, &json!(3)), "all are stored and listed");
    assert_eq!(listed[0]["data"]["a"].as_str().unwrap().len(), 16_000);
    let without_marker = json!({"html": "<p>no marker"});
    let (_, edited) = api.send(Method::PUT, page_path, Some(&key), &without_marker).await;
    assert_eq!(edited["entriesRendered"], 0);
}

#[tokio::test]
async fn invalid_entry_data_is_reported() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let path = page(&api, &key).await;
    for (body, field) in [
        (json!({}), "data"),
        (json!({"data": "x"}), "data"),
        (json!({"data": {"a": {"b": 1}}}), "data.a"),
        (json!({"data": {"a": [[]]}}), "data.a"),
        (json!({"data": {"a": "\u{0}"}}), "data.a"),
        (json!({"data": {}, "colour": 1}), "colour"),
    ] {
        let (status, problem) = api.send(Method::POST, &path, Some(&key), &body).await;
        let named = &problem["fieldErrors"][0]["field"];
        assert_eq!((status, named), (StatusCode::BAD_REQUEST, &json!(field)), "{problem}");
    }
    let around = r#"{"a":""}"#.len();
    let (status, _) = add(&api, &key, &path, json!({"a": "x".repeat(16 * 1024 - around)})).await;
    assert_eq!(status, StatusCode::CREATED);
    for beyond in [16 * 1024 - around + 1, 2 << 20] {
        let (status, problem) = add(&api, &key, &path, json!({"a": "x".repeat(beyond)})).await;
        assert_eq!((status, &problem["code"]), (StatusCode::PAYLOAD_TOO_LARGE, &json!("payload_too_large")));
    }
    api.send(Method::PUT, path.trim_end_matches("/entries"), Some(&key), &json!({"entryTemplate": null}))
        .await;
    let (status, problem) = add(&api, &key, &path, json!({})).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "without a template");
    let missing = format!("/api/pages/{}/entries", uuid::Uuid::nil());
    for (method, path, body) in [
        (Method::POST, missing.clone(), json!({"data": {}})),
        (Method::GET, missing.clone(), Value::Null),
        (Method::DELETE, format!("{missing}/{}", uuid::Uuid::nil()), Value::Null),
        (Method::DELETE, format!("{path}/x"), Value::Null),
    ] {
        let (status, problem) = api.send(method, &path, Some(&key), &body).await;
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_entries_respect_the_limit_and_a_deletion_frees_one() {
    let api = Arc::new(Api::start(&["store.max_connections=5"]).await);
    let key = api.trial().await;
    let path = page(&api, &key).await;
    api.execute(
        "insert into page_entries (id, account_id, page_id, data, created_at)
         select gen_random_uuid(), account_id, id, '{}', now() - n * interval '1 second'
         from pages, generate_series(1, 495) n;
         update pages set entry_count = 495",
    )
    .await
    .unwrap();
    let mut adding = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (api, key, path) = (Arc::clone(&api), key.clone(), path.clone());
        adding.spawn(async move { add(&api, &key, &path, json!({"a": number})).await });
    }
    let responses = adding.join_all().await;
    let created = responses.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    let full = responses
        .iter()
        .filter(|(status, response)| *status == StatusCode::CONFLICT && response["code"] == "conflict");
    assert_eq!((created, full.count()), (5, 35));
    let (_, listed) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
    assert_eq!((&listed["count"], listed["entries"].as_array().unwrap().len()), (&json!(500), 500));

    // Of concurrent deletions of an entry one succeeds and frees one slot.
    let entry_path = format!("{path}/{}", listed["entries"][0]["id"].as_str().unwrap());
    let mut deleting = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (api, key, entry_path) = (Arc::clone(&api), key.clone(), entry_path.clone());
        deleting
            .spawn(async move { api.send(Method::DELETE, &entry_path, Some(&key), &Value::Null).await.0 });
    }
    let deleted = deleting.join_all().await.into_iter().filter(|status| *status == StatusCode::OK).count();
    assert_eq!(deleted, 1);
    assert_eq!(add(&api, &key, &path, json!({})).await.0, StatusCode::CREATED);
    assert_eq!(add(&api, &key, &path, json!({})).await.0, StatusCode::CONFLICT);
}
