//! Custom domains: reserved for larger plans, one subdomain each, counted exactly.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

const DOMAINS: &str = "/api/account/domains";

#[tokio::test]
async fn the_free_plan_rejects_custom_domains() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (status, problem) =
        api.send(Method::POST, DOMAINS, Some(&key), &json!({"domain": "www.example.com"})).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("plan_restricted")));
    assert_eq!(problem["upgradeUrl"], "/api/account/upgrade");
}

#[tokio::test]
async fn a_domain_is_added_repointed_and_removed() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let call =
        async |method: Method, path: &str, body: Value| api.send(method, path, Some(&key), &body).await;
    let (_, second) = call(Method::POST, "/api/account/subdomains", json!({"name": "second-one"})).await;
    let (status, created) = call(Method::POST, DOMAINS, json!({"domain": "WWW.Example.com."})).await;
    assert_eq!((status, &created["domain"]), (StatusCode::CREATED, &json!("www.example.com")), "{created}");
    assert_eq!(
        (&created["status"], &created["dnsStatus"], &created["sslStatus"]),
        (&json!("pending"), &json!("pending"), &json!("pending"))
    );
    let (_, first) = call(Method::GET, "/api/account/subdomain", Value::Null).await;
    assert_eq!(created["subdomainId"], first["id"], "the first subdomain by default");
    assert_eq!(created["records"][0]["type"], "CNAME");
    assert!(
        created["records"][0]["value"]
            .as_str()
            .unwrap()
            .starts_with(created["subdomainName"].as_str().unwrap())
    );

    let (status, problem) = call(Method::POST, DOMAINS, json!({"domain": "www.example.com"})).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    let path = format!("{DOMAINS}/{}", created["id"].as_str().unwrap());
    let (_, moved) = call(Method::PATCH, &path, json!({"subdomainId": second["id"]})).await;
    assert_eq!((&moved["subdomainId"], &moved["subdomainName"]), (&second["id"], &json!("second-one")));
    assert_eq!(call(Method::GET, &path, Value::Null).await.1["subdomainName"], "second-one");

    let used =
        async || call(Method::GET, "/api/account/usage", Value::Null).await.1["usage"]["domains"].clone();
    assert_eq!(used().await, json!({"used": 1, "limit": 5}), "a rejected domain is not counted");
    assert_eq!(call(Method::DELETE, &path, Value::Null).await.0, StatusCode::OK);
    assert_eq!(used().await, json!({"used": 0, "limit": 5}));
    assert_eq!(call(Method::GET, &path, Value::Null).await.0, StatusCode::NOT_FOUND);
    assert_eq!(call(Method::DELETE, &path, Value::Null).await.0, StatusCode::NOT_FOUND);
    let (status, _) = call(Method::POST, DOMAINS, json!({"domain": "www.example.com"})).await;
    assert_eq!(status, StatusCode::CREATED);
}

#[tokio::test]
async fn two_accounts_may_add_a_domain_until_one_verifies_it() {
    let api = Api::start(&[]).await;
    for _ in 0..2 {
        let (key, _) = api.trial_on(Plan::Pro).await;
        let body = json!({"domain": "www.example.com"});
        assert_eq!(api.send(Method::POST, DOMAINS, Some(&key), &body).await.0, StatusCode::CREATED);
    }
}

#[tokio::test]
async fn own_hosts_and_invalid_hosts_are_rejected() {
    let api = Api::start(&["http.sites_domain=sites.test"]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    for domain in [
        "sites.test",
        "shop.sites.test",
        "localhost",
        "10.0.0.1",
        "[::1]",
        "https://a.example",
        "a.example:80",
        "*.a.example",
        "a",
    ] {
        let (status, problem) = api.send(Method::POST, DOMAINS, Some(&key), &json!({"domain": domain})).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!("domain")),
            "{domain}"
        );
    }
}
