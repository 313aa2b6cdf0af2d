//! Pages: validation, conflicts, isolation between accounts and pagination.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

fn page(slug: &str) -> Value {
    json!({"slug": slug, "title": "T", "html": "<p>x"})
}

#[tokio::test]
async fn a_taken_slug_is_a_conflict_that_names_the_page() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (status, first) = api.send(Method::POST, "/api/pages", Some(&key), &page("index")).await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    assert!(first["subdomainUrl"].as_str().unwrap().ends_with(".localhost:8080/"), "{first}");
    let (status, problem) = api.send(Method::POST, "/api/pages", Some(&key), &page("index")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("slug_taken")));
    assert_eq!(problem["existingPageId"], first["id"]);
}

#[tokio::test]
async fn every_invalid_field_is_named_and_nothing_is_created() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let cases = [
        (
            json!({"slug": "A", "title": "", "html": "x".repeat(512 * 1024 + 1)}),
            vec!["slug", "slug", "title", "html"],
        ),
        (json!({"slug": "ok", "title": "T"}), vec!["html"]),
        (json!({"slug": "ok", "title": "T", "html": "x", "colour": 1}), vec!["colour"]),
        (json!({"slug": "ok", "title": 7, "html": "x"}), vec!["title"]),
        (
            json!({"slug": "ok", "title": "T", "html": "x", "metadata": {"note": "x".repeat(16 * 1024)}}),
            vec!["metadata"],
        ),
        (json!({"slug": "ok", "title": "a\u{0}b", "html": "x"}), vec!["title"]),
    ];
    for (body, fields) in cases {
        let (status, problem) = api.send(Method::POST, "/api/pages", Some(&key), &body).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::BAD_REQUEST, &json!("validation_failed")),
            "{problem}"
        );
        let named: Vec<&str> =
            problem["fieldErrors"].as_array().unwrap().iter().map(|e| e["field"].as_str().unwrap()).collect();
        assert_eq!(named, fields, "{problem}");
    }
    let (_, listed) = api.send(Method::GET, "/api/pages", Some(&key), &Value::Null).await;
    assert_eq!(listed["pages"], json!([]));
}

#[tokio::test]
async fn another_accounts_page_is_a_404() {
    let api = Api::start(&[]).await;
    let (own_key, other_key) = (api.trial().await, api.trial().await);
    let (_, created) = api.send(Method::POST, "/api/pages", Some(&own_key), &page("index")).await;
    let path = format!("/api/pages/{}", created["id"].as_str().unwrap());
    let missing = "/api/pages/00000000-0000-0000-0000-000000000000";
    for (method, body) in
        [(Method::GET, Value::Null), (Method::PUT, json!({"title": "stolen"})), (Method::DELETE, Value::Null)]
    {
        let (status, response) = api.send(method.clone(), &path, Some(&other_key), &body).await;
        let (missing_status, missing_response) = api.send(method, missing, Some(&other_key), &body).await;
        assert_eq!((status, missing_status), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
        assert_eq!(response["detail"], missing_response["detail"]);
    }
    let (status, stored) = api.send(Method::GET, &path, Some(&own_key), &Value::Null).await;
    assert_eq!((status, &stored["title"]), (StatusCode::OK, &json!("T")));
    let (_, listed) = api.send(Method::GET, "/api/pages", Some(&other_key), &Value::Null).await;
    assert_eq!(listed["pages"], json!([]));
}

#[tokio::test]
async fn an_update_changes_only_given_fields_and_null_removes() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let body = json!({"slug": "index", "title": "T", "html": "<p>x", "css": "p{}"});
    let (_, created) = api.send(Method::POST, "/api/pages", Some(&key), &body).await;
    let path = format!("/api/pages/{}", created["id"].as_str().unwrap());
    let (_, edited) = api.send(Method::PUT, &path, Some(&key), &json!({"title": "U"})).await;
    assert_eq!(
        (&edited["title"], &edited["css"], &edited["html"]),
        (&json!("U"), &json!("p{}"), &json!("<p>x"))
    );
    let (_, cleared) = api.send(Method::PUT, &path, Some(&key), &json!({"css": null})).await;
    assert_eq!((&cleared["title"], &cleared["css"]), (&json!("U"), &Value::Null));
    assert!(
        cleared["updatedAt"].as_str() > edited["updatedAt"].as_str(),
        "updatedAt increases with each update"
    );
}

#[tokio::test]
async fn pagination_has_no_gaps_or_duplicates() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for number in 0..7 {
        api.send(Method::POST, "/api/pages", Some(&key), &page(&format!("page-{number}"))).await;
    }
    let (mut slugs, mut cursor) = (Vec::new(), String::new());
    loop {
        let (_, part) =
            api.send(Method::GET, &format!("/api/pages?limit=3{cursor}"), Some(&key), &Value::Null).await;
        slugs.extend(
            part["pages"].as_array().unwrap().iter().map(|page| page["slug"].as_str().unwrap().to_owned()),
        );
        assert_eq!(part["hasMore"], json!(part["nextCursor"].is_string()));
        let Some(next) = part["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(slugs, (0..7).map(|number| format!("page-{number}")).collect::<Vec<_>>());
    let (status, problem) =
        api.send(Method::GET, "/api/pages?cursor=made-up", Some(&key), &Value::Null).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("cursor")));
}
