//! Page updates: optimistic locking and publish times.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::Clock;

use crate::harness::Api;

async fn page(api: &Api, key: &str, part: Value) -> (String, Value) {
    let mut body = json!({"slug": "index", "title": "T", "html": "<p>x"});
    body.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
    let (status, created) = api.send(Method::POST, "/api/pages", Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    (format!("/api/pages/{}", created["id"].as_str().unwrap()), created)
}

async fn put(api: &Api, key: &str, path: &str, body: Value) -> (StatusCode, Value) {
    api.send(Method::PUT, path, Some(key), &body).await
}

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_stale_update_is_rejected_without_side_effects() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (path, created) = page(&api, &key, json!({})).await;
    let first = created["updatedAt"].clone();
    assert_eq!(first.as_str().unwrap().len(), "2026-11-21T12:00:00.000Z".len(), "{first}");
    let edit = |html: &str, since: &Value| json!({"html": html, "ifUnmodifiedSince": since});
    let (status, edited) = put(&api, &key, &path, edit("<p>1", &first)).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    let (status, problem) = put(&api, &key, &path, edit("<p>2", &first)).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("stale_write")), "{problem}");
    assert_eq!(problem["updatedAt"], edited["updatedAt"]);
    let (_, stored) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
    assert_eq!((&stored["html"], &stored["updatedAt"]), (&json!("<p>1"), &edited["updatedAt"]));
    let (status, _) = put(&api, &key, &path, edit("<p>3", &problem["updatedAt"])).await;
    assert_eq!(status, StatusCode::OK, "the current version is accepted");
    let tomorrow = json!(Clock::system().now() + TimeDelta::days(1));
    assert_eq!(put(&api, &key, &path, edit("<p>4", &tomorrow)).await.0, StatusCode::OK);
    let (status, problem) = put(&api, &key, &path, json!({"ifUnmodifiedSince": "yesterday"})).await;
    assert_eq!(
        (status, &problem["fieldErrors"][0]["field"]),
        (StatusCode::BAD_REQUEST, &json!("ifUnmodifiedSince"))
    );
}

