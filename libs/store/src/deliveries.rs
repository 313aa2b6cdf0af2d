//! Deliveries: one event for one webhook, from the submission's commit to the receiver's 2xx.
//!
//! The rows are the truth about what is still to be sent and when. Redis only carries what is due now; if
//! it forgets, [`list_due`] finds the row again.

mod by_hand;
mod log;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

pub use by_hand::{cancel_pending, insert_ping, retry_delivery, retry_failed};
pub use log::{Delivery, Wanted, find_delivery, list_deliveries};

use crate::{Conn, Error};

/// Something that happened to a form, to be told to its webhooks.
#[derive(Debug)]
pub struct Event<'a> {
    /// `submission.created` and the like.
    pub name: &'a str,
    /// The form.
    pub form_id: Uuid,
    /// The submission, if it is about one.
    pub submission_id: Option<Uuid>,
    /// The body to be sent, before `fieldMapping`.
    pub payload: &'a Value,
    /// Now.
    pub at: DateTime<Utc>,
}

/// A delivery under way: everything an attempt needs.
#[derive(Debug)]
pub struct Attempt {
    /// The delivery, and the `webhook-id`.
    pub delivery_id: Uuid,
    /// Whose it is.
    pub account_id: Uuid,
    /// The webhook.
    pub webhook_id: Uuid,
    /// Which attempt this is; the first is 1. It is counted when it begins, however it ends.
    pub attempt: i32,
    /// Attempts made before the schedule was begun anew by hand.
    pub attempts_before: i32,
    /// What happened.
    pub event: String,
    /// The body, before `field_mapping`.
    pub payload: Value,
    /// The webhook's address, sealed.
    pub sealed_url: Vec<u8>,
    /// Its signing secret, sealed.
    pub sealed_secret: Vec<u8>,
    /// The one before, sealed, while it is still good.
    pub sealed_previous_secret: Option<Vec<u8>>,
    /// New names for answers.
    pub field_mapping: Option<Value>,
    /// For whom it writes, by the template's word.
    pub template: String,
    /// The Telegram chat it writes to.
    pub telegram_chat_id: Option<String>,
    /// Since when nothing has been delivered to it although it was tried.
    pub failing_since: Option<DateTime<Utc>>,
}

/// How an attempt ended.
#[derive(Debug)]
pub struct Outcome {
    /// What the receiver answered, if it did.
    pub status_code: Option<i32>,
    /// How long it took.
    pub duration_ms: i64,
    /// Stable word for what went wrong; none for a 2xx.
    pub error_class: Option<&'static str>,
    /// The beginning of the receiver's answer.
    pub response_body: Option<String>,
    /// When it ended.
    pub at: DateTime<Utc>,
    /// When to try again; none when it was delivered or is given up.
    pub next_attempt_at: Option<DateTime<Utc>>,
}

/// Makes a delivery, with an id of `new_id`, for each active webhook of the account that wants this event of
/// this form; gives their ids.
///
/// # Errors
/// The database's.
pub async fn insert_deliveries(
    conn: &mut Conn,
    account_id: Uuid,
    event: &Event<'_>,
    new_id: impl Fn() -> Uuid,
) -> Result<Vec<Uuid>, Error> {
    let listeners = lock_listeners(conn, account_id, event.form_id, event.name).await?;
    insert_for(conn, account_id, event, &listeners, new_id).await
}

/// The active webhooks of the account that want an event of a form. One that is being deleted waits for, or is left
/// out of, the commit.
///
/// # Errors
/// The database's.
pub(crate) async fn lock_listeners(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    event: &str,
) -> Result<Vec<Uuid>, Error> {
    let listeners = query_scalar!(
        "select id from webhooks w where account_id = $1 and is_active
           and (all_forms or exists (select from webhook_forms where webhook_id = w.id and form_id = $2))
           and ($3 = any(events) or '*' = any(events) or (events = '{}' and $3 = 'submission.created'))
         for key share",
        account_id,
        form_id,
        event,
    )
    .fetch_all(conn)
    .await?;
    Ok(listeners)
}

