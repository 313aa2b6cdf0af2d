//! `send_webhook`: a delivery like that of any event. It is signed, templated, retried and logged by the same code.

use automation::execution::Failure;
use contract::Signal;
use domain::scopes::{Action, Resource, Scope};
use domain::webhooks::AUTOMATION_MESSAGE;
use serde_json::{Map, Value, json};
use store::deliveries::{Message, MessageOutcome, insert_message};
use uuid::Uuid;

use super::abort::Abort;
use super::abort::has_nul;
use super::authority::missing;
use super::transaction::Transaction;

/// Maximum size of a payload as JSON, in bytes.
const PAYLOAD_BYTES_MAX: usize = 256 << 10;

/// Inserts the delivery.
pub(super) async fn send(
    transaction: &mut Transaction<'_>,
    webhook_id: Uuid,
    payload: &Map<String, Value>,
) -> Result<Value, Abort> {
    if domain::json_bytes(payload) > PAYLOAD_BYTES_MAX {
        let message = format!("payload may have at most {} KB as JSON", PAYLOAD_BYTES_MAX >> 10);
        return Err(Failure::permanent(message).into());
    }
    let scope = Scope::new(Resource::Deliveries, Action::Create);
    transaction.check(scope, Resource::Webhooks, webhook_id).await?;
    let (context, now) = (transaction.context, transaction.now);
    let body = json!({
        "type": AUTOMATION_MESSAGE,
        "timestamp": now,
        "data": {"automationId": context.automation_id, "runId": context.claim.run_id, "payload": payload},
    });
    if has_nul(&body) {
        return Err(Failure::permanent("payload must not contain a NUL character").into());
    }
    let message = Message {
        id: context.state.rng.uuid_v7(now),
        webhook_id,
        payload: &body,
        traceparent: context.traceparent.as_deref(),
        depth: context.depth,
        at: now,
    };
    match insert_message(&mut transaction.tx, context.account_id, &message).await? {
        MessageOutcome::Stored => {}
        MessageOutcome::Inactive => {
            let message = format!(
                "the webhook {webhook_id} is disabled, so nothing is delivered to it; enable it: PATCH \
                 /api/webhooks/{webhook_id} with {{\"isActive\": true}}"
            );
            return Err(Failure::permanent(message).into());
        }
        MessageOutcome::NoWebhook => return Err(missing(Resource::Webhooks, webhook_id).into()),
    }
    transaction.signals.push(Signal::DeliveriesDue { webhook_ids: vec![webhook_id] });
    Ok(json!({"deliveryId": message.id}))
}
