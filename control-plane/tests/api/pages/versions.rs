//! Versions: a page can be rolled back, and the rollback too.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

#[tokio::test]
async fn a_rollback_restores_a_version() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let body = json!({"slug": "index", "title": "T", "html": "<p>1", "css": "p{}", "entryTemplate": "{{a}}",
                      "metadata": {"collection": "blog"}});
    let (_, created) = api.send(Method::POST, "/api/pages", Some(&key), &body).await;
    let path = format!("/api/pages/{}", created["id"].as_str().unwrap());
    let edit =
        json!({"title": "U", "html": "<p>2", "css": null, "entryTemplate": null, "isPublished": false});
    let (_, edited) = api.send(Method::PUT, &path, Some(&key), &edit).await;
    let list = async || {
        let (status, list) =
            api.send(Method::GET, &format!("{path}/versions"), Some(&key), &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        list["versions"].as_array().unwrap().clone()
    };
    let versions = list().await;
    let shown = |version: &Value| {
        json!([version["number"], version["title"], version["isCurrent"], version["deployId"]])
    };
    assert_eq!(
        versions.iter().map(shown).collect::<Vec<_>>(),
        [json!([2, "U", true, null]), json!([1, "T", false, null])]
    );

    let read = async |version: &Value| {
        let path = format!("{path}/versions/{}", version["id"].as_str().unwrap());
        api.send(Method::GET, &path, Some(&key), &Value::Null).await
    };
    let (status, first) = read(&versions[1]).await;
    assert_eq!(status, StatusCode::OK, "{first}");
    for part in ["title", "html", "css", "entryTemplate", "metadata"] {
        assert_eq!(first[part], body[part], "{part}");
    }
    assert_eq!((&first["number"], &first["isCurrent"]), (&json!(1), &json!(false)));
    let (_, current) = read(&versions[0]).await;
    assert_eq!(
        (&current["html"], &current["css"], &current["isCurrent"]),
        (&json!("<p>2"), &Value::Null, &json!(true))
    );

    let rollback = format!("{path}/rollback");
    let to = json!({"versionId": versions[1]["id"]});
    let (status, back) = api.send(Method::POST, &rollback, Some(&key), &to).await;
    assert_eq!(status, StatusCode::OK, "{back}");
    for part in ["title", "html", "css", "entryTemplate", "metadata"] {
        assert_eq!(back[part], body[part], "{part}");
    }
    assert_eq!(back["isPublished"], false, "the visibility is unchanged");
    assert!(back["updatedAt"].as_str() > edited["updatedAt"].as_str());
    assert_eq!(list().await.len(), 3);
    let (_, again) =
        api.send(Method::POST, &rollback, Some(&key), &json!({"versionId": versions[0]["id"]})).await;
    assert_eq!((&again["html"], &again["css"]), (&json!("<p>2"), &Value::Null), "undone");
}

#[tokio::test]
async fn a_rollback_requires_a_version_of_the_same_page() {
    let api = Api::start(&[]).await;
    let (key, other_key) = (api.trial().await, api.trial().await);
    let create = async |key: &str, slug: &str| {
        let body = json!({"slug": slug, "title": "T", "html": "<p>x"});
        let (_, created) = api.send(Method::POST, "/api/pages", Some(key), &body).await;
        let path = format!("/api/pages/{}", created["id"].as_str().unwrap());
        let (_, list) = api.send(Method::GET, &format!("{path}/versions"), Some(key), &Value::Null).await;
        (format!("{path}/rollback"), list["versions"][0]["id"].clone())
    };
    let ((rollback, _), (_, other), (_, other_version)) =
        (create(&key, "one").await, create(&key, "other").await, create(&other_key, "one").await);
    for id in [other, other_version, json!("00000000-0000-0000-0000-000000000000")] {
        let read = format!("{}/versions/{}", rollback.trim_end_matches("/rollback"), id.as_str().unwrap());
        let (status, _) = api.send(Method::GET, &read, Some(&key), &Value::Null).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (status, problem) =
            api.send(Method::POST, &rollback, Some(&key), &json!({"versionId": id})).await;
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    }
    let (status, problem) = api.send(Method::POST, &rollback, Some(&key), &json!({"versionId": 1})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("versionId")));
}
