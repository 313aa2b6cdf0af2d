//! The lifecycle of keys: creation, rotation under load, and revocation with descendants, on every replica.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use chrono::{DateTime, TimeDelta, Utc};
use domain::keys::{self, KeyKind};
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use sandbox::test::KillableRedis;
use serde_json::{Value, json};
use service::Clock;
use store::keys::NewKey;

use crate::harness::{Api, send_to};

/// How long another replica may accept a rotated or revoked key.
const MAX_PROPAGATION_DELAY: Duration = Duration::from_secs(1);

async fn create_key(api: &Api, key: &str, body: Value) -> (String, String) {
    let (status, response) = api.send(Method::POST, "/api/keys", Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{response}");
    (response["id"].as_str().unwrap().to_owned(), response["key"].as_str().unwrap().to_owned())
}

async fn status(router: &Router, key: &str) -> StatusCode {
    send_to(router, Method::GET, "/api/account", Some(key), &Value::Null).await.0
}

/// Start and end of a call, in ticks of a shared counter.
struct CallRecord {
    started: u64,
    ended: u64,
    status: StatusCode,
}

#[tokio::test(flavor = "multi_thread")]
async fn during_a_rotation_under_load_exactly_one_secret_works() {
    let api = Api::start(&[]).await;
    let (id, old) = create_key(&api, &api.trial().await, json!({"label": "K"})).await;
    let router = api.replica(&[]);
    assert_eq!(status(&router, &old).await, StatusCode::OK);
    let ticks = Arc::new(AtomicU64::new(0));
    let call = |key: String| {
        let (router, ticks) = (router.clone(), Arc::clone(&ticks));
        async move {
            let started = ticks.fetch_add(1, Ordering::SeqCst);
            let status = status(&router, &key).await;
            CallRecord { started, ended: ticks.fetch_add(1, Ordering::SeqCst), status }
        }
    };
    let mut calls = tokio::task::JoinSet::new();
    (0..1_000).for_each(|_| drop(calls.spawn(call(old.clone()))));
    let rotation = {
        let (router, ticks, old, path) =
            (router.clone(), Arc::clone(&ticks), old.clone(), format!("/api/keys/{id}/rotate"));
        tokio::spawn(async move {
            let started = ticks.fetch_add(1, Ordering::SeqCst);
            let (status, response) = send_to(&router, Method::POST, &path, Some(&old), &Value::Null).await;
            (CallRecord { started, ended: ticks.fetch_add(1, Ordering::SeqCst), status }, response)
        })
    };
    (0..1_000).for_each(|_| drop(calls.spawn(call(old.clone()))));
    let (rotation, response) = rotation.await.unwrap();
    assert_eq!(rotation.status, StatusCode::OK, "{response}");
    let new = response["key"].as_str().unwrap().to_owned();
    for _ in 0..100 {
        assert_eq!(call(new.clone()).await.status, StatusCode::OK, "after the response the new secret works");
        assert_eq!(
            call(old.clone()).await.status,
            StatusCode::UNAUTHORIZED,
            "after the response the old secret does not work"
        );
    }
    let calls = calls.join_all().await;
    let first_rejection = calls
        .iter()
        .filter(|call| call.status == StatusCode::UNAUTHORIZED)
        .map(|call| call.ended)
        .min()
        .unwrap_or(u64::MAX);
    for call in &calls {
        assert!([StatusCode::OK, StatusCode::UNAUTHORIZED].contains(&call.status), "{}", call.status);
        if call.ended < rotation.started {
            assert_eq!(call.status, StatusCode::OK, "before the request the old secret works");
        }
        if call.started > rotation.ended {
            assert_eq!(
                call.status,
                StatusCode::UNAUTHORIZED,
                "after the response the old secret does not work"
            );
        }
        if call.started > first_rejection {
            assert_eq!(call.status, StatusCode::UNAUTHORIZED, "once rejected, it never works again");
        }
    }
    let meanwhile =
        calls.iter().filter(|call| call.started < rotation.ended && call.ended > rotation.started).count();
    assert!(meanwhile > 0, "no call was in flight during the rotation");
}

/// Calls `router` with a rotated or revoked key until it is rejected and returns the delay. Fails if the key is
/// accepted after the maximum delay.
async fn rejected_in_time(router: &Router, key: &str, since: Instant) -> Duration {
    loop {
        let started = since.elapsed();
        match status(router, key).await {
            StatusCode::UNAUTHORIZED => return started,
            StatusCode::OK => assert!(started < MAX_PROPAGATION_DELAY, "still accepted after {started:?}"),
            other => panic!("{other}"),
        }
    }
}

async fn another_replica_follows(api: &Api, trial: &str) {
    let replica = api.replica(&[]);
    let (id, old) = create_key(api, trial, json!({"label": "K"})).await;
    assert_eq!(status(&replica, &old).await, StatusCode::OK, "the replica has cached the key");
    let rotate = format!("/api/keys/{id}/rotate");
    let (rotated, response) = api.send(Method::POST, &rotate, Some(trial), &Value::Null).await;
    let since = Instant::now();
    assert_eq!(rotated, StatusCode::OK, "{response}");
    let new = response["key"].as_str().unwrap();
    assert_eq!(status(&replica, new).await, StatusCode::OK, "the new secret works there immediately");
    rejected_in_time(&replica, &old, since).await;

    let revoke = format!("/api/keys/{id}");
    let (revoked, response) = api.send(Method::DELETE, &revoke, Some(trial), &Value::Null).await;
    let since = Instant::now();
    assert_eq!(revoked, StatusCode::OK, "{response}");
    rejected_in_time(&replica, new, since).await;
}

#[tokio::test]
async fn another_replica_rejects_rotated_and_revoked_keys_within_a_second() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    another_replica_follows(&api, &trial).await;
}

