//! Sends `form.closed` to webhooks, once each time a form closes.
//!
//! The transaction that fills a form sends it. Closing by time, or by an edit that lowers the limit, is found by the
//! job-runner through `closing_look_at`. A form that was full when its time came had closed before; one that is
//! reopened and closes again has closed twice.

use chrono::{DateTime, Utc};
use contract::Signal;
use domain::forms::{ClosedReason, closed_event};
use domain::webhooks::FORM_CLOSED;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::read::{Form, OpenForm, find_open_form};
use crate::deliveries::{self, Event};
use crate::form_locks::advisory_lock_key;
use crate::write_context::WriteContext;
use crate::{Conn, Error};

/// Returns up to `limit` forms, with their accounts, that may have closed by now.
pub async fn list_closing(
    conn: &mut Conn,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<(Uuid, Uuid)>, Error> {
    let rows = query!(
        "select account_id, id from forms where closing_look_at <= $1 order by closing_look_at limit $2",
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.account_id, row.id)).collect())
}

/// Sends `form.closed` if the form has closed and the event was not sent yet. Returns the reason and a signal to send
/// after the commit. Of concurrent calls only one sends it. Skips a form that is being edited; the next check finds it
/// again.
pub async fn close_form(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    context: &WriteContext<'_>,
) -> Result<Option<(ClosedReason, Option<Signal>)>, Error> {
    let is_free =
        query_scalar!(r#"select pg_try_advisory_xact_lock_shared($1) as "is_free!""#, advisory_lock_key(id))
            .fetch_one(&mut *conn)
            .await?;
    if !is_free {
        return Ok(None);
    }
    let looked = query!(
        "update forms set closing_look_at = case when closes_at > $3 then closes_at end
         where account_id = $1 and id = $2 and closing_look_at <= $3",
        account_id,
        id,
        context.now,
    )
    .execute(&mut *conn)
    .await?;
    if looked.rows_affected() == 0 {
        return Ok(None);
    }
    let Some(open) = find_open_form(conn, id).await? else { return Ok(None) };
    let Some(why) = why_closed(&open, context.now) else { return Ok(None) };
    Ok(Some((why, notify_closed(conn, account_id, &open.form, why, context).await?)))
}

/// Returns why the form has closed by now. `None` also if it was already full when its time came.
fn why_closed(open: &OpenForm, now: DateTime<Utc>) -> Option<ClosedReason> {
    let OpenForm { form, plan, .. } = open;
    let plan_limit = plan.limits().submissions_per_form;
    let why =
        |closes_at| ClosedReason::of(now, closes_at, form.submission_count, form.max_submissions, plan_limit);
    why(form.closes_at).filter(|closed| *closed == ClosedReason::Full || why(None).is_none())
}

/// Sends `form.closed` to the form's webhooks. Returns a signal to send after the commit.
pub(crate) async fn notify_closed(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    why: ClosedReason,
    context: &WriteContext<'_>,
) -> Result<Option<Signal>, Error> {
    let listeners = deliveries::lock_listeners(conn, account_id, form.id, FORM_CLOSED).await?;
    let event = Event {
        name: FORM_CLOSED,
        form_id: form.id,
        submission_id: None,
        payload: &closed_event(why, context.now, form.id, &form.name),
        traceparent: context.traceparent,
        depth: context.depth,
        at: context.now,
    };
    deliveries::insert_deliveries(conn, account_id, &event, &listeners, context.new_id).await?;
    Ok((!listeners.is_empty()).then_some(Signal::DeliveriesDue { webhook_ids: listeners }))
}
