//! `send_webhook`.

use automation::execution::Effect;
use contract::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{Fixture, call, new_id, object};
use crate::automations::effects::perform;

fn send(webhook_id: Uuid, payload: Value) -> Effect {
    Effect::SendWebhook { webhook_id, payload: object(payload) }
}

#[tokio::test]
async fn a_message_is_a_delivery_due_now() {
    let fixture = Fixture::new().await;
    let webhook = fixture.webhook(fixture.account).await;
    fixture.webhook(fixture.account).await;
    let mut context = fixture.run_of("http", 3).await;
    context.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    let output = perform(&context, call(send(webhook, json!({"title": "Hi", "n": 1})))).await.unwrap();
    let delivery = fixture
        .json("select jsonb_build_object('id', id, 'webhook', webhook_id, 'event', event, 'depth', depth, 'state', state,
                      'due', next_attempt_at <= now(), 'traceparent', traceparent) from deliveries")
        .await;
    let expected = json!({"id": output["deliveryId"], "webhook": webhook, "event": "automation.message", "depth": 4,
                          "state": "pending", "due": true, "traceparent": context.traceparent});
    assert_eq!(delivery, expected);
    let body = fixture.json("select payload from deliveries").await;
    assert_eq!(body["type"], json!("automation.message"));
    assert!(body["timestamp"].is_string());
    let data = json!({"automationId": fixture.account.automation, "runId": context.claim.run_id,
                      "payload": {"title": "Hi", "n": 1}});
    assert_eq!(body["data"], data);
    assert_eq!(fixture.signals().await, [Signal::DeliveriesDue { webhook_ids: vec![webhook] }]);
}

#[tokio::test]
async fn a_disabled_or_missing_webhook_is_a_failure() {
    let fixture = Fixture::new().await;
    let webhook = fixture.webhook(fixture.account).await;
    fixture.change("update webhooks set is_active = false").await;
    let failure = fixture.failure(send(webhook, json!({}))).await;
    assert!(failure.message.contains("is disabled") && !failure.is_transient, "{failure:?}");
    fixture.change("update webhooks set is_active = true").await;
    for (id, payload, expected) in [
        (new_id(), json!({}), "there is no webhook"),
        (webhook, json!({"a": "x".repeat(257 << 10)}), "at most 256 KB"),
        (webhook, json!({"a": ["\0"]}), "NUL"),
    ] {
        let failure = fixture.failure(send(id, payload)).await;
        assert!(failure.message.contains(expected), "{failure:?}");
    }
    assert_eq!(fixture.number("select count(*) from deliveries").await, 0);
}
