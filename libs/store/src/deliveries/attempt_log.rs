//! The attempts at one delivery, and what is needed to build its request again.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use super::claims::Attempt;
use crate::{Conn, Error};

/// An attempt that ended.
#[derive(Debug, Clone)]
pub struct LoggedAttempt {
    /// The first attempt is 1.
    pub attempt: i32,
    /// When it ended.
    pub attempted_at: DateTime<Utc>,
    pub duration_ms: i64,
    pub status_code: Option<i32>,
    pub error_class: Option<String>,
    /// The beginning of the response.
    pub response_body: Option<String>,
    /// The time that the signature covers; `None` if nothing was sent.
    pub signed_at: Option<DateTime<Utc>>,
    /// See [`super::SentRequest`].
    pub request_digest: Option<Vec<u8>>,
}

/// Returns the last `limit` attempts at a delivery of the account, newest first.
pub async fn list_attempts(
    conn: &mut Conn,
    account_id: Uuid,
    delivery_id: Uuid,
    limit: i64,
) -> Result<Vec<LoggedAttempt>, Error> {
    let attempts = query_as!(
        LoggedAttempt,
        "select a.attempt, a.attempted_at, a.duration_ms, a.status_code, a.error_class, a.response_body, a.signed_at,
                a.request_digest
         from deliveries d join delivery_attempts a on a.delivery_id = d.id
         where d.account_id = $1 and d.id = $2
         order by a.attempt desc limit $3",
        account_id,
        delivery_id,
        limit,
    );
    Ok(attempts.fetch_all(conn).await?)
}

/// Returns a delivery as a claim would return its last attempt now, but with the previous secret even if it has expired: the
/// request of the attempt may have been signed with it.
pub async fn find_last_attempt(
    conn: &mut Conn,
    account_id: Uuid,
    delivery_id: Uuid,
) -> Result<Option<Attempt>, Error> {
    let row = query!(
        "select d.webhook_id, d.attempts, d.attempts_before, d.event, d.payload, d.traceparent, d.depth, w.sealed_url,
                w.sealed_secret, w.sealed_previous_secret, w.field_mapping, w.template, w.telegram_chat_id, w.failing_since,
                d.next_attempt_at
         from deliveries d join webhooks w on w.id = d.webhook_id
         where d.account_id = $1 and d.id = $2",
        account_id,
        delivery_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Attempt {
        delivery_id,
        account_id,
        webhook_id: row.webhook_id,
        attempt: row.attempts,
        attempts_before: row.attempts_before,
        event: row.event,
        payload: row.payload,
        fields: Arc::default(),
        traceparent: row.traceparent,
        depth: row.depth,
        sealed_url: row.sealed_url,
        sealed_secret: row.sealed_secret,
        sealed_previous_secret: row.sealed_previous_secret,
        field_mapping: row.field_mapping,
        template: row.template,
        telegram_chat_id: row.telegram_chat_id,
        due_at: row.next_attempt_at,
        failing_since: row.failing_since,
    }))
}
