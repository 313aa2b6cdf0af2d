//! Effects of a submission in its own transaction: an entry of a page, deliveries, a mail, and runs of automations.

use contract::{Change, Job, Signal};
use domain::entries;
use domain::submissions::{NoEntry, SubmissionEvent, SubmissionEventData, event_body};
use serde_json::Value;
use sqlx::query;
use uuid::Uuid;

use crate::automations;
use crate::deliveries::{self, Event};
use crate::entries::{EntryOutcome, NewEntry, PageLocation, insert_entry};
use crate::forms::Form;
use crate::mails::{self, Kind};
use crate::write_context::WriteContext;
use crate::{Conn, Error, outbox};

/// Applies all effects of a submission that counts from now on. Returns signals to send after the commit.
pub(super) async fn apply_effects(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    data: &SubmissionEventData<'_>,
    listeners: Vec<Uuid>,
    context: &WriteContext<'_>,
) -> Result<Vec<Signal>, Error> {
    let mut changes = Vec::new();
    if let Some(page_id) = form.auto_entry_page_id {
        match add_entry(conn, account_id, page_id, data, context).await? {
            Ok(location) => changes.push(Change::from(location)),
            Err(why) => update_entry_note(conn, account_id, data.submission_id, why).await?,
        }
    }
    let due = insert_event_deliveries(conn, account_id, SubmissionEvent::Created, data, &listeners, context)
        .await?;
    let mut jobs = Vec::new();
    if form.notify_email.is_some() {
        // The row guarantees the mail; the job only sends it sooner.
        mails::insert_mail(conn, account_id, Kind::Submission, data.submission_id, context.now).await?;
        jobs.push(Job::NotifyOwnerV1 { submission_id: data.submission_id });
    }
    let mut signals = outbox::insert_orders(conn, &jobs, &changes, context.traceparent, context.now).await?;
    signals.extend(due);
    let (depth, traceparent) = (context.depth, context.traceparent);
    let starts = automations::insert_triggers(
        conn,
        account_id,
        form.id,
        data.submission_id,
        depth,
        traceparent,
        context.now,
    );
    if starts.await? {
        signals.push(Signal::TriggersDue);
    }
    Ok(signals)
}

/// Sends an event of a submission to webhooks. Returns signals to send after the commit.
pub(super) async fn publish_event(
    conn: &mut Conn,
    account_id: Uuid,
    kind: SubmissionEvent,
    data: &SubmissionEventData<'_>,
    context: &WriteContext<'_>,
) -> Result<Vec<Signal>, Error> {
    let listeners = deliveries::lock_listeners(conn, account_id, data.form_id, kind.as_str()).await?;
    let due = insert_event_deliveries(conn, account_id, kind, data, &listeners, context).await?;
    Ok(due.into_iter().collect())
}

/// Inserts deliveries. The job-runner finds due rows by itself; the returned signal only makes it faster.
async fn insert_event_deliveries(
    conn: &mut Conn,
    account_id: Uuid,
    kind: SubmissionEvent,
    data: &SubmissionEventData<'_>,
    listeners: &[Uuid],
    context: &WriteContext<'_>,
) -> Result<Option<Signal>, Error> {
    if listeners.is_empty() {
        return Ok(None);
    }
    let payload = event_body(kind, context.now, data);
    let event = Event {
        name: kind.as_str(),
        form_id: data.form_id,
        submission_id: Some(data.submission_id),
        payload: &payload,
        traceparent: context.traceparent,
        depth: context.depth,
        at: context.now,
    };
    deliveries::insert_deliveries(conn, account_id, &event, listeners, context.new_id).await?;
    Ok(Some(Signal::DeliveriesDue { webhook_ids: listeners.to_vec() }))
}

async fn add_entry(
    conn: &mut Conn,
    account_id: Uuid,
    page_id: Uuid,
    data: &SubmissionEventData<'_>,
    context: &WriteContext<'_>,
) -> Result<Result<PageLocation, NoEntry>, Error> {
    if entries::is_too_large(data.fields) {
        return Ok(Err(NoEntry::TooLarge));
    }
    let entry = NewEntry {
        id: (context.new_id)(),
        page_id,
        data: Value::Object(data.fields.clone()),
        submission_id: Some(data.submission_id),
        created_at: context.now,
    };
    Ok(match insert_entry(conn, account_id, &entry).await? {
        EntryOutcome::Stored(shown) => Ok(shown),
        EntryOutcome::Full => Err(NoEntry::PageFull),
        EntryOutcome::NoTemplate => Err(NoEntry::NoTemplate),
        EntryOutcome::NoPage => Err(NoEntry::PageGone),
    })
}

async fn update_entry_note(conn: &mut Conn, account_id: Uuid, id: Uuid, why: NoEntry) -> Result<(), Error> {
    query!(
        "update submissions set entry_note = $3 where account_id = $1 and id = $2",
        account_id,
        id,
        why.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
}
