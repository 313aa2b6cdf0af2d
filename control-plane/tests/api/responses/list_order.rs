//! Lists: their order, their rows, and what finds a page.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

async fn get(api: &Api, key: &str, path: &str) -> Value {
    let (status, list) = api.send(Method::GET, path, Some(key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{path}: {list}");
    list
}

/// Follows the cursors of a list; returns the ids.
async fn ids(api: &Api, key: &str, path: &str, rows: &str) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let list = get(api, key, &format!("{path}{cursor}")).await;
        ids.extend(list[rows].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        match list["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn every_list_that_takes_sort_can_begin_with_the_newest() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
    let trigger = json!({"type": "http"});
    let steps = json!([{"type": "stop", "id": "s", "status": "success"}]);
    let page_of = |at: usize| json!({"slug": format!("page-{at}"), "title": "T", "html": "x"});
    for at in 0..3 {
        for (path, body) in [
            ("/api/pages", page_of(at)),
            ("/api/forms", json!({"name": "F", "fields": fields})),
            ("/api/folders", json!({"name": format!("F{at}")})),
            ("/api/webhooks", json!({"url": "https://a.example"})),
            ("/api/keys", json!({"label": "K"})),
            ("/api/analytics/sites", json!({"name": "S"})),
            ("/api/account/subdomains", json!({"name": format!("another-{at}")})),
            ("/api/account/domains", json!({"domain": format!("www{at}.example.com")})),
            ("/api/pages/assets", json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": 9})),
            (
                "/api/automations",
                json!({"name": "A", "slug": format!("a{at}"), "trigger": trigger, "steps": steps}),
            ),
        ] {
            let (status, created) = api.send(Method::POST, path, Some(&key), &body).await;
            assert_eq!(status, StatusCode::CREATED, "{path}: {created}");
        }
    }
    // Deploys take no `sort`: they are listed newest first.
    for (path, rows) in [
        ("/api/pages", "pages"),
        ("/api/forms", "forms"),
        ("/api/folders", "folders"),
        ("/api/webhooks", "webhooks"),
        ("/api/analytics/sites", "sites"),
        ("/api/account/subdomains", "subdomains"),
        ("/api/account/domains", "domains"),
        ("/api/pages/assets", "assets"),
        ("/api/automations", "automations"),
        ("/api/keys", "keys"),
    ] {
        let oldest = ids(&api, &key, &format!("{path}?limit=2"), rows).await;
        assert!(oldest.len() >= 3, "{path}: {oldest:?}");
        assert_eq!(ids(&api, &key, &format!("{path}?sort=oldest&limit=2"), rows).await, oldest, "{path}");
        let mut newest = ids(&api, &key, &format!("{path}?sort=newest&limit=2"), rows).await;
        newest.reverse();
        assert_eq!(newest, oldest, "{path}");

        // A cursor is valid only in the order of the list that it comes from.
        for (order, other) in [("sort=newest", ""), ("sort=newest", "sort=oldest"), ("", "sort=newest")] {
            let list = get(&api, &key, &format!("{path}?limit=1&{order}")).await;
            let cursor = list["nextCursor"].as_str().unwrap();
            let wrong = format!("{path}?limit=1&{other}&cursor={cursor}");
            let (status, problem) = api.send(Method::GET, &wrong, Some(&key), &Value::Null).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}: {problem}");
            assert_eq!(problem["fieldErrors"][0]["field"], "cursor", "{wrong}: {problem}");
        }
    }
}

#[tokio::test]
async fn a_listed_page_has_its_metadata_and_subdomain_and_is_found_by_its_slug() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let metadata = json!({"collection": "blog", "tags": ["a", "b"]});
    for slug in ["index", "about"] {
        let page = json!({"slug": slug, "title": "T", "html": "x", "metadata": metadata});
        let (status, page) = api.send(Method::POST, "/api/pages", Some(&key), &page).await;
        assert_eq!((status, &page["metadata"]), (StatusCode::CREATED, &metadata), "{page}");
    }
    let found = get(&api, &key, "/api/pages?slug=about").await;
    let pages = found["pages"].as_array().unwrap();
    assert_eq!((pages.len(), &pages[0]["slug"], &pages[0]["metadata"]), (1, &json!("about"), &metadata));
    let subdomain = get(&api, &key, "/api/account/subdomain").await;
    assert_eq!(pages[0]["subdomainId"], subdomain["id"]);
    assert_eq!(get(&api, &key, "/api/pages?slug=other").await["pages"], json!([]));

    let path = format!("/api/pages/{}", pages[0]["id"].as_str().unwrap());
    let change = json!({"metadata": {"collection": "news"}});
    let (status, changed) = api.send(Method::PUT, &path, Some(&key), &change).await;
    assert_eq!((status, &changed["metadata"]), (StatusCode::OK, &change["metadata"]), "{changed}");
    let found = get(&api, &key, "/api/pages?collection=news").await;
    assert_eq!(found["pages"][0]["id"], pages[0]["id"]);
    let (_, unchanged) = api.send(Method::PUT, &path, Some(&key), &json!({"title": "U"})).await;
    assert_eq!(unchanged["metadata"], change["metadata"]);
    let large = json!({"metadata": {"text": "x".repeat(17 << 10)}});
    let (status, problem) = api.send(Method::PUT, &path, Some(&key), &large).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("metadata")));
}

#[tokio::test]
async fn a_list_of_pages_with_much_metadata_ends_at_one_mebibyte() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let pages: Vec<Value> = (0..90)
        .map(|at| {
            let metadata = json!({"text": "x".repeat(15 << 10)});
            json!({"slug": format!("page-{at}"), "title": "T", "html": "x", "metadata": metadata})
        })
        .collect();
    let (_, done) = api.send(Method::POST, "/api/pages/batch", Some(&key), &json!({"pages": pages})).await;
    assert_eq!(done["failed"], 0, "{done}");
    let list = get(&api, &key, "/api/pages?limit=100").await;
    assert_eq!(list["hasMore"], true);
    assert!(list.to_string().len() < domain::PAGE_BYTES_MAX * 11 / 10);
    assert_eq!(ids(&api, &key, "/api/pages?limit=100", "pages").await.len(), 90);
}
