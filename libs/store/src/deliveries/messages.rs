//! Deliveries of messages that an automation sends to one webhook, whichever events that receives.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A message to one webhook.
#[derive(Debug)]
pub struct Message<'a> {
    /// Id of the delivery.
    pub id: Uuid,
    pub webhook_id: Uuid,
    /// The body: `{type, timestamp, data}`.
    pub payload: &'a Value,
    /// W3C trace context of the run.
    pub traceparent: Option<&'a str>,
    /// Depth of the run.
    pub depth: i16,
    pub at: DateTime<Utc>,
}

/// The result of inserting a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOutcome {
    /// The delivery is due now.
    Stored,
    /// The webhook is disabled.
    Inactive,
    /// The webhook does not exist.
    NoWebhook,
}

/// Inserts a delivery of a message, due at once by Postgres' clock. Locks the webhook against deletion until the commit.
pub async fn insert_message(
    conn: &mut Conn,
    account_id: Uuid,
    message: &Message<'_>,
) -> Result<MessageOutcome, Error> {
    let is_active = query_scalar!(
        "select is_active from webhooks where account_id = $1 and id = $2 for key share",
        account_id,
        message.webhook_id,
    );
    match is_active.fetch_optional(&mut *conn).await? {
        None => return Ok(MessageOutcome::NoWebhook),
        Some(false) => return Ok(MessageOutcome::Inactive),
        Some(true) => {}
    }
    query!(
        "insert into deliveries (id, webhook_id, account_id, event, payload, next_attempt_at, created_at, traceparent,
                                 depth)
         values ($1, $2, $3, $4, $5, now(), $6, $7, $8)",
        message.id,
        message.webhook_id,
        account_id,
        domain::webhooks::AUTOMATION_MESSAGE,
        message.payload,
        message.at,
        message.traceparent,
        domain::depth::of_deliveries(message.depth),
    )
    .execute(conn)
    .await?;
    Ok(MessageOutcome::Stored)
}
