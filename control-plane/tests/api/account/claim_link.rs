//! New claim links: for the trial's own key alone, until the trial is claimed.

use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::Api;

const PATH: &str = "/api/account/claim-link";

/// Returns the account that a claim link leads to.
async fn trial_of(api: &Api, link: &Value) -> Option<uuid::Uuid> {
    let token = link["claimUrl"].as_str().unwrap().rsplit_once('/').unwrap().1;
    let mut conn = store::acquire(&api.database.db).await.unwrap();
    let hash = Sha256::digest(token.as_bytes()).into();
    store::claims::find_trial(&mut conn, &hash).await.unwrap().map(|trial| trial.account_id)
}

#[tokio::test]
async fn a_new_link_replaces_the_old_one_and_keeps_the_deadline() {
    let api = Api::start(&[]).await;
    let (_, trial) = api.send(Method::POST, "/api/trial", None, &Value::Null).await;
    let key = trial["key"].as_str().unwrap();
    let account_id = api.account_of(key).await;
    assert_eq!(trial_of(&api, &trial).await, Some(account_id));

    let (status, link) = api.send(Method::POST, PATH, Some(key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{link}");
    let (_, account) = api.send(Method::GET, "/api/account", Some(key), &Value::Null).await;
    assert_eq!(link["claimDeadline"], account["claimDeadline"]);
    assert_eq!(trial_of(&api, &link).await, Some(account_id));
    assert_eq!(trial_of(&api, &trial).await, None, "the old link is void");

    // The trial's key stays its own when its secret is replaced.
    let (_, keys) = api.send(Method::GET, "/api/keys", Some(key), &Value::Null).await;
    let rotate = format!("/api/keys/{}/rotate", keys["keys"][0]["id"].as_str().unwrap());
    let (_, rotated) = api.send(Method::POST, &rotate, Some(key), &Value::Null).await;
    let (status, _) = api.send(Method::POST, PATH, rotated["key"].as_str(), &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(api.send(Method::POST, PATH, Some(key), &Value::Null).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn no_other_key_makes_a_link() {
    let api = Api::start(&[]).await;
    let (_, trial) = api.send(Method::POST, "/api/trial", None, &Value::Null).await;
    let own = trial["key"].as_str().unwrap();
    let (_, folder) = api.send(Method::POST, "/api/folders", Some(own), &json!({"name": "F"})).await;
    for body in [
        json!({"label": "child of the same width"}),
        json!({"label": "scope", "scopes": ["account:update"]}),
        json!({"label": "almost all", "scopes": ["account:*", "keys:*", "pages:*"]}),
        json!({"label": "folder", "folderId": folder["id"]}),
        json!({"label": "ids", "resourceIds": {"folders": [folder["id"]]}}),
    ] {
        let (status, child) = api.send(Method::POST, "/api/keys", Some(own), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{child}");
        let (status, problem) = api.send(Method::POST, PATH, child["key"].as_str(), &Value::Null).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{body}: {problem}");
    }
    let read = api.key_with(own, ScopeSet::parse(["account:read"]).unwrap()).await;
    assert_eq!(api.send(Method::POST, PATH, Some(&read), &Value::Null).await.0, StatusCode::FORBIDDEN);
    assert_eq!(api.send(Method::POST, PATH, None, &Value::Null).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(trial_of(&api, &trial).await, Some(api.account_of(own).await), "the link has not changed");
}

#[tokio::test]
async fn a_key_of_the_same_width_gets_no_link_by_rotating_the_trials_own() {
    let api = Api::start(&[]).await;
    let (_, trial) = api.send(Method::POST, "/api/trial", None, &Value::Null).await;
    let own = trial["key"].as_str().unwrap();
    let (_, child) = api.send(Method::POST, "/api/keys", Some(own), &json!({"label": "child"})).await;
    let child_key = child["key"].as_str();
    let (_, keys) = api.send(Method::GET, "/api/keys", child_key, &Value::Null).await;
    let rotate = |id: &Value| format!("/api/keys/{}/rotate", id.as_str().unwrap());
    let rotate_own = rotate(&keys["keys"][0]["id"]);
    let (status, problem) = api.send(Method::POST, &rotate_own, child_key, &Value::Null).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::FORBIDDEN, &json!("insufficient_scope")),
        "{problem}"
    );
    assert_eq!(api.send(Method::GET, "/api/account", Some(own), &Value::Null).await.0, StatusCode::OK);
    // A key that was made by another one gives no link, so it may be rotated.
    let (status, sibling) =
        api.send(Method::POST, "/api/keys", Some(own), &json!({"label": "sibling"})).await;
    assert_eq!(status, StatusCode::CREATED);
    let (status, _) = api.send(Method::POST, &rotate(&sibling["id"]), child_key, &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    // There is nothing to give away once it is claimed.
    let mut conn = store::acquire(&api.database.db).await.unwrap();
    let (account_id, now) = (api.account_of(own).await, service::Clock::system().now());
    store::claims::update_claimed(&mut conn, account_id, now).await.unwrap();
    let (status, rotated) = api.send(Method::POST, &rotate_own, child_key, &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{rotated}");
}

#[tokio::test]
async fn of_two_links_made_at_once_one_works() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let make = || api.send(Method::POST, PATH, Some(&key), &Value::Null);
    let ((first, one), (second, other)) = tokio::join!(make(), make());
    assert_eq!([first, second], [StatusCode::OK; 2], "{one} {other}");
    let works = [trial_of(&api, &one).await.is_some(), trial_of(&api, &other).await.is_some()];
    assert!(works[0] != works[1], "{works:?}");
}

#[tokio::test]
async fn only_a_key_without_every_scope_is_told_to_get_it() {
    let api = Api::start(&[]).await;
    let own = api.trial().await;
    for (body, required) in [
        (json!({"label": "child"}), Value::Null),
        (json!({"label": "narrow", "scopes": ["account:update"]}), json!("*")),
    ] {
        let (_, child) = api.send(Method::POST, "/api/keys", Some(&own), &body).await;
        let (status, problem) = api.send(Method::POST, PATH, child["key"].as_str(), &Value::Null).await;
        assert_eq!((status, &problem["requiredScope"]), (StatusCode::FORBIDDEN, &required), "{problem}");
    }
}

#[tokio::test]
async fn a_claimed_account_needs_no_link() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let account_id = api.account_of(&key).await;
    let mut conn = store::acquire(&api.database.db).await.unwrap();
    // The key is cached as that of an unclaimed trial.
    let (_, folder) = api.send(Method::POST, "/api/folders", Some(&key), &json!({"name": "F"})).await;
    let now = service::Clock::system().now();
    store::claims::update_claimed(&mut conn, account_id, now).await.unwrap();
    let mut keys = vec![key.clone()];
    for body in [
        json!({"label": "scope", "scopes": ["account:update"]}),
        json!({"label": "folder", "folderId": folder["id"]}),
        json!({"label": "ids", "resourceIds": {"folders": [folder["id"]]}}),
    ] {
        let (status, child) = api.send(Method::POST, "/api/keys", Some(&key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{child}");
        keys.push(child["key"].as_str().unwrap().to_owned());
    }
    for key in &keys {
        let (status, problem) = api.send(Method::POST, PATH, Some(key), &Value::Null).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    }
    let cookie = api.sign_in(account_id).await;
    let request =
        http::Request::post(PATH).header("cookie", cookie).header("origin", "http://localhost:8080");
    let (status, _, problem) = api.exchange(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
}

#[tokio::test]
async fn a_link_is_refused_if_a_claim_is_under_way() {
    let api = Api::start(&[]).await;
    let (_, trial) = api.send(Method::POST, "/api/trial", None, &Value::Null).await;
    let key = trial["key"].as_str().unwrap();
    let account_id = api.account_of(key).await;
    let mut claim = api.begin().await;
    store::keys::lock_keys(&mut claim, account_id).await.unwrap();
    let now = service::Clock::system().now();
    store::claims::update_claimed(&mut claim, account_id, now).await.unwrap();
    let link = api.send(Method::POST, PATH, Some(key), &Value::Null);
    let ((status, problem), ()) = tokio::join!(link, async {
        api.until_lock_wait().await;
        store::commit(claim).await.unwrap();
    });
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    assert_eq!(trial_of(&api, &trial).await, None);
}
