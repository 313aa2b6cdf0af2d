//! A rotation of the pepper: no key that is used stops working, and the operator sees which keys are not used.

use axum::Router;
use chrono::TimeDelta;
use domain::peppers::Peppers;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use service::Clock;
use store::key_peppers::{KeyOnPepper, PepperUse, list_keys_on_other_peppers, list_pepper_uses};
use uuid::Uuid;

use crate::harness::{Api, send_to};

/// The harness configures it.
const OLD: &str = "a-pepper-for-tests";
const NEW: &str = "3f6d1c0a9b8e47d25a6c7e8f90123456";
/// Uses are recorded once a minute.
const BETWEEN_USES: TimeDelta = TimeDelta::minutes(2);

fn setting(peppers: &[&str]) -> String {
    format!("secrets.key_pepper={}", peppers.join(","))
}

fn id(pepper: &str) -> String {
    Peppers::parse(pepper).unwrap().first_id().to_owned()
}

async fn status(router: &Router, key: &str) -> StatusCode {
    send_to(router, Method::GET, "/api/account", Some(key), &Value::Null).await.0
}

struct Rotation {
    api: Api,
    clock: Clock,
    /// Made and used under the old pepper.
    key: String,
}

impl Rotation {
    async fn new() -> Self {
        let clock = Clock::manual(Clock::system().now());
        let api = Api::start_with_clock(&[], clock.clone()).await;
        let key = api.trial().await;
        api.account_of(&key).await;
        Self { api, clock, key }
    }

    /// A replica with these peppers, to which a use is due to be recorded.
    fn replica(&self, peppers: &[&str]) -> Router {
        self.clock.advance(BETWEEN_USES);
        self.api.replica(&[&setting(peppers)])
    }

    async fn uses(&self) -> Vec<(Option<String>, i64)> {
        let mut tx = self.api.begin().await;
        let uses = list_pepper_uses(&mut tx, self.clock.now()).await.unwrap();
        uses.into_iter().map(|PepperUse { pepper_id, keys, .. }| (pepper_id, keys)).collect()
    }

    async fn keys_not_under(&self, pepper: &str) -> Vec<KeyOnPepper> {
        let (mut tx, now) = (self.api.begin().await, self.clock.now());
        list_keys_on_other_peppers(&mut tx, &id(pepper), Uuid::nil(), 10, now).await.unwrap()
    }
}

#[tokio::test]
async fn a_key_of_the_old_pepper_moves_to_the_new_one_at_its_use() {
    let rotation = Rotation::new().await;
    let (_, unused) = {
        let account_id = rotation.api.account_of(&rotation.key).await;
        rotation.api.insert_key(account_id, ScopeSet::FULL, Restrictions::default(), None).await
    };
    assert_eq!(rotation.uses().await, [(Some(id(OLD)), 2)]);

    let rotating = rotation.replica(&[NEW, OLD]);
    assert_eq!(status(&rotating, &rotation.key).await, StatusCode::OK);
    assert_eq!(rotation.keys_not_under(NEW).await.len(), 1);
    assert_eq!(rotation.keys_not_under(NEW).await[0].pepper_id, Some(id(OLD)));

    let rotated = rotation.replica(&[NEW]);
    assert_eq!(status(&rotated, &rotation.key).await, StatusCode::OK, "it was used meanwhile");
    assert_eq!(status(&rotated, &unused).await, StatusCode::UNAUTHORIZED, "it was not");
    let back = rotation.replica(&[NEW, OLD]);
    assert_eq!(status(&back, &unused).await, StatusCode::OK, "until the old pepper is back");
    assert_eq!(rotation.keys_not_under(NEW).await, []);
}

#[tokio::test]
async fn a_key_of_a_release_without_pepper_ids_is_recorded_at_its_use() {
    let rotation = Rotation::new().await;
    rotation.api.execute("update api_keys set pepper_id = null").await.unwrap();
    assert_eq!(rotation.uses().await, [(None, 1)]);
    assert_eq!(status(&rotation.replica(&[OLD]), &rotation.key).await, StatusCode::OK);
    assert_eq!(rotation.uses().await, [(Some(id(OLD)), 1)]);
    assert_eq!(rotation.keys_not_under(OLD).await, []);
}

