//! The last key of an unclaimed trial: without it the trial's data can be reached only by claiming it.

use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

/// Returns the ids of the account's keys, oldest first.
async fn ids(api: &Api, key: &str) -> Vec<String> {
    let (_, list) = api.send(Method::GET, "/api/keys", Some(key), &Value::Null).await;
    let ids = list["keys"].as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[tokio::test]
async fn the_last_key_of_a_trial_is_revoked_only_by_force() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    // Its descendants would be revoked with it, so they don't count.
    api.send(Method::POST, "/api/keys", Some(&trial), &json!({"label": "child"})).await;
    let path = format!("/api/keys/{}", ids(&api, &trial).await[0]);
    for path in [path.clone(), format!("{path}?force=false")] {
        let (status, problem) = api.send(Method::DELETE, &path, Some(&trial), &Value::Null).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
        assert!(problem["hint"].as_str().unwrap().contains("?force=true"), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("those made with it"), "{problem}");
    }
    assert_eq!(ids(&api, &trial).await.len(), 2, "nothing was revoked");
    let (status, revoked) =
        api.send(Method::DELETE, &format!("{path}?force=true"), Some(&trial), &Value::Null).await;
    assert_eq!((status, &revoked["revoked"]), (StatusCode::OK, &json!(2)), "{revoked}");
    assert_eq!(
        api.send(Method::GET, "/api/account", Some(&trial), &Value::Null).await.0,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_key_that_has_expired_does_not_count_as_another() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let account_id = api.account_of(&trial).await;
    let past = service::Clock::system().now() - chrono::TimeDelta::minutes(1);
    api.insert_key(account_id, ScopeSet::FULL, Restrictions::default(), Some(past)).await;
    let path = format!("/api/keys/{}", ids(&api, &trial).await[0]);
    assert_eq!(api.send(Method::DELETE, &path, Some(&trial), &Value::Null).await.0, StatusCode::CONFLICT);
    // One that works does.
    api.insert_key(account_id, ScopeSet::FULL, Restrictions::default(), None).await;
    assert_eq!(api.send(Method::DELETE, &path, Some(&trial), &Value::Null).await.0, StatusCode::OK);
}

#[tokio::test]
async fn of_two_keys_revoked_at_once_one_remains() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let account_id = api.account_of(&trial).await;
    let (other_id, other) = api.insert_key(account_id, ScopeSet::FULL, Restrictions::default(), None).await;
    let trial_id = ids(&api, &trial).await[0].clone();
    let (own, others) = (format!("/api/keys/{trial_id}"), format!("/api/keys/{other_id}"));
    let ((first, _), (second, _)) = tokio::join!(
        api.send(Method::DELETE, &own, Some(&trial), &Value::Null),
        api.send(Method::DELETE, &others, Some(&other), &Value::Null),
    );
    let mut statuses = [first, second];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::OK, StatusCode::CONFLICT]);
}

#[tokio::test]
async fn the_last_key_of_a_claimed_account_is_revoked_at_once() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let account_id = api.account_of(&trial).await;
    let path = format!("/api/keys/{}", ids(&api, &trial).await[0]);
    let mut conn = store::acquire(&api.database.db).await.unwrap();
    let now = service::Clock::system().now();
    store::claims::update_claimed(&mut conn, account_id, now).await.unwrap();
    let (status, response) = api.send(Method::DELETE, &path, Some(&trial), &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{response}");
}

#[tokio::test]
async fn a_refusal_suggests_only_what_the_caller_may_do() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let path = format!("/api/keys/{}", ids(&api, &trial).await[0]);
    let (_, alone) = api.send(Method::DELETE, &path, Some(&trial), &Value::Null).await;
    assert!(!alone["detail"].as_str().unwrap().contains("those made with it"), "{alone}");
    assert!(alone["hint"].as_str().unwrap().contains("/rotate"), "{alone}");
    // Only the trial's own key may replace its own secret.
    let (_, child) = api.send(Method::POST, "/api/keys", Some(&trial), &json!({"label": "child"})).await;
    let (status, problem) = api.send(Method::DELETE, &path, child["key"].as_str(), &Value::Null).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    assert_eq!(problem["hint"], "revoke it with ?force=true", "{problem}");
    // And only with the scope for it.
    api.execute("update api_keys set scopes = '{keys:read,keys:delete}'").await.unwrap();
    let replica = api.replica(&[]);
    let (status, problem) =
        crate::harness::send_to(&replica, Method::DELETE, &path, Some(&trial), &Value::Null).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    assert_eq!(problem["hint"], "revoke it with ?force=true", "{problem}");
}

#[tokio::test]
async fn a_revocation_during_the_purge_does_not_stop_it() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let account_id = api.account_of(&trial).await;
    let path = format!("/api/keys/{}", ids(&api, &trial).await[0]);
    let mut purge = api.begin().await;
    let later = service::Clock::system().now() + chrono::TimeDelta::days(2);
    assert!(store::purges::lock_expired(&mut purge, account_id, later).await.unwrap());
    let revocation = api.send(Method::DELETE, &path, Some(&trial), &Value::Null);
    let ((status, problem), ()) = tokio::join!(revocation, async {
        api.until_lock_wait().await;
        store::purges::delete_account(&mut purge, account_id, later).await.unwrap();
        store::commit(purge).await.unwrap();
    });
    assert_eq!(status, StatusCode::NOT_FOUND, "{problem}");
}

/// The trial's own key and one restricted to a folder, with that folder's path and the account.
async fn with_folder_key(api: &Api) -> (String, String, String, uuid::Uuid) {
    let trial = api.trial().await;
    let account_id = api.account_of(&trial).await;
    let (_, folder) = api.send(Method::POST, "/api/folders", Some(&trial), &json!({"name": "F"})).await;
    let folder_id = folder["id"].as_str().unwrap();
    let restrictions = Restrictions { folder_id: folder_id.parse().ok(), ..Restrictions::default() };
    let (_, restricted) = api.insert_key(account_id, ScopeSet::FULL, restrictions, None).await;
    (trial, restricted, format!("/api/folders/{folder_id}"), account_id)
}

#[tokio::test]
async fn a_last_key_of_a_folder_does_not_delete_the_folder() {
    let api = Api::start(&[]).await;
    let (trial, restricted, folder, _) = with_folder_key(&api).await;
    let own = format!("/api/keys/{}", ids(&api, &trial).await[0]);
    assert_eq!(api.send(Method::DELETE, &own, Some(&trial), &Value::Null).await.0, StatusCode::OK);
    let (status, problem) = api.send(Method::DELETE, &folder, Some(&restricted), &Value::Null).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    assert_eq!(api.send(Method::GET, &folder, Some(&restricted), &Value::Null).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_key_that_is_revoked_meanwhile_does_not_delete_the_folder_of_the_last_key() {
    let api = Api::start(&[]).await;
    let (trial, restricted, folder, account_id) = with_folder_key(&api).await;
    let own = ids(&api, &trial).await[0].parse().unwrap();
    let mut revocation = api.begin().await;
    store::keys::lock_keys(&mut revocation, account_id).await.unwrap();
    let now = service::Clock::system().now();
    store::keys::revoke_keys(&mut revocation, account_id, &[own], now).await.unwrap();
    let deletion = api.send(Method::DELETE, &folder, Some(&trial), &Value::Null);
    let ((status, problem), ()) = tokio::join!(deletion, async {
        api.until_lock_wait().await;
        store::commit(revocation).await.unwrap();
    });
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{problem}");
    assert_eq!(api.send(Method::GET, &folder, Some(&restricted), &Value::Null).await.0, StatusCode::OK);
}
