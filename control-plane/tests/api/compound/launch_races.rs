//! Launches at once, and launches that end in the middle.

use std::sync::Arc;

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{get, hold_inserts, launch, page, projects};
use crate::harness::{Api, send_to};
use crate::no_side_effects::Snapshot;

#[tokio::test(flavor = "multi_thread")]
async fn launches_of_one_site_at_once_make_it_once() {
    let api = Arc::new(Api::start(&["store.max_connections=5"]).await);
    let (key, replica) = (api.trial().await, api.replica(&[]));
    let body = json!({"subdomain": "my-site", "pages": [page("index"), page("about")]});
    let mut launching = JoinSet::new();
    for number in 0..16 {
        let (api, replica, key, body) = (Arc::clone(&api), replica.clone(), key.clone(), body.clone());
        launching.spawn(async move {
            match number % 2 {
                0 => launch(&api, &key, &body).await,
                _ => send_to(&replica, Method::POST, "/api/launch", Some(&key), &body).await,
            }
        });
    }
    let responses = launching.join_all().await;
    let created = responses.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    assert_eq!(created, 1, "{responses:?}");
    for (status, response) in &responses {
        assert!(status.is_success(), "{response}");
        assert_eq!(response["renamed"] == true, *status == StatusCode::CREATED);
        assert_eq!(response["analyticsSite"], responses[0].1["analyticsSite"]);
    }
    assert_eq!(projects(&api, &key).await, 3);
    for page in get(&api, &key, "/api/pages").await["pages"].as_array().unwrap() {
        let versions = format!("/api/pages/{}/versions", page["id"].as_str().unwrap());
        assert_eq!(get(&api, &key, &versions).await["versions"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_accounts_one_gets_the_name_and_the_others_nothing() {
    let api = Arc::new(Api::start(&["store.max_connections=5"]).await);
    let mut launching = JoinSet::new();
    for _ in 0..5 {
        let key = api.trial().await;
        let api = Arc::clone(&api);
        launching.spawn(async move {
            let body = json!({"subdomain": "my-site", "pages": [page("index")]});
            let (status, response) = launch(&api, &key, &body).await;
            let stored = get(&api, &key, "/api/pages").await["pages"].as_array().unwrap().len();
            (status, response["code"].clone(), stored, projects(&api, &key).await)
        });
    }
    let mut results = launching.join_all().await;
    results.sort_by_key(|(status, ..)| *status);
    assert_eq!(results[0], (StatusCode::CREATED, Value::Null, 1, json!(2)));
    for result in &results[1..] {
        assert_eq!(*result, (StatusCode::CONFLICT, json!("conflict"), 0, json!(0)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn launches_and_other_writes_of_an_account_never_deadlock() {
    let api = Arc::new(Api::start(&["store.max_connections=5"]).await);
    let (key, _) = api.trial_on(Plan::Scale).await;
    let first = get(&api, &key, "/api/account/subdomain").await["id"].clone();
    let mut folders = Vec::new();
    for number in 0..10 {
        let (_, folder) =
            api.send(Method::POST, "/api/folders", Some(&key), &json!({"name": number.to_string()})).await;
        let path = format!("/api/folders/{}", folder["id"].as_str().unwrap());
        // Pages of launches move out of it when it is deleted.
        let own = json!({"slug": format!("page-{}", number * 4), "title": "T", "html": "H", "folderId": folder["id"]});
        let (status, page) = api.send(Method::POST, "/api/pages", Some(&key), &own).await;
        assert_eq!(status, StatusCode::CREATED, "{page}");
        folders.push(path);
    }
    let mut writing = JoinSet::new();
    for number in 0..50 {
        let name = format!("name-{}", number / 8);
        let launched = json!({"subdomain": name, "pages": [page("index"), page(&format!("page-{number}"))]});
        let domain = json!({"domain": format!("www{number}.example.com"), "subdomainId": first});
        let (method, path, body) = match number % 5 {
            0 => (Method::POST, "/api/launch", launched),
            1 => (Method::POST, "/api/account/subdomains", json!({"name": name})),
            2 => (Method::POST, "/api/account/domains", domain),
            3 => (Method::DELETE, folders[number / 5].as_str(), Value::Null),
            _ => (Method::PUT, "/api/account/subdomain", json!({"subdomain": name})),
        };
        let (api, key, path) = (Arc::clone(&api), key.clone(), path.to_owned());
        writing.spawn(async move { api.send(method, &path, Some(&key), &body).await });
    }
    for (status, response) in writing.join_all().await {
        let expected = [200, 201, 409, 429].contains(&status.as_u16());
        assert!(expected, "{status} {response}");
    }
    let host = get(&api, &key, "/api/account/subdomain").await["url"].as_str().unwrap().to_owned();
    let sites = get(&api, &key, "/api/analytics/sites").await;
    let counted = sites["sites"][0]["domain"].as_str().unwrap();
    assert!(host.contains(&format!("//{counted}")), "{host} {sites}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_ends_in_the_middle_leaves_nothing_behind() {
    let api = Arc::new(Api::start(&[]).await);
    let key = api.trial().await;
    launch(&api, &key, &json!({"pages": [page("index")], "analytics": false})).await;
    let before = Snapshot::take(&api).await;
    // The last write waits, after the rename and the pages.
    let holder = hold_inserts(&api, "analytics_sites").await;
    let (sender, sent) = (Arc::clone(&api), key.clone());
    let launching = tokio::spawn(async move {
        let pages = json!([{"slug": "index", "title": "T", "html": "changed"}, page("new")]);
        launch(&sender, &sent, &json!({"subdomain": "my-site", "pages": pages})).await
    });
    api.until_lock_wait().await;
    launching.abort();
    assert!(launching.await.unwrap_err().is_cancelled());
    drop(holder);
    sandbox::test::until(async || before.check().await.is_ok()).await;
    let (status, _) = launch(&api, &key, &json!({"subdomain": "my-site", "pages": [page("index")]})).await;
    assert_eq!(status, StatusCode::CREATED, "nothing of it is in the way");
}
