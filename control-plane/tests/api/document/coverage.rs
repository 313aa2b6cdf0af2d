//! Every endpoint rejects callers without a key or scope. The lists of exceptions may only shrink.

use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use web::{Endpoint, endpoints_of};

use crate::harness::Api;

/// Endpoints that are public by design. This list may only shrink.
const OPEN: &[&str] =
    &["POST /api/trial", "GET /api/workflows", "GET /api/workflows/{id}", "GET /api/schema"];

/// The endpoints that the registry routes.
fn endpoints() -> Vec<Endpoint> {
    documented().into_iter().filter(|endpoint| endpoint.served_by.is_none()).collect()
}

fn documented() -> Vec<Endpoint> {
    endpoints_of(&control_plane::api::document())
}

/// The endpoint's path with a value for each parameter.
fn path_of(endpoint: &Endpoint) -> String {
    let closed_port = "00000000-0000-0000-0000-000000000000";
    let inner = ["{id}", "{entryId}", "{subId}", "{deliveryId}", "{runId}", "{versionId}"];
    inner.into_iter().fold(endpoint.path.clone(), |path, name| path.replace(name, closed_port))
}

#[tokio::test]
async fn every_endpoint_rejects_callers_without_a_key_or_without_its_scope() {
    let api = Api::start(&[]).await;
    let full = api.trial().await;
    let none = api.key_with(&full, ScopeSet::default()).await;
    let revoked = none.replace("st_live_", "st_trial_");
    let mut open = Vec::new();
    for endpoint in endpoints() {
        let name = format!("{} {}", endpoint.method, endpoint.path);
        let Some(scopes) = &endpoint.scopes else {
            open.push(name);
            continue;
        };
        let call = async |key: Option<&str>| {
            let method: Method = endpoint.method.parse().unwrap();
            let body = if method == Method::GET { Value::Null } else { json!({}) };
            api.send(method, &path_of(&endpoint), key, &body).await
        };
        for key in [None, Some("garbage"), Some(revoked.as_str())] {
            let (status, problem) = call(key).await;
            assert_eq!(
                (status, &problem["code"]),
                (StatusCode::UNAUTHORIZED, &json!("unauthenticated")),
                "{name}: {problem}"
            );
        }
        let (status, problem) = call(Some(&none)).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::FORBIDDEN, &json!("insufficient_scope")),
            "{name}: {problem}"
        );
        assert_eq!(problem["requiredScope"], scopes[0], "{name}");
        assert_eq!(problem["_meta"]["plan"], "free", "{name}: an authenticated problem carries _meta");
    }
    assert_eq!(open, OPEN, "public endpoints");
}

/// Endpoints for which no single scope is enough, because they hand over the whole account. This list may only shrink.
const NEEDS_ALL_SCOPES: &[&str] = &["POST /api/account/claim-link"];

#[tokio::test]
async fn a_key_with_only_the_endpoints_scope_is_authorized() {
    let api = Api::start(&[]).await;
    let full = api.trial().await;
    for endpoint in endpoints() {
        let Some(scopes) = endpoint.scopes.as_deref() else { continue };
        let restricted =
            api.key_with(&full, ScopeSet::parse(scopes.iter().map(String::as_str)).unwrap()).await;
        let method: Method = endpoint.method.parse().unwrap();
        let body = if method == Method::GET { Value::Null } else { json!({}) };
        let (status, response) = api.send(method, &path_of(&endpoint), Some(&restricted), &body).await;
        if NEEDS_ALL_SCOPES.contains(&format!("{} {}", endpoint.method, endpoint.path).as_str()) {
            assert_eq!((status, &response["code"]), (StatusCode::FORBIDDEN, &json!("insufficient_scope")));
            continue;
        }
        let rejected = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
        assert!(!rejected.contains(&status), "{} {}: {response}", endpoint.method, endpoint.path);
        assert!(
            !status.is_server_error() || endpoint.tag == "analytics",
            "{} {}: {response}",
            endpoint.method,
            endpoint.path
        );
    }
}

fn name_of(endpoint: &Endpoint) -> String {
    format!("{} {}", endpoint.method, endpoint.path)
}

#[test]
fn the_document_lists_every_specified_endpoint() {
    let listed: Vec<Value> = serde_json::from_str(include_str!("../endpoints.json")).unwrap();
    let documented: Vec<String> = documented().iter().map(name_of).collect();
    let names = listed
        .iter()
        .map(|one| format!("{} {}", one["method"].as_str().unwrap(), one["path"].as_str().unwrap()));
    let missing: Vec<String> = names.filter(|name| !documented.contains(name)).collect();
    let allowed: Vec<&str> = include_str!("../not_yet.txt").lines().collect();
    assert_eq!(missing, allowed, "not_yet.txt must list exactly the missing endpoints");
}

#[test]
fn the_list_of_endpoints_that_the_registry_does_not_route_is_exact() {
    let mut elsewhere: Vec<String> =
        documented().iter().filter(|endpoint| endpoint.served_by.is_some()).map(name_of).collect();
    elsewhere.sort();
    let mut listed: Vec<&str> = include_str!("../served_elsewhere.txt").lines().collect();
    listed.sort_unstable();
    assert_eq!(elsewhere, listed);
}

#[test]
fn endpoints_outside_the_specification_are_marked_as_extensions() {
    let listed: Vec<Value> = serde_json::from_str(include_str!("../endpoints.json")).unwrap();
    let is_listed = |one: &Endpoint| {
        listed
            .iter()
            .any(|other| (&other["method"], &other["path"]) == (&json!(one.method), &json!(one.path)))
    };
    let wrong: Vec<Endpoint> =
        documented().into_iter().filter(|one| one.is_extension == is_listed(one)).collect();
    assert_eq!(wrong, [], "exactly these must be marked with `.extension()`");
}

#[test]
fn operation_ids_are_plain_and_unique() {
    let mut ids: Vec<String> = documented().into_iter().map(|one| one.operation_id).collect();
    let count = ids.len();
    assert!(ids.iter().all(
        |id| id.split('.').count() == 2 && id.chars().all(|c| c.is_ascii_lowercase() || "._".contains(c))
    ));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "two operations share an id");
}
