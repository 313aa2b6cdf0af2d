//! What was delivered and how it ended, for a webhook's owner.

use chrono::{DateTime, Utc};
use domain::Cursor;
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// A delivery in its webhook's log, with its last attempt.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its id.
    pub id: Uuid,
    /// What happened.
    pub event: String,
    /// The submission, if it is about one.
    pub submission_id: Option<Uuid>,
    /// `pending`, `delivered`, `failed` or `canceled`.
    pub state: String,
    /// Attempts begun so far.
    pub attempts: i32,
    /// When the next is due, while pending.
    pub next_attempt_at: DateTime<Utc>,
    /// When the event happened.
    pub created_at: DateTime<Utc>,
    /// When it was delivered or came to nothing.
    pub finished_at: Option<DateTime<Utc>>,
    /// When the last attempt ended.
    pub attempted_at: Option<DateTime<Utc>>,
    /// What the receiver answered last.
    pub status_code: Option<i32>,
    /// How long that took.
    pub duration_ms: Option<i64>,
    /// What went wrong, if anything.
    pub error_class: Option<String>,
    /// The beginning of its answer.
    pub response_body: Option<String>,
}

/// Which deliveries of a webhook are looked at.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryFilter<'a> {
    /// This one alone.
    pub id: Option<Uuid>,
    /// Those in this state.
    pub state: Option<&'a str>,
    /// Those before that.
    pub after: Option<Cursor>,
    /// As many.
    pub limit: i64,
}

/// The deliveries of a webhook of the account, newest first.
pub async fn list_deliveries(
    conn: &mut Conn,
    account_id: Uuid,
    webhook_id: Uuid,
    wanted: &DeliveryFilter<'_>,
) -> Result<Vec<Delivery>, Error> {
    let deliveries = query_as!(
        Delivery,
        r#"select d.id, d.event, d.submission_id, d.state, d.attempts, d.next_attempt_at, d.created_at, d.finished_at,
                  a.attempted_at as "attempted_at?", a.status_code as "status_code?",
                  a.duration_ms as "duration_ms?", a.error_class as "error_class?",
                  a.response_body as "response_body?"
           from deliveries d
           left join lateral (select * from delivery_attempts where delivery_id = d.id order by attempt desc limit 1) a
             on true
           where d.account_id = $1 and d.webhook_id = $2
             and ($3::uuid is null or d.id = $3) and ($4::text is null or d.state = $4)
             and ($5::timestamptz is null or (d.created_at, d.id) < ($5, $6))
           order by d.created_at desc, d.id desc limit $7"#,
        account_id,
        webhook_id,
        wanted.id,
        wanted.state,
        wanted.after.map(|after| after.created_at),
        wanted.after.map(|after| after.id).unwrap_or_default(),
        wanted.limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(deliveries)
}

/// A delivery of a webhook of the account.
pub async fn find_delivery(
    conn: &mut Conn,
    account_id: Uuid,
    webhook_id: Uuid,
    id: Uuid,
) -> Result<Option<Delivery>, Error> {
    let wanted = DeliveryFilter { id: Some(id), state: None, after: None, limit: 1 };
    Ok(list_deliveries(conn, account_id, webhook_id, &wanted).await?.pop())
}
