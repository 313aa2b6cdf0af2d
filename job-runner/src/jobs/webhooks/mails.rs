//! A mail to an owner: a webhook of theirs was switched off, because nobody is there or nothing was delivered for days.
//!
//! It says nothing of the address, which may be a secret.

use std::fmt::Write as _;

use domain::webhooks::health::Reason;
use store::Conn;
use store::webhooks::find_switched_off;
use uuid::Uuid;

use crate::mail::Letter;

/// What the owner reads.
pub(crate) async fn write(conn: &mut Conn, account_id: Uuid, id: Uuid) -> anyhow::Result<Option<Letter>> {
    let Some(off) = find_switched_off(conn, account_id, id).await? else { return Ok(None) };
    let when = off.deactivated_at.format("%Y-%m-%d %H:%M UTC");
    let mut text =
        format!("A webhook of yours was switched off at {when}. Nothing is delivered to it any more.\n\n");
    if off.reason == Reason::Gone.word() {
        text.push_str("Why: its address answered that there is nobody any more.\n");
    } else {
        text.push_str("Why: nothing could be delivered to it for days");
        if let Some(since) = off.failing_since {
            let _infallible = write!(text, ", since {}", since.format("%Y-%m-%d %H:%M UTC"));
        }
        text.push_str(".\n");
    }
    let _infallible = writeln!(text, "Webhook: {id}");
    if let Some(description) = &off.description {
        let _infallible = writeln!(text, "Your note: {description}");
    }
    let _infallible = write!(
        text,
        "\nWhen it works again, switch it on: PATCH /api/webhooks/{id} with {{\"isActive\": true}}. What came to nothing \
         can then be sent again: POST /api/webhooks/{id}/retry with {{\"since\": \"<time>\"}}.\n"
    );
    Ok(Some(Letter {
        id: format!("{id}.{}", off.deactivated_at.timestamp()),
        to: Some(off.to),
        reply_to: None,
        subject: "A webhook of yours was switched off".to_owned(),
        text,
        written_at: off.deactivated_at.into(),
    }))
}