#[tokio::test]
async fn an_etag_protects_an_update_too() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (path, _) = page(&api, &key, json!({})).await;
    let bearer = ("authorization", format!("Bearer {key}"));
    let read = http::Request::get(&path).header("authorization", &bearer.1).body(axum::body::Body::empty());
    let (_, headers, _) = api.exchange(read.unwrap()).await;
    let etag = headers["etag"].to_str().unwrap().to_owned();
    let edit = async |tag: &str| {
        let headers = [bearer.clone(), ("if-match", tag.to_owned())];
        let (status, response) = api.send_with(Method::PUT, &path, &headers, &json!({"title": "U"})).await;
        (status, response["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(edit(&etag).await.0, StatusCode::OK);
    assert_eq!(edit(&etag).await, (StatusCode::CONFLICT, "stale_write".to_owned()));
    assert_eq!(edit("\"other\"").await.0, StatusCode::CONFLICT);
    assert_eq!(edit("*").await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_concurrent_updates_of_one_version_one_wins() {
    let api = Arc::new(Api::start(&[]).await);
    let key = api.trial().await;
    for _round in 0..5 {
        let (path, created) = page(&api, &key, json!({})).await;
        let mut editing = tokio::task::JoinSet::new();
        for number in 0..8 {
            let (api, key, path, since) =
                (Arc::clone(&api), key.clone(), path.clone(), created["updatedAt"].clone());
            editing.spawn(async move {
                let edit = json!({"title": format!("{number}"), "ifUnmodifiedSince": since});
                put(&api, &key, &path, edit).await
            });
        }
        let responses = editing.join_all().await;
        let won: Vec<_> = responses.iter().filter(|(status, _)| *status == StatusCode::OK).collect();
        let lost = responses.iter().filter(|(_, response)| response["code"] == "stale_write").count();
        assert_eq!((won.len(), lost), (1, 7), "{responses:?}");
        let (_, stored) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
        assert_eq!(stored["title"], won[0].1["title"]);
        api.send(Method::DELETE, &path, Some(&key), &Value::Null).await;
    }
}

#[tokio::test]
async fn a_future_publish_time_hides_a_page_and_a_past_one_shows_it() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let now = Clock::system().now();
    let (past, soon) = (json!(now - TimeDelta::hours(1)), json!(now + TimeDelta::hours(1)));
    let state = |response: &Value| {
        let at = response["publishAt"]
            .as_str()
            .map(|at| (at.parse::<DateTime<Utc>>().unwrap() - now).num_minutes());
        (response["isPublished"].as_bool().unwrap(), at)
    };
    let (path, created) = page(&api, &key, json!({"publishAt": soon, "isPublished": true})).await;
    assert_eq!(state(&created), (false, Some(60)));
    for (edit, after) in [
        (json!({"title": "U"}), (false, Some(60))),
        (json!({"publishAt": null}), (false, None)),
        (json!({"publishAt": past}), (true, None)),
        (json!({"publishAt": soon, "isPublished": true}), (false, Some(60))),
        (json!({"isPublished": true}), (true, None)),
        (json!({"publishAt": soon}), (false, Some(60))),
        (json!({"isPublished": false}), (false, None)),
        (json!({"publishAt": null, "isPublished": true}), (true, None)),
    ] {
        let (status, response) = put(&api, &key, &path, edit.clone()).await;
        assert_eq!((status, state(&response)), (StatusCode::OK, after), "{edit}");
    }
    let (_, shown) =
        page(&api, &key, json!({"slug": "other", "publishAt": past, "isPublished": false})).await;
    assert_eq!(state(&shown), (true, None));
    for wrong in ["tomorrow", "2026-13-01T00:00:00Z", "+200000-01-01T00:00:00Z"] {
        let (status, problem) = put(&api, &key, &path, json!({"publishAt": wrong})).await;
        let field = &problem["fieldErrors"][0]["field"];
        assert_eq!((status, field), (StatusCode::BAD_REQUEST, &json!("publishAt")), "{wrong}");
    }
}

#[tokio::test]
async fn updated_at_increases_with_updates_only() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (path, created) = page(&api, &key, json!({"entryTemplate": "{{a}}"})).await;
    let id = created["id"].as_str().unwrap();
    let mut last = time(&created["updatedAt"]);
    for edit in [json!({}), json!({"html": "<p>x"}), json!({"title": "U"}), json!({"folderId": null})] {
        let (_, response) = put(&api, &key, &path, edit).await;
        assert!(time(&response["updatedAt"]) > last, "{response}");
        last = time(&response["updatedAt"]);
    }
    let entries = format!("{path}/entries");
    api.send(Method::POST, &entries, Some(&key), &json!({"data": {"a": 1}})).await;
    api.execute(&format!("insert into page_views values ('{id}', 7)")).await.unwrap();
    let (_, folder) = api.send(Method::POST, "/api/folders", Some(&key), &json!({"name": "F"})).await;
    let organize = format!("/api/folders/{}/organize", folder["id"].as_str().unwrap());
    let body = json!({"resources": [{"type": "page", "id": id}]});
    let (_, moved) = api.send(Method::POST, &organize, Some(&key), &body).await;
    assert_eq!(moved["moved"], 1, "{moved}");
    let (_, read) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
    assert_eq!((time(&read["updatedAt"]), &read["viewCount"]), (last, &json!(7)));
    assert_eq!((&read["entries"][0]["data"], &read["entryTemplate"]), (&json!({"a": 1}), &json!("{{a}}")));
    let (_, listed) = api.send(Method::GET, "/api/pages", Some(&key), &Value::Null).await;
    assert_eq!(listed["pages"][0]["viewCount"], 7);
}

#[tokio::test]
async fn a_list_can_be_limited_to_a_folder() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (_, folder) = api.send(Method::POST, "/api/folders", Some(&key), &json!({"name": "F"})).await;
    for (slug, part) in [
        ("blog-1", json!({"metadata": {"collection": "blog"}})),
        ("blog-2", json!({"metadata": {"collection": "blog"}, "folderId": folder["id"]})),
        ("news", json!({"metadata": {"collection": ["blog"]}, "folderId": folder["id"]})),
        ("none", json!({})),
    ] {
        let mut part = part;
        part["slug"] = json!(slug);
        page(&api, &key, part).await;
    }
    let in_folder = format!("?folderId={}", folder["id"].as_str().unwrap());
    for (query, slugs) in [
        ("?collection=blog", vec!["blog-1", "blog-2"]),
        (in_folder.as_str(), vec!["blog-2", "news"]),
        (&format!("{in_folder}&collection=blog"), vec!["blog-2"]),
        ("?collection=cats", vec![]),
    ] {
        let (_, listed) =
            api.send(Method::GET, &format!("/api/pages{query}"), Some(&key), &Value::Null).await;
        let shown: Vec<&str> =
            listed["pages"].as_array().unwrap().iter().map(|page| page["slug"].as_str().unwrap()).collect();
        assert_eq!(shown, slugs, "{query}");
    }
}

#[tokio::test]
async fn page_content_is_accepted_up_to_its_limits() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (path, _) = page(&api, &key, json!({})).await;
    let beyond = "x".repeat(64 * 1024 + 1);
    for (edit, field) in [
        (json!({"entryTemplate": beyond}), "entryTemplate"),
        (json!({"entryTemplate": "<script>{{a}}</script>"}), "entryTemplate"),
        (json!({"entryTemplate": "{{not closed"}), "entryTemplate"),
        (json!({"css": "x".repeat(128 * 1024 + 1)}), "css"),
        (json!({"title": ""}), "title"),
        (json!({"slug": "other"}), "slug"),
    ] {
        let (status, problem) = put(&api, &key, &path, edit).await;
        let named = &problem["fieldErrors"][0]["field"];
        assert_eq!((status, named), (StatusCode::BAD_REQUEST, &json!(field)), "{problem}");
    }
    let (status, problem) = put(&api, &key, &path, json!({"html": "x".repeat(5 << 20)})).await;
    assert_eq!((status, &problem["code"]), (StatusCode::PAYLOAD_TOO_LARGE, &json!("payload_too_large")));
    let whole = json!({"html": "x".repeat(512 * 1024), "css": "x".repeat(128 * 1024),
                       "entryTemplate": "x".repeat(64 * 1024)});
    assert_eq!(put(&api, &key, &path, whole).await.0, StatusCode::OK);
    let (_, read) = put(&api, &key, &path, json!({"entryTemplate": null})).await;
    assert_eq!(read["entryTemplate"], Value::Null);
}
