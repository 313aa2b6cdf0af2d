//! Creates the deliveries of an event.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::form_locks::advisory_lock_key;
use crate::{Conn, Error};

/// An event of a form, to send to its webhooks.
#[derive(Debug)]
pub struct Event<'a> {
    /// `submission.created` and so on.
    pub name: &'a str,
    pub form_id: Uuid,
    pub submission_id: Option<Uuid>,
    /// The body, before `fieldMapping`.
    pub payload: &'a Value,
    /// W3C trace context of the request that caused it.
    pub traceparent: Option<&'a str>,
    /// Depth of the change that caused it.
    pub depth: i16,
    pub at: DateTime<Utc>,
}

/// Returns the active webhooks that receive an event of a form. Locks them against deletion and the form against edits
/// until the commit ([`crate::forms::lock_form`]).
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

/// Like [`lock_listeners`], but returns `None` instead of waiting if the form is being edited or an edit is queued.
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

/// Inserts a delivery for each of these webhooks, which must belong to the account. The ids come from `new_id`. Deliveries
/// are due at once by Postgres' clock, which job-runners claim them by.
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
                                 traceparent, depth)
         select id, webhook_id, $3, $4, $5, $6, now(), $7, $8, $9 from unnest($1::uuid[], $2::uuid[]) as t (id, webhook_id)",
        &ids,
        listeners,
        account_id,
        event.submission_id,
        event.name,
        event.payload,
        event.at,
        event.traceparent,
        domain::depth::of_deliveries(event.depth),
    )
    .execute(conn)
    .await?;
    Ok(())
}
