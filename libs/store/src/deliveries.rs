//! Deliveries: one event for one webhook, from the submission's commit to the receiver's 2xx.
//!
//! The rows are the truth about what is still to be sent and when, and where job-runners find it ([`claim`]):
//! nothing about a delivery stands anywhere else.

mod claims;
mod completions;
mod log;
mod manual_retry;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::forms::advisory_lock_key;
use crate::{Conn, Error};

pub use claims::{ClaimLimit, Lease, claim, list_due, release_attempts};
pub use completions::complete_attempts;
pub use log::{Delivery, DeliveryFilter, find_delivery, list_deliveries};
pub use manual_retry::{cancel_pending, insert_ping, retry_delivery, retry_failed};

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
    /// W3C trace context of whoever caused it.
    pub traceparent: Option<&'a str>,
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
    /// Whom it tells.
    pub webhook_id: Uuid,
    /// Which attempt this is; the first is 1. It is counted when it begins, however it ends.
    pub attempt: i32,
    /// Attempts made before the schedule was begun anew by hand.
    pub attempts_before: i32,
    /// What happened.
    pub event: String,
    /// The body, before `field_mapping`.
    pub payload: Value,
    /// W3C trace context of whoever caused it.
    pub traceparent: Option<String>,
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
#[derive(Debug, Clone)]
pub struct AttemptOutcome {
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

/// The active webhooks of the account that want an event of a form. One that is being deleted waits for, or is left
/// out of, the commit; and the form is not edited before it, either ([`crate::forms::lock_form`]).
pub async fn lock_listeners(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    event: &str,
) -> Result<Vec<Uuid>, Error> {
    let listeners = query_scalar!(
        r#"select array(
               select w.id from webhooks w cross join wants(w.id, w.all_forms, w.events, $2, $3)
               where w.account_id = $1 and w.is_active for key share of w) as "listeners!"
           from pg_advisory_xact_lock_shared($4)"#,
        account_id,
        form_id,
        event,
        advisory_lock_key(form_id),
    )
    .fetch_one(conn)
    .await?;
    Ok(listeners)
}

/// As [`lock_listeners`], but waits for nobody who edits the form, or who wants to: none then.
pub(crate) async fn try_lock_listeners(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    event: &str,
) -> Result<Option<Vec<Uuid>>, Error> {
    let listeners = query_scalar!(
        r#"select case when is_locked then array(
               select w.id from webhooks w cross join wants(w.id, w.all_forms, w.events, $2, $3)
               where w.account_id = $1 and w.is_active for key share of w) end as listeners
           from pg_try_advisory_xact_lock_shared($4) as t (is_locked)"#,
        account_id,
        form_id,
        event,
        advisory_lock_key(form_id),
    )
    .fetch_one(conn)
    .await?;
    Ok(listeners)
}

/// Makes a delivery, with an id of `new_id`, for each of these webhooks, which must be the account's.
pub async fn insert_deliveries(
    conn: &mut Conn,
    account_id: Uuid,
    event: &Event<'_>,
    listeners: &[Uuid],
    new_id: impl Fn() -> Uuid,
) -> Result<(), Error> {
    if listeners.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = listeners.iter().map(|_| new_id()).collect();
    query!(
        "insert into deliveries (id, webhook_id, account_id, submission_id, event, payload, next_attempt_at, created_at,
                                 traceparent)
         select id, webhook_id, $3, $4, $5, $6, $7, $7, $8 from unnest($1::uuid[], $2::uuid[]) as t (id, webhook_id)",
        &ids,
        listeners,
        account_id,
        event.submission_id,
        event.name,
        event.payload,
        event.at,
        event.traceparent,
    )
    .execute(conn)
    .await?;
    Ok(())
}
