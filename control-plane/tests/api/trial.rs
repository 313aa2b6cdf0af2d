//! Trials: a key for nothing, but not without end.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

#[tokio::test]
async fn a_trials_key_works_at_once_and_shows_itself_only_once() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (status, account) = api.send(Method::GET, "/api/account", Some(&key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!((&account["plan"], &account["_meta"]["claimed"]), (&json!("free"), &json!(false)));
    assert_eq!(account["_meta"]["usage"]["subdomains"], json!({"used": 1, "limit": 1}));
    assert!(!account.to_string().contains(&key));
}

#[tokio::test]
async fn one_address_makes_so_many_trials_an_hour_and_is_told_when_to_come_back() {
    let api = Api::start(&["trial.per_hour=3"]).await;
    for _ in 0..3 {
        api.trial().await;
    }
    let (status, problem) = api.send(Method::POST, "/api/trial", None, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited")));
}

#[tokio::test]
async fn an_unknown_path_and_a_wrong_method_are_told_as_problems() {
    let api = Api::start(&[]).await;
    let (status, problem) = api.send(Method::GET, "/api/nothing", None, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    let (status, problem) = api.send(Method::DELETE, "/api/trial", None, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::METHOD_NOT_ALLOWED, &json!("method_not_allowed")));
    assert!(problem["requestId"].as_str().is_some_and(|id| id.len() == 32));
}
