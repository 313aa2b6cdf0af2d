//! Inserts submissions of many visitors, of any forms, with one statement, one commit and one write to disk.
//!
//! Only [`is_plain`] forms are eligible: a submission of them consists of its row, its count, webhook deliveries and runs
//! of automations. A
//! statement for many must not wait for locks, or one form that is edited for a minute would block all others. It skips
//! what is locked; the caller inserts skipped submissions one by one ([`super::insert_submission`]), which also returns
//! the reason.

use chrono::{DateTime, Utc};
use domain::depth;
use domain::submissions::{SubmissionEvent, batching, event_body};
use sqlx::query;
use uuid::Uuid;

use super::insert::{NewSubmission, SLOTS, event_data};
use crate::form_locks::advisory_lock_key;
use crate::forms::{Form, OpenForm};
use crate::write_context::WriteContext;
use crate::{Conn, Error};

/// A validated submission of a plain form.
#[derive(Debug)]
pub struct BatchSubmission {
    account_id: Uuid,
    form_id: Uuid,
    /// The `updated_at` of the form that it was validated against.
    checked_at: DateTime<Utc>,
    id: Uuid,
    /// The answers as JSON.
    payload: String,
    /// Answers to unknown fields as JSON, if the form stores them and there are any.
    extra: Option<String>,
    sent_at: DateTime<Utc>,
    /// The event for webhooks as JSON; empty if the form seemed to have none.
    event: String,
    /// Ids of its deliveries, one for each known webhook.
    delivery_ids: Vec<Uuid>,
    traceparent: Option<String>,
    /// Depth of its deliveries.
    depth: i16,
}

impl BatchSubmission {
    /// Returns a submission that was validated against the form, or `None` if it has other effects than its row, its
    /// count and deliveries.
    pub fn of(open: &OpenForm, new: &NewSubmission, context: &WriteContext<'_>) -> Option<Self> {
        let OpenForm { account_id, form, listeners, .. } = open;
        let is_limited = open.plan.limits().submissions_per_form >= 0;
        if is_limited
            || !batching::has_few_webhooks(*listeners)
            || !is_plain(form)
            || new.external_id.is_some()
            || !new.spam_reasons.is_empty()
        {
            return None;
        }
        let is_told = *listeners > 0;
        let event = is_told
            .then(|| event_body(SubmissionEvent::Created, context.now, &event_data(form, new, context)));
        let extra = (!new.extra.is_empty()).then(|| serde_json::to_string(&new.extra));
        let one = Self {
            account_id: *account_id,
            form_id: form.id,
            checked_at: form.updated_at,
            id: new.id,
            payload: serde_json::to_string(&new.payload).ok()?,
            extra: extra.transpose().ok()?,
            sent_at: context.now,
            event: event.map(|event| event.to_string()).unwrap_or_default(),
            delivery_ids: (0..*listeners).map(|_| (context.new_id)()).collect(),
            traceparent: context.traceparent.map(str::to_owned),
            depth: depth::of_deliveries(context.depth),
        };
        batching::is_small(one.bytes()).then_some(one)
    }

    /// The id of the submission.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Size of the row with its deliveries.
    pub fn bytes(&self) -> usize {
        let answers = self.payload.len() + self.extra.as_ref().map_or(0, String::len);
        batching::size_bytes(answers, self.event.len(), self.delivery_ids.len())
    }
}

/// Returns whether the form has no limits and no unique fields, and its submissions are sent to webhooks only.
fn is_plain(form: &Form) -> bool {
    form.max_submissions.is_none()
        && form.unique_by.as_ref().is_none_or(Vec::is_empty)
        && form.auto_entry_page_id.is_none()
        && form.notify_email.is_none()
}

/// The result of a batch.
#[derive(Debug, Default)]
pub struct StoredBatch {
    /// Ids of the stored submissions.
    pub ids: Vec<Uuid>,
    /// Webhooks with new deliveries.
    pub webhook_ids: Vec<Uuid>,
    /// Whether submissions are to start automations.
    pub has_triggers: bool,
}

