//! Subdomains: unique names, rename limits, and reserved old names.

use std::sync::Arc;

use axum::body::Body;
use domain::plans::Plan;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

const LIST: &str = "/api/account/subdomains";
const FIRST: &str = "/api/account/subdomain";

async fn create(api: &Api, key: &str, name: &str) -> (StatusCode, Value) {
    api.send(Method::POST, LIST, Some(key), &json!({"name": name})).await
}

async fn rename(api: &Api, key: &str, name: &str) -> (StatusCode, Value) {
    api.send(Method::PUT, FIRST, Some(key), &json!({"subdomain": name})).await
}

#[tokio::test]
async fn subdomains_are_listed_in_order_with_their_pages() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let (status, second) = create(&api, &key, "second-one").await;
    assert_eq!(status, StatusCode::CREATED, "{second}");
    assert_eq!(second["url"], "http://second-one.localhost:8080");
    for (slug, on) in [("index", Value::Null), ("a1", Value::Null), ("index", second["id"].clone())] {
        let page = json!({"slug": slug, "title": "T", "html": "x", "subdomainId": on});
        let (status, page) = api.send(Method::POST, "/api/pages", Some(&key), &page).await;
        assert_eq!(status, StatusCode::CREATED, "{page}");
    }
    let (_, listed) = api.send(Method::GET, LIST, Some(&key), &Value::Null).await;
    let counts: Vec<i64> = listed["subdomains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["pageCount"].as_i64().unwrap())
        .collect();
    assert_eq!(counts, [2, 1]);
    let (_, first) = api.send(Method::GET, FIRST, Some(&key), &Value::Null).await;
    assert_eq!(first["subdomain"], listed["subdomains"][0]["name"]);
}

#[tokio::test]
async fn reserved_and_confusable_names_are_rejected() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    for name in [
        "www",
        "api",
        "admin",
        "mail",
        "xn--80ak6aa92e",
        "Abc",
        "a_b",
        "-ab",
        "ab-",
        "gооgle",
        "a.b",
        "ab",
        "",
    ] {
        for (status, problem) in [create(&api, &key, name).await, rename(&api, &key, name).await] {
            let answered = (status, problem["code"].as_str().unwrap());
            assert_eq!(answered, (StatusCode::BAD_REQUEST, "validation_failed"), "{name}: {problem}");
        }
    }
}

#[tokio::test]
async fn the_number_of_subdomains_depends_on_the_plan() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (status, problem) = create(&api, &key, "second-one").await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")));
    assert_eq!((&problem["limit"], &problem["used"]), (&json!(1), &json!(1)));
    api.set_plan(api.account_of(&key).await, Plan::Pro).await;
    assert_eq!(create(&api, &key, "second-one").await.0, StatusCode::CREATED, "a rejected name stays free");
}

#[tokio::test]
async fn deprecated_routes_name_their_successors() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for (method, body) in
        [(Method::GET, ""), (Method::PUT, r#"{"subdomain": "renamed-one"}"#), (Method::PUT, "{}")]
    {
        let request = Request::builder()
            .method(method)
            .uri(FIRST)
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json");
        let response = api.raw_response(request.body(Body::from(body)).unwrap()).await;
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert!(header("deprecation").starts_with('@'), "a date in the format of RFC 9745");
        assert!(header("sunset").ends_with("GMT"));
        assert_eq!(header("link"), r#"</api/account/subdomains>; rel="successor-version""#);
    }
    let request = Request::get(LIST).header("authorization", format!("Bearer {key}")).body(Body::empty());
    let response = api.raw_response(request.unwrap()).await;
    assert!(!response.headers().contains_key("deprecation") && !response.headers().contains_key("sunset"));
}

#[tokio::test]
async fn an_old_name_stays_reserved_for_thirty_days() {
    let api = Api::start(&[]).await;
    let (own_key, _) = api.trial_on(Plan::Pro).await;
    let (other, _) = api.trial_on(Plan::Pro).await;
    let (_, first) = api.send(Method::GET, FIRST, Some(&own_key), &Value::Null).await;
    let (id, old) = (first["id"].clone(), first["subdomain"].as_str().unwrap().to_owned());
    let (status, renamed) = rename(&api, &own_key, "renamed-one").await;
    assert_eq!((status, &renamed["id"], &renamed["subdomain"]), (StatusCode::OK, &id, &json!("renamed-one")));
    let (_, account) = api.send(Method::GET, "/api/account", Some(&own_key), &Value::Null).await;
    assert_eq!(account["subdomain"], "renamed-one", "the change is visible immediately");
    for taken in [old.as_str(), "renamed-one"] {
        for (status, problem) in [create(&api, &other, taken).await, rename(&api, &other, taken).await] {
            assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{taken}");
        }
    }
    api.execute("update former_names set kept_until = kept_until - interval '29 days 23 hours'")
        .await
        .unwrap();
    assert_eq!(create(&api, &other, &old).await.0, StatusCode::CONFLICT);
    assert_eq!(
        rename(&api, &own_key, &old).await.0,
        StatusCode::OK,
        "the previous account can take its name back"
    );
    assert_eq!(
        create(&api, &other, "renamed-one").await.0,
        StatusCode::CONFLICT,
        "and has given up the other"
    );
    api.execute("update former_names set kept_until = kept_until - interval '30 days'").await.unwrap();
    assert_eq!(
        create(&api, &other, "renamed-one").await.0,
        StatusCode::CREATED,
        "after that the name is free"
    );
}

#[tokio::test]
async fn a_subdomain_is_renamed_at_most_three_times_a_day() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for name in ["name-one", "name-two", "name-two", "name-one"] {
        assert_eq!(rename(&api, &key, name).await.0, StatusCode::OK, "{name}");
    }
    let request = Request::put(FIRST)
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .body(Body::from(r#"{"subdomain": "name-four"}"#));
    let response = api.raw_response(request.unwrap()).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((86_000..=86_401).contains(&wait), "{wait}");
    api.execute("update subdomains set renamed_at = array[now() - interval '25 hours', now(), now()]")
        .await
        .unwrap();
    assert_eq!(rename(&api, &key, "name-four").await.0, StatusCode::OK, "a day after the first");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_accounts_requesting_one_name_one_gets_it() {
    let api = Arc::new(Api::start(&["trial.max_per_hour=100", "trial.max_per_day=100"]).await);
    let mut keys = Vec::new();
    for _ in 0..20 {
        keys.push(api.trial_on(Plan::Pro).await.0);
    }
    let mut requests = tokio::task::JoinSet::new();
    for (at, key) in keys.into_iter().enumerate() {
        let api = Arc::clone(&api);
        requests.spawn(async move {
            // Some rename and some create, because names are in two tables.
            if at % 2 == 0 {
                create(&api, &key, "popular-one").await
            } else {
                rename(&api, &key, "popular-one").await
            }
        });
    }
    let responses = requests.join_all().await;
    let succeeded = responses.iter().filter(|(status, _)| status.is_success()).count();
    let rejected = responses.iter().filter(|(status, _)| *status == StatusCode::CONFLICT).count();
    assert_eq!((succeeded, rejected), (1, 19), "{responses:?}");
}
