//! The email that tells an owner that a webhook was deactivated, because it is gone or only failed for days.
//!
//! It does not contain the webhook's URL, which may be a secret.

use std::fmt::Write as _;

use domain::webhooks::health::Reason;
use store::Conn;
use store::webhooks::find_deactivation;
use uuid::Uuid;

use crate::mail::Email;

pub(crate) async fn write(conn: &mut Conn, account_id: Uuid, id: Uuid) -> anyhow::Result<Option<Email>> {
    let Some(webhook) = find_deactivation(conn, account_id, id).await? else { return Ok(None) };
    let when = webhook.deactivated_at.format("%Y-%m-%d %H:%M UTC");
    let mut text =
        format!("One of your webhooks was deactivated at {when}. It receives no more deliveries.\n\n");
    if webhook.reason == Reason::Gone.as_str() {
        text.push_str("Reason: its URL responded that the receiver is gone.\n");
    } else {
        text.push_str("Reason: all deliveries to it failed for days");
        if let Some(since) = webhook.failing_since {
            let _infallible = write!(text, ", since {}", since.format("%Y-%m-%d %H:%M UTC"));
        }
        text.push_str(".\n");
    }
    let _infallible = writeln!(text, "Webhook: {id}");
    if let Some(description) = &webhook.description {
        let _infallible = writeln!(text, "Your description: {description}");
    }
    let _infallible = write!(
        text,
        "\nTo activate it again: PATCH /api/webhooks/{id} with {{\"isActive\": true}}. To retry failed deliveries: \
         POST /api/webhooks/{id}/retry with {{\"since\": \"<time>\"}}.\n"
    );
    Ok(Some(Email {
        id: format!("{id}.{}", webhook.deactivated_at.timestamp()),
        to: Some(webhook.to),
        reply_to: None,
        subject: "One of your webhooks was deactivated".to_owned(),
        text,
        written_at: webhook.deactivated_at.into(),
    }))
}