#[tokio::test]
async fn another_replica_rejects_them_within_a_second_without_redis() {
    let mut redis = KillableRedis::start().await;
    let api = Api::start(&[&format!("redis.url={}", redis.url())]).await;
    let trial = api.trial().await;
    redis.kill().await;
    another_replica_follows(&api, &trial).await;
}

#[tokio::test]
async fn revoking_a_key_revokes_its_descendants() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let (parent_id, parent) = create_key(&api, &trial, json!({"label": "parent"})).await;
    let (_, child) = create_key(&api, &parent, json!({"label": "child"})).await;
    let (_, grandchild) = create_key(&api, &child, json!({"label": "grandchild"})).await;
    let (_, sibling) = create_key(&api, &trial, json!({"label": "sibling"})).await;
    let request = async |key: &str| api.send(Method::GET, "/api/account", Some(key), &Value::Null).await.0;
    for key in [&parent, &child, &grandchild, &sibling] {
        assert_eq!(request(key).await, StatusCode::OK);
    }
    let path = format!("/api/keys/{parent_id}");
    let (_, revoked) = api.send(Method::DELETE, &path, Some(&trial), &Value::Null).await;
    assert_eq!(revoked["revoked"], 3);
    for key in [&parent, &child, &grandchild] {
        assert_eq!(request(key).await, StatusCode::UNAUTHORIZED);
    }
    for key in [&sibling, &trial] {
        assert_eq!(request(key).await, StatusCode::OK);
    }
    let (again, _) = api.send(Method::DELETE, &path, Some(&trial), &Value::Null).await;
    assert_eq!(again, StatusCode::NOT_FOUND);
    let (_, listed) = api.send(Method::GET, "/api/keys", Some(&trial), &Value::Null).await;
    let labels: Vec<&str> =
        listed["keys"].as_array().unwrap().iter().map(|key| key["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["trial", "sibling"]);
}

#[tokio::test]
async fn a_key_created_during_the_revocation_of_its_ancestor_is_revoked() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let account_id = api.account_of(&trial).await;
    let (first_id, first) = create_key(&api, &trial, json!({"label": "first"})).await;
    let (second_id, _) = create_key(&api, &first, json!({"label": "second"})).await;
    // The steps of `POST /api/keys` on another replica, with the second key.
    let (third, text) = api.new_key(ScopeSet::FULL, Restrictions::default(), None);
    let third = NewKey { parent_id: second_id.parse().ok(), ..third };
    let mut tx = api.begin().await;
    store::keys::lock_keys(&mut tx, account_id).await.unwrap();
    store::keys::lock_key(&mut tx, account_id, third.parent_id.unwrap()).await.unwrap().unwrap();
    store::keys::insert_key(&mut tx, account_id, &third).await.unwrap();

    let path = format!("/api/keys/{first_id}");
    let revocation = api.send(Method::DELETE, &path, Some(&trial), &Value::Null);
    let ((status, revoked), ()) = tokio::join!(revocation, async {
        api.until_lock_wait().await;
        store::commit(tx).await.unwrap();
    });
    assert_eq!((status, &revoked["revoked"]), (StatusCode::OK, &json!(3)), "{revoked}");
    let (status, _) = api.send(Method::GET, "/api/account", Some(&text), &Value::Null).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_key_under_revocation_creates_no_key() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let account_id = api.account_of(&trial).await;
    let (first_id, first) = create_key(&api, &trial, json!({"label": "first"})).await;
    let (_, second) = create_key(&api, &first, json!({"label": "second"})).await;
    let (clock, first_id) = (Clock::system(), first_id.parse().unwrap());
    let mut tx = api.begin().await;
    store::keys::lock_keys(&mut tx, account_id).await.unwrap();

    let body = json!({"label": "third"});
    let creation = api.send(Method::POST, "/api/keys", Some(&second), &body);
    let ((status, rejection), ()) = tokio::join!(creation, async {
        api.until_lock_wait().await;
        store::keys::revoke_keys(&mut tx, account_id, &[first_id], clock.now()).await.unwrap();
        store::commit(tx).await.unwrap();
    });
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{rejection}");
}