/// Inserts the submissions of forms that are unchanged since the validation, open, and not being edited, with deliveries
/// to all its webhooks. Commits them, unless `conn` is in a transaction.
///
/// Skips submissions with more webhooks than known at their validation, or with a webhook that is being deleted. On an
/// error none is stored.
pub async fn insert_batch(conn: &mut Conn, all: &[BatchSubmission]) -> Result<StoredBatch, Error> {
    let deliveries: Vec<(Uuid, i32, Uuid)> = all
        .iter()
        .flat_map(|one| (1..).zip(&one.delivery_ids).map(|(place, id)| (one.id, place, *id)))
        .collect();
    // The row of the form is locked `for share` although edits are excluded by the advisory lock: locking a row against
    // writes reads its latest committed version, even if that was committed after this statement began. `for key share`
    // would not.
    //
    // The rows of accounts and webhooks are locked as foreign keys would lock them, so that the statement waits for no
    // deletion.
    //
    // The slots are above those of single submissions, so only another batch can hold them; all batches count forms in
    // the same order and can't deadlock.
    let rows = query!(
        r#"with input as materialized (
               select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::timestamptz[], $6::text[],
                                    $7::timestamptz[], $8::text[], $9::text[], $15::smallint[], $16::text[])
                   as input (id, account_id, form_id, lock, checked_at, payload, sent_at, event, traceparent, depth,
                             extra)
           ), ordered as materialized (
               select * from unnest($10::uuid[], $11::int[], $12::uuid[]) as ordered (submission_id, place, id)
           ), free as materialized (
               select form_id, account_id from (select distinct form_id, account_id, lock from input) forms
               where pg_try_advisory_xact_lock_shared(lock)
           ), listening as materialized (
               select f.form_id, w.id, row_number() over (partition by f.form_id order by w.id) as place
               from free f join webhooks w on w.account_id = f.account_id and w.is_active
                   cross join wants(w.id, w.all_forms, w.events, f.form_id, $13)
           ), held as materialized (
               select l.form_id, l.id, l.place from listening l join webhooks w on w.id = l.id and w.is_active
               for key share of w skip locked
           ), starting as materialized (
               select f.form_id, a.id from free f join automations a
                   on a.account_id = f.account_id and a.trigger_form_id = f.form_id and a.is_enabled
           ), place as materialized (
               select input.* from input join free using (form_id, account_id)
                   join forms f on f.id = input.form_id and f.account_id = input.account_id
                   join accounts a on a.id = input.account_id
               where f.updated_at = input.checked_at and (f.closes_at is null or f.closes_at > input.sent_at)
                 and not exists (
                     select from listening l where l.form_id = input.form_id
                       and (not exists (select from held h where h.form_id = l.form_id and h.id = l.id)
                            or not exists (select from ordered o where o.submission_id = input.id and o.place = l.place)))
               for share of f skip locked for key share of a skip locked
           ), stored as (
               insert into submissions (id, account_id, form_id, payload, extra, created_at, updated_at)
               select id, account_id, form_id, payload::jsonb, extra::jsonb, sent_at, sent_at from place
               returning id, form_id
           ), tally as (
               insert into form_tallies as t (form_id, slot, submissions)
               select form_id, $14 + pg_backend_pid() % $14, count(*) from stored group by form_id order by form_id
               on conflict (form_id, slot) do update set submissions = t.submissions + excluded.submissions
           ), delivered as (
               insert into deliveries (id, webhook_id, account_id, submission_id, event, payload, next_attempt_at,
                                       created_at, traceparent, depth)
               select o.id, h.id, p.account_id, p.id, $13, p.event::jsonb, now(), p.sent_at, p.traceparent,
                      p.depth
               from place p join held h using (form_id) join ordered o on o.submission_id = p.id and o.place = h.place
           ), triggered as (
               insert into automation_triggers (account_id, automation_id, submission_id, depth, traceparent,
                                                created_at)
               select p.account_id, s.id, p.id, p.depth - 1, p.traceparent, p.sent_at from place p join starting s using (form_id)
               order by p.id, s.id
           )
           select id, null::uuid as webhook_id, false as "is_trigger!" from stored
           union all
           select null, id, false from (select distinct id from held where form_id in (select form_id from place)) delivered
           union all
           select null, null, true where exists (select from place join starting using (form_id))"#,
        &column(all, |one| one.id),
        &column(all, |one| one.account_id),
        &column(all, |one| one.form_id),
        &column(all, |one| advisory_lock_key(one.form_id)),
        &column(all, |one| one.checked_at),
        &column(all, |one| one.payload.as_str()) as _,
        &column(all, |one| one.sent_at),
        &column(all, |one| one.event.as_str()) as _,
        &column(all, |one| one.traceparent.as_deref()) as _,
        &column(&deliveries, |one| one.0),
        &column(&deliveries, |one| one.1),
        &column(&deliveries, |one| one.2),
        SubmissionEvent::Created.as_str(),
        SLOTS,
        &column(all, |one| one.depth),
        &column(all, |one| one.extra.as_deref()) as _,
    )
    .fetch_all(conn)
    .await?;
    let mut stored = StoredBatch::default();
    for row in rows {
        stored.ids.extend(row.id);
        stored.webhook_ids.extend(row.webhook_id);
        stored.has_triggers |= row.is_trigger;
    }
    Ok(stored)
}

fn column<'a, One, T>(all: &'a [One], part: impl Fn(&'a One) -> T) -> Vec<T> {
    all.iter().map(part).collect()
}
