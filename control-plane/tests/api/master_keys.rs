//! A rotation of the master key: nothing becomes unreadable on the way, and a key that is missing is named.

use http::{HeaderMap, Method, Request, StatusCode};
use sandbox::test::eventually;
use serde_json::{Value, json};
use service::Rng;
use store::resealing::{SealedColumn, list_key_uses, reseal_batch};

use crate::harness::{Api, exchange, send_to};
use crate::webhooks::settings::Owner;

/// The harness configures the old key without an id.
const OLD: &str = "8f14e45fceea167a5a36dedd4bea2543c9f0f895fb98ab9159f51fd0297e236d";
const NEW: &str = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";

fn setting(keys: &str) -> String {
    format!("secrets.master_key={keys}")
}

/// Re-encrypts everything as `admin reseal-secrets` does. Returns the number of values.
async fn reseal(api: &Api, keys: &str) -> u64 {
    let (keys, rng) = (domain::encryption::MasterKey::parse(keys).unwrap(), Rng::system());
    let (mut tx, mut resealed) = (api.begin().await, 0);
    for column in SealedColumn::ALL {
        let batch = reseal_batch(&mut tx, column, &keys, || rng.bytes(), None, 1_000).await.unwrap();
        assert_eq!((batch.postponed, batch.unreadable.len()), (0, 0), "{column}");
        resealed += batch.resealed;
        for key_use in list_key_uses(&mut tx, column).await.unwrap() {
            assert_eq!(key_use.key_id, Some(keys.sealing_id()), "{column}");
        }
    }
    store::commit(tx).await.unwrap();
    resealed
}

#[tokio::test]
async fn webhooks_stay_readable_through_a_rotation() {
    let owner = Owner::new(&[]).await;
    let new_webhook = |url: &str| json!({"url": url});
    let (first, _) = owner.webhook(new_webhook("https://first.test/hook")).await;

    let both = format!("2027:{NEW},{OLD}");
    let rotating = owner.api.replica(&[&setting(&both)]);
    let key = Some(owner.key.as_str());
    let body = new_webhook("https://second.test/hook");
    let (status, created) = send_to(&rotating, Method::POST, "/api/webhooks", key, &body).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let second = format!("/api/webhooks/{}", created["id"].as_str().unwrap());
    let url_at = async |router: &axum::Router, path: &str| {
        let (status, webhook) = send_to(router, Method::GET, path, key, &Value::Null).await;
        (status, webhook["url"].as_str().unwrap_or_default().to_owned())
    };
    let (of_first, of_second) = (
        (StatusCode::OK, "https://first.test/hook".to_owned()),
        (StatusCode::OK, "https://second.test/hook".to_owned()),
    );
    assert_eq!(url_at(&rotating, &first).await, of_first, "sealed by the old key");
    assert_eq!(url_at(&rotating, &second).await, of_second, "sealed by the new key");
    let rotated = owner.api.replica(&[&setting(&format!("2027:{NEW}"))]);
    assert_eq!(
        url_at(&rotated, &first).await.0,
        StatusCode::INTERNAL_SERVER_ERROR,
        "not re-encrypted so far"
    );

    assert_eq!(reseal(&owner.api, &both).await, 2, "URL and secret of the first webhook");
    assert_eq!(reseal(&owner.api, &both).await, 0);
    for router in [&rotating, &rotated] {
        assert_eq!(url_at(router, &first).await, of_first);
        assert_eq!(url_at(router, &second).await, of_second);
    }
}

#[tokio::test]
async fn a_call_from_before_a_rotation_is_replayed() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let create = async |router: axum::Router, name: &str| -> (StatusCode, HeaderMap, Value) {
        let form = json!({"name": name, "fields": [{"name": "a", "label": "A", "type": "text"}]});
        let request = Request::post("/api/forms")
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json")
            .header("idempotency-key", "order-17");
        exchange(router, request.body(form.to_string().into()).unwrap()).await
    };
    let (_, _, first) = create(api.replica(&[]), "F").await;
    let rotating = api.replica(&[&setting(&format!("2027:{NEW},{OLD}"))]);
    let (status, headers, again) = create(rotating.clone(), "F").await;
    assert_eq!((status, &again["formId"]), (StatusCode::CREATED, &first["formId"]), "{again}");
    assert_eq!(headers["idempotent-replayed"], "true");
    let (status, _, mismatch) = create(rotating, "G").await;
    assert_eq!((status, &mismatch["code"]), (StatusCode::CONFLICT, &json!("idempotency_mismatch")));
}

#[tokio::test]
async fn a_service_without_the_key_says_which_is_missing_and_works_on() {
    let owner = Owner::new(&[&setting(&format!("2025:{OLD}"))]).await;
    owner.webhook(json!({"url": "https://x.test/"})).await;
    let without = owner.api.serve(&[&setting(&format!("2027:{NEW}"))]);
    let report = eventually(async || {
        let report = without.readiness().await?;
        let reason = report["checks"]["master_keys"]["reason"].as_str()?;
        reason.contains("webhooks").then(|| report.clone())
    })
    .await;
    let reason = report["checks"]["master_keys"]["reason"].as_str().unwrap();
    for part in [
        "webhooks.sealed_url (1 value): sealed with master key `2025`, which is not configured",
        "webhooks.sealed_secret (1 value)",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!(report["ready"], true, "everything else works");

    let with = owner.api.serve(&[&setting(&format!("2027:{NEW},2025:{OLD}"))]);
    eventually(async || {
        let report = with.readiness().await?;
        (report["checks"]["master_keys"]["ok"] == true).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_invalid_list_of_keys_is_refused_with_the_position_of_the_entry() {
    let api = Api::start(&[]).await;
    let error = api.refused(&[&setting(&format!("2027:{NEW},old:{OLD}0"))]);
    assert!(error.contains("entry 2 of secrets.master_key is not valid"), "{error}");
    assert!(!error.contains(&OLD[..8]), "{error}");
}