#[tokio::test]
async fn a_replica_with_a_cached_revoked_key_creates_no_key_for_it() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let (rotated_id, rotated) = create_key(&api, &trial, json!({"label": "rotated"})).await;
    let (revoked_id, revoked) = create_key(&api, &trial, json!({"label": "revoked"})).await;
    let (other_id, _) = create_key(&api, &trial, json!({"label": "other"})).await;
    let replica = api.replica(&["keys.cache_ttl=1h"]);
    for key in [&rotated, &revoked] {
        assert_eq!(status(&replica, key).await, StatusCode::OK);
    }
    let rotate = |id: &str| format!("/api/keys/{id}/rotate");
    let (done, _) = api.send(Method::POST, &rotate(&rotated_id), Some(&trial), &Value::Null).await;
    assert_eq!(done, StatusCode::OK);
    let path = format!("/api/keys/{revoked_id}");
    assert_eq!(api.send(Method::DELETE, &path, Some(&trial), &Value::Null).await.0, StatusCode::OK);

    let requested = json!({"label": "another"});
    for key in [&rotated, &revoked] {
        assert_eq!(status(&replica, key).await, StatusCode::OK, "the key is cached");
        for (method, path, body) in [
            (Method::POST, "/api/keys".to_owned(), &requested),
            (Method::POST, rotate(&rotated_id), &Value::Null),
            (Method::POST, rotate(&other_id), &Value::Null),
            (Method::DELETE, format!("/api/keys/{other_id}"), &Value::Null),
        ] {
            let (status, response) = send_to(&replica, method, &path, Some(key), body).await;
            assert_eq!(
                (status, &response["code"]),
                (StatusCode::UNAUTHORIZED, &json!("unauthenticated")),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn no_key_survives_the_concurrent_deletion_of_its_folder() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let account_id = api.account_of(&trial).await;
    let (_, folder) = api.send(Method::POST, "/api/folders", Some(&trial), &json!({"name": "F"})).await;
    let folder_id = folder["id"].as_str().unwrap();
    let restrictions = Restrictions { folder_id: folder_id.parse().ok(), ..Restrictions::default() };
    let (key, text) = api.new_key(ScopeSet::FULL, restrictions, None);
    let mut tx = api.begin().await;
    store::keys::lock_keys(&mut tx, account_id).await.unwrap();
    store::keys::insert_key(&mut tx, account_id, &key).await.unwrap();

    let path = format!("/api/folders/{folder_id}");
    let deletion = api.send(Method::DELETE, &path, Some(&trial), &Value::Null);
    let ((status, response), ()) = tokio::join!(deletion, async {
        api.until_lock_wait().await;
        store::commit(tx).await.unwrap();
    });
    assert_eq!(status, StatusCode::OK, "{response}");
    let (status, _) = api.send(Method::GET, "/api/account", Some(&text), &Value::Null).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_key_expires_exactly_and_after_at_most_ninety_days() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let now = Clock::system().now();
    let (status, key) = {
        let body = json!({"label": "K", "expiresAt": now + keys::LIFETIME_MAX});
        api.send(Method::POST, "/api/keys", Some(&trial), &body).await
    };
    assert_eq!(status, StatusCode::CREATED, "{key}");
    let shown: DateTime<Utc> = key["expiresAt"].as_str().unwrap().parse().unwrap();
    assert_eq!(shown, now + keys::LIFETIME_MAX);
    for wrong in [now + keys::LIFETIME_MAX + TimeDelta::minutes(5), now, now - TimeDelta::days(1)] {
        let body = json!({"label": "K", "expiresAt": wrong});
        let (status, problem) = api.send(Method::POST, "/api/keys", Some(&trial), &body).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!("expiresAt"))
        );
    }
    let account_id = api.account_of(&trial).await;
    let end = Clock::system().now() + TimeDelta::milliseconds(700);
    let (_, brief) = api.insert_key(account_id, ScopeSet::FULL, Restrictions::default(), Some(end)).await;
    loop {
        let started = Clock::system().now();
        let (status, problem) = api.send(Method::GET, "/api/account", Some(&brief), &Value::Null).await;
        if status == StatusCode::UNAUTHORIZED {
            assert_eq!(problem["code"], "key_expired");
            assert!(Clock::system().now() >= end, "the key expired too early");
            break;
        }
        assert!(started < end, "a cached key expires on time");
    }
}