/// The documented order: the new pepper is first appended everywhere, then moved to the front.
#[tokio::test]
async fn replicas_with_both_peppers_in_either_order_accept_all_keys() {
    let rotation = Rotation::new().await;
    let (appended, moved) = (rotation.replica(&[OLD, NEW]), rotation.replica(&[NEW, OLD]));
    for round in 0..3 {
        for router in [&moved, &appended] {
            rotation.clock.advance(BETWEEN_USES);
            assert_eq!(status(router, &rotation.key).await, StatusCode::OK, "round {round}");
            // Creating a key checks the caller's stored secret, which the other replica may just have moved.
            let body = json!({"label": "K"});
            let (status, created) =
                send_to(router, Method::POST, "/api/keys", Some(&rotation.key), &body).await;
            assert_eq!(status, StatusCode::CREATED, "round {round}: {created}");
            let other = if std::ptr::eq(router, &moved) { &appended } else { &moved };
            let new_key = created["key"].as_str().unwrap();
            assert_eq!(self::status(other, new_key).await, StatusCode::OK, "round {round}");
        }
    }
    let unaware = rotation.replica(&[OLD]);
    let moved = rotation.replica(&[NEW, OLD]);
    assert_eq!(status(&moved, &rotation.key).await, StatusCode::OK);
    let expected = StatusCode::UNAUTHORIZED;
    assert_eq!(status(&unaware, &rotation.key).await, expected, "it must know the new pepper first");
}

#[tokio::test]
async fn a_revoked_or_rotated_key_stops_at_once_although_it_is_stored_under_the_old_pepper() {
    let rotation = Rotation::new().await;
    let api = &rotation.api;
    let create = async |label: &str| {
        let body = json!({"label": label});
        let (_, created) = api.send(Method::POST, "/api/keys", Some(&rotation.key), &body).await;
        let key = created["key"].as_str().unwrap().to_owned();
        api.account_of(&key).await;
        (created["id"].as_str().unwrap().to_owned(), key)
    };
    let (revoked, rotated) = (create("A").await, create("B").await);
    // Their last use is recent, so they stay under the old pepper.
    let rotating = api.replica(&[&setting(&[NEW, OLD]), "keys.cache_ttl=1h"]);
    for (_, key) in [&revoked, &rotated] {
        assert_eq!(status(&rotating, key).await, StatusCode::OK);
    }
    assert_eq!(rotation.keys_not_under(NEW).await.len(), 3);
    let path = format!("/api/keys/{}", revoked.0);
    let call =
        async |method, path: &str| send_to(&rotating, method, path, Some(&rotation.key), &Value::Null).await;
    assert_eq!(call(Method::DELETE, &path).await.0, StatusCode::OK);
    let (_, fresh) = call(Method::POST, &format!("/api/keys/{}/rotate", rotated.0)).await;
    for (_, key) in [&revoked, &rotated] {
        assert_eq!(status(&rotating, key).await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(status(&rotating, fresh["key"].as_str().unwrap()).await, StatusCode::OK);
    let left: Vec<_> = rotation.keys_not_under(NEW).await.into_iter().map(|key| key.shown_prefix).collect();
    assert_eq!(left.len(), 1, "the caller's key only: {left:?}");
}

/// Two replicas find the key under the old pepper at the same time; one of them moves it.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_uses_on_several_replicas_all_succeed() {
    let rotation = Rotation::new().await;
    let replicas: Vec<_> = (0..4).map(|_| rotation.replica(&[NEW, OLD])).collect();
    let calls = (0..40).map(|call| {
        let (router, key) = (replicas[call % replicas.len()].clone(), rotation.key.clone());
        tokio::spawn(async move { status(&router, &key).await })
    });
    for call in futures::future::join_all(calls).await {
        assert_eq!(call.unwrap(), StatusCode::OK);
    }
    assert_eq!(rotation.keys_not_under(NEW).await, []);
}

#[tokio::test]
async fn an_invalid_list_of_peppers_is_refused_with_the_position_of_the_entry() {
    let api = Api::start(&[]).await;
    let error = api.refused(&[&setting(&[NEW, "short"])]);
    assert!(error.contains("entry 2 of secrets.key_pepper has fewer than 16 characters"), "{error}");
    assert!(!error.contains(NEW) && !error.contains("short"), "{error}");
    let error = api.refused(&[&setting(&[OLD, "a part behind a comma"])]);
    assert!(error.contains("secrets.key_pepper contains a comma, and entries 1 and 2 are not of"), "{error}");
    assert!(!error.contains(OLD), "{error}");
}
