//! Deliveries of the account, and one delivery with its attempts and its request.

use chrono::{DateTime, Utc};
use domain::webhooks::{Delivery, FieldNames, Template, signed_request};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::settings::{Owner, hook};

impl Owner {
    /// Inserts a delivery with an attempt that got this status, and returns its id.
    pub(crate) async fn attempted(&self, webhook: &Value, created_at: &str, status: Option<u16>) -> Uuid {
        let id = Uuid::from_u128(self.api.next_number().into());
        let state = if status == Some(200) { "delivered" } else { "failed" };
        let code = status.map_or("null".to_owned(), |status| status.to_string());
        let statements = format!(
            r#"insert into deliveries (id, account_id, webhook_id, event, payload, state, attempts, next_attempt_at,
                                      created_at, finished_at)
               values ('{id}', '{}', '{}', 'submission.created', '{{"type": "webhook.ping", "data": {{"a": 1}}}}',
                       '{state}', 1, now(), '{created_at}', now());
               insert into delivery_attempts (delivery_id, attempt, status_code, duration_ms, error_class, attempted_at)
               values ('{id}', 1, {code}, 42, case when '{state}' = 'failed' then 'http_status' end, now())"#,
            self.account_id,
            webhook["id"].as_str().unwrap(),
        );
        self.api.execute(&statements).await.unwrap();
        id
    }

    async fn ids(&self, key: &str, query: &str) -> Vec<Uuid> {
        let path = format!("/api/deliveries?{query}");
        let (status, listed) = self.api.send(Method::GET, &path, Some(key), &Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{query}: {listed}");
        let ids = listed["deliveries"].as_array().unwrap().iter();
        ids.map(|one| one["id"].as_str().unwrap().parse().unwrap()).collect()
    }

    /// Stores what the job-runner stores of the request of the only attempt.
    pub(crate) async fn record_request(&self, id: Uuid, url: &str, secret: &Value, signed_at: DateTime<Utc>) {
        let delivery = Delivery {
            id: &id.to_string(),
            template: Template::Default,
            url: url.to_owned(),
            secrets: &[secret.as_str().unwrap().to_owned()],
            event: &json!({"type": "webhook.ping", "data": {"a": 1}}),
            names: FieldNames { mapping: None, form: &[] },
            telegram_chat_id: None,
            depth: 1,
        };
        let digest = signed_request(delivery, signed_at.timestamp()).unwrap().digest();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let recorded = format!(
            "update delivery_attempts set signed_at = '{}', request_digest = '\\x{digest}' where delivery_id = '{id}'",
            signed_at.to_rfc3339()
        );
        self.api.execute(&recorded).await.unwrap();
    }
}

#[tokio::test]
async fn deliveries_of_all_webhooks_are_listed_newest_first_and_filtered() {
    let owner = Owner::new(&[]).await;
    let (_, one) = owner.webhook(hook()).await;
    let (_, other) = owner.webhook(hook()).await;
    let first = owner.attempted(&one, "2027-01-01T10:00:00Z", Some(200)).await;
    let second = owner.attempted(&other, "2027-01-02T10:00:00Z", Some(503)).await;
    let third = owner.attempted(&one, "2027-01-03T10:00:00Z", None).await;
    let (webhook, key) = (other["id"].as_str().unwrap(), owner.key.as_str());
    let cases = [
        ("", vec![third, second, first]),
        ("status=failed", vec![third, second]),
        (&format!("webhookId={webhook}"), vec![second]),
        ("statusClass=2xx", vec![first]),
        ("statusClass=5xx", vec![second]),
        ("statusClass=none", vec![third]),
        ("from=2027-01-02", vec![third, second]),
        ("to=2027-01-02", vec![second, first]),
        ("from=2027-01-02T10:00:00Z&to=2027-01-03T10:00:00Z", vec![second]),
    ];
    for (query, expected) in cases {
        assert_eq!(owner.ids(key, query).await, expected, "{query}");
    }
    let page = owner.get("/api/deliveries?limit=2").await;
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(owner.ids(key, &format!("limit=2&cursor={cursor}")).await, [first]);

    let submission = Uuid::from_u128(owner.api.next_number().into());
    let form = owner.form(&[]).await;
    let statements = format!(
        "insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
         values ('{submission}', '{}', '{form}', '{{}}', now(), now());
         update deliveries set submission_id = '{submission}' where id in ('{first}', '{second}')",
        owner.account_id
    );
    owner.api.execute(&statements).await.unwrap();
    assert_eq!(owner.ids(key, &format!("submissionId={submission}")).await, [second, first]);
    assert_eq!(owner.ids(key, &format!("submissionId={submission}&statusClass=2xx")).await, [first]);

    let other_account = owner.api.trial().await;
    assert_eq!(owner.ids(&other_account, "").await, Vec::<Uuid>::new());
    assert_eq!(owner.ids(&other_account, &format!("submissionId={submission}")).await, Vec::<Uuid>::new());
}