#[tokio::test]
async fn a_key_is_shown_once_and_never_stored() {
    let api = Api::start(&[]).await;
    let trial = api.trial().await;
    let (id, first) = create_key(&api, &trial, json!({"label": "K"})).await;
    let path = format!("/api/keys/{id}/rotate");
    let (_, rotated) = api.send(Method::POST, &path, Some(&trial), &Value::Null).await;
    let second = rotated["key"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    let (_, listed) = api.send(Method::GET, "/api/keys", Some(&trial), &Value::Null).await;
    assert_eq!(listed["keys"][1]["prefix"], second[.."st_trial_".len() + 3]);
    for key in [&trial, &first, &second] {
        let secret = &key[key.rfind('_').unwrap() + 1..];
        assert!(!listed.to_string().contains(secret));
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let search = format!(
            "do $$
             declare
                 at text;
                 found boolean;
             begin
                 for at in select tablename from pg_tables where schemaname = 'public' loop
                     execute format('select exists (select from public.%I t where t::text ~ %L)', at, '{secret}|{hex}')
                         into found;
                     if found then raise exception 'the key occurs in %', at; end if;
                 end loop;
             end $$"
        );
        api.execute(&search).await.unwrap();
    }
}

#[tokio::test]
async fn a_mistyped_key_is_rejected_without_a_query() {
    let api = Api::start(&[]).await;
    let replica = api.replica(&["store.url=postgres://unknown@127.0.0.1:1/none", "store.acquire_timeout=1s"]);
    let key = keys::make(KeyKind::Live, &[7; 32]);
    assert_eq!(
        status(&replica, &key).await,
        StatusCode::SERVICE_UNAVAILABLE,
        "a well-formed key is looked up"
    );
    for at in ["st_live_".len(), key.len() / 2, key.len() - 1] {
        let letter = if key.as_bytes()[at] == b'a' { "b" } else { "a" };
        let mut mistyped = key.clone();
        mistyped.replace_range(at..=at, letter);
        assert_eq!(status(&replica, &mistyped).await, StatusCode::UNAUTHORIZED, "{mistyped}");
    }
    for wrong in [&key[1..], &key[..key.len() - 1], &format!("{key}a"), &key.to_uppercase(), "st_live_", "é"]
    {
        assert_eq!(status(&replica, wrong).await, StatusCode::UNAUTHORIZED, "{wrong}");
    }
}

#[tokio::test]
async fn the_last_use_of_a_key_is_recorded_at_most_once_a_minute() {
    let api = Api::start(&["keys.cache_ttl=1ms"]).await;
    let trial = api.trial().await;
    let (_, key) = create_key(&api, &trial, json!({"label": "K"})).await;
    let last_use = async || {
        let (_, listed) = api.send(Method::GET, "/api/keys", Some(&trial), &Value::Null).await;
        listed["keys"][1]["lastUsedAt"].as_str().map(|at| at.parse::<DateTime<Utc>>().unwrap())
    };
    let call_api =
        async || assert_eq!(api.send(Method::GET, "/api/account", Some(&key), &Value::Null).await.0, 200);
    assert_eq!(last_use().await, None);
    let before = Clock::system().now();
    call_api().await;
    let first = last_use().await.unwrap();
    assert!((before..=Clock::system().now()).contains(&first));
    for _ in 0..20 {
        call_api().await;
    }
    assert_eq!(last_use().await, Some(first), "uses within the minute change nothing");
    api.execute("update api_keys set last_used_at = last_used_at - interval '61 seconds'").await.unwrap();
    call_api().await;
    assert!(last_use().await.unwrap() > first, "a use is recorded again a minute later");
}