/// Makes a delivery for each of these webhooks; gives their ids.
///
/// # Errors
/// The database's.
pub(crate) async fn insert_for(
    conn: &mut Conn,
    account_id: Uuid,
    event: &Event<'_>,
    listeners: &[Uuid],
    new_id: impl Fn() -> Uuid,
) -> Result<Vec<Uuid>, Error> {
    if listeners.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = listeners.iter().map(|_| new_id()).collect();
    query!(
        "insert into deliveries (id, webhook_id, account_id, submission_id, event, payload, next_attempt_at, created_at)
         select id, webhook_id, $3, $4, $5, $6, $7, $7 from unnest($1::uuid[], $2::uuid[]) as t (id, webhook_id)",
        &ids,
        listeners,
        account_id,
        event.submission_id,
        event.name,
        event.payload,
        event.at,
    )
    .execute(conn)
    .await?;
    Ok(ids)
}

/// Begins an attempt if the delivery is due and nobody else is at it: from now until `leased_until` no
/// other worker can. `None` otherwise, which makes a job that was queued twice harmless.
///
/// # Errors
/// The database's.
pub async fn lease(
    conn: &mut Conn,
    delivery_id: Uuid,
    now: DateTime<Utc>,
    leased_until: DateTime<Utc>,
) -> Result<Option<Attempt>, Error> {
    let attempt = query_as!(
        Attempt,
        "update deliveries d set attempts = attempts + 1, leased_until = $3
         from webhooks w
         where d.id = $1 and w.id = d.webhook_id and w.is_active and d.state = 'pending' and d.next_attempt_at <= $2
           and (d.leased_until is null or d.leased_until <= $2)
         returning d.id as delivery_id, d.account_id, d.webhook_id, d.attempts as attempt, d.attempts_before, d.event,
                   d.payload, w.sealed_url, w.sealed_secret,
                   case when w.previous_secret_until > $2 then w.sealed_previous_secret end as sealed_previous_secret,
                   w.field_mapping, w.template, w.telegram_chat_id, w.failing_since",
        delivery_id,
        now,
        leased_until,
    )
    .fetch_optional(conn)
    .await?;
    Ok(attempt)
}

/// Writes down how an attempt ended, and gives up the lease. An attempt whose lease ran out and was taken
/// over by a later one is logged but decides nothing. One that was taken back meanwhile and arrived all the same is
/// delivered.
///
/// # Errors
/// The database's.
pub async fn finish(conn: &mut Conn, attempt: &Attempt, outcome: &Outcome) -> Result<(), Error> {
    query!(
        "insert into delivery_attempts (delivery_id, attempt, status_code, duration_ms, error_class, response_body,
                                        attempted_at)
         values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing",
        attempt.delivery_id,
        attempt.attempt,
        outcome.status_code,
        outcome.duration_ms,
        outcome.error_class,
        outcome.response_body,
        outcome.at,
    )
    .execute(&mut *conn)
    .await?;
    let state = match (outcome.error_class, outcome.next_attempt_at) {
        (None, _) => "delivered",
        (Some(_), Some(_)) => "pending",
        (Some(_), None) => "failed",
    };
    query!(
        "update deliveries set state = $3, leased_until = null, next_attempt_at = coalesce($4, next_attempt_at),
                               finished_at = case when $3 = 'pending' then null else $5::timestamptz end
         where id = $1 and attempts = $2 and (state = 'pending' or (state = 'canceled' and $3 = 'delivered'))",
        attempt.delivery_id,
        attempt.attempt,
        state,
        outcome.next_attempt_at,
        outcome.at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deliveries that are due and that nobody is at: retries whose time has come, and those a lost queue or a
/// killed worker left behind. A first attempt is left to the outbox until `untried_before`.
///
/// # Errors
/// The database's.
pub async fn list_due(
    conn: &mut Conn,
    now: DateTime<Utc>,
    untried_before: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Uuid>, Error> {
    let due = query_scalar!(
        "select d.id from deliveries d join webhooks w on w.id = d.webhook_id
         where d.state = 'pending' and d.next_attempt_at <= case when d.attempts = 0 then $2::timestamptz else $1::timestamptz end
           and w.is_active
           and (d.leased_until is null or d.leased_until <= $1)
         order by d.next_attempt_at limit $3",
        now,
        untried_before,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(due)
}