#[tokio::test]
async fn a_key_for_one_form_lists_only_the_deliveries_to_webhooks_of_that_form() {
    let owner = Owner::new(&[]).await;
    let (form, other_form) = (owner.form(&[]).await, owner.form(&[]).await);
    let linked = |forms: Value| json!({"url": "https://example.com/hook", "formIds": forms});
    let (_, of_all) = owner.webhook(hook()).await;
    let (_, of_other) = owner.webhook(linked(json!([other_form]))).await;
    let (_, own) = owner.webhook(linked(json!([form]))).await;
    let at = "2027-01-01T10:00:00Z";
    let hidden = [owner.attempted(&of_all, at, None).await, owner.attempted(&of_other, at, None).await];
    let visible = owner.attempted(&own, at, None).await;
    let body = json!({"label": "k", "resourceIds": {"forms": [form]}});
    let (_, key) = owner.call(Method::POST, "/api/keys", body).await;
    let key = key["key"].as_str().unwrap();
    assert_eq!(owner.ids(key, "").await, [visible]);
    for id in hidden {
        let (status, problem) =
            owner.api.send(Method::GET, &format!("/api/deliveries/{id}"), Some(key), &Value::Null).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    }
    let path = format!("/api/deliveries/{visible}");
    assert_eq!(owner.api.send(Method::GET, &path, Some(key), &Value::Null).await.0, StatusCode::OK);
    let stranger = owner.api.trial().await;
    assert_eq!(
        owner.api.send(Method::GET, &path, Some(&stranger), &Value::Null).await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_delivery_is_read_with_every_attempt_and_the_request_as_it_was_sent() {
    let owner = Owner::new(&[]).await;
    let (path, webhook) = owner.webhook(hook()).await;
    let id = owner.attempted(&webhook, "2027-01-01T10:00:00Z", Some(503)).await;
    let read = async || owner.get(&format!("/api/deliveries/{id}")).await;
    let unknown = read().await;
    assert_eq!((&unknown["request"], &unknown["requestNote"]), (&json!(null), &json!("not_recorded")));
    assert_eq!(unknown["attemptLog"][0]["statusCode"], 503);
    assert_eq!(unknown["attemptLog"][0]["responseTimeMs"], 42);
    assert_eq!(unknown["attemptLog"][0]["error"], "http_status");

    let signed_at: DateTime<Utc> = "2027-01-01T10:00:05Z".parse().unwrap();
    owner.record_request(id, "https://example.com/hook", &webhook["secret"], signed_at).await;
    let known = read().await;
    let request = &known["request"];
    assert_eq!(request["url"], "https://example.com/hook", "{known}");
    assert_eq!((&request["attempt"], &request["method"]), (&json!(1), &json!("POST")));
    assert_eq!(request["body"], r#"{"type":"webhook.ping","data":{"a":1}}"#);
    let header = |name: &str| {
        let found = request["headers"].as_array().unwrap().iter().find(|header| header["name"] == name);
        found.unwrap()["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(header("webhook-id"), id.to_string());
    assert_eq!(header("webhook-timestamp"), signed_at.timestamp().to_string());
    assert!(header("webhook-signature").starts_with("v1,"));
    assert!(!known.to_string().contains(webhook["secret"].as_str().unwrap()), "the secret stays hidden");

    let (_, rotated) = owner.call(Method::POST, &format!("{path}/rotate-secret"), json!({})).await;
    assert!(rotated["secret"].is_string(), "{rotated}");
    assert_eq!(read().await["request"], *request, "the previous secret signed it");
    let edit = json!({"url": "https://example.com/moved"});
    assert_eq!(owner.call(Method::PATCH, &path, edit).await.0, StatusCode::OK);
    let changed = read().await;
    assert_eq!((&changed["request"], &changed["requestNote"]), (&json!(null), &json!("changed")));
}
