//! Submissions of many visitors, to whatever forms, stored at once: one statement, one commit, one write to disk.
//!
//! This is for [`is_plain`] forms alone, of which a submission is its row, its count and what webhooks are told, and nothing
//! else. A statement for many must wait for nobody, or one form that is edited for a minute would hold up all others: what
//! isn't free at once is left out, and whoever brought it takes it by itself ([`super::insert_submission`]), which also says
//! why.

use chrono::{DateTime, Utc};
use domain::submissions::{Happening, event, together};
use sqlx::query;
use uuid::Uuid;

use super::insert::{NewSubmission, SLOTS, told};
use crate::form_locks::advisory_lock_key;
use crate::forms::{Form, OpenForm};
use crate::write_context::WriteContext;
use crate::{Conn, Error};

/// A submission of a plain form, checked, and about to be stored.
#[derive(Debug)]
pub struct BatchSubmission {
    account_id: Uuid,
    form_id: Uuid,
    /// What the form was when it was checked: the time of its last edit.
    checked_at: DateTime<Utc>,
    id: Uuid,
    /// The answers, as JSON.
    payload: String,
    sent_at: DateTime<Utc>,
    /// What webhooks are told, as JSON; empty when there seemed to be none.
    event: String,
    /// Ids of its deliveries, as many as there seemed to be webhooks.
    delivery_ids: Vec<Uuid>,
    traceparent: Option<String>,
}

impl BatchSubmission {
    /// One that was checked against the form; none if more follows from it than its row, its count and deliveries.
    pub fn of(open: &OpenForm, new: &NewSubmission, context: &WriteContext<'_>) -> Option<Self> {
        let OpenForm { account_id, form, listeners, .. } = open;
        let is_limited = open.plan.limits().submissions_per_form >= 0;
        if is_limited
            || !together::are_few(*listeners)
            || !is_plain(form)
            || new.external_id.is_some()
            || !new.spam_reasons.is_empty()
        {
            return None;
        }
        let is_told = *listeners > 0;
        let event = is_told.then(|| event(Happening::Created, context.now, &told(form, new, context)));
        let one = Self {
            account_id: *account_id,
            form_id: form.id,
            checked_at: form.updated_at,
            id: new.id,
            payload: serde_json::to_string(&new.payload).ok()?,
            sent_at: context.now,
            event: event.map(|event| event.to_string()).unwrap_or_default(),
            delivery_ids: (0..*listeners).map(|_| (context.new_id)()).collect(),
            traceparent: context.traceparent.filter(|_| is_told).map(str::to_owned),
        };
        together::is_light(one.bytes()).then_some(one)
    }

    /// Its id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Bytes it takes to store it.
    pub fn bytes(&self) -> usize {
        together::bytes(self.payload.len(), self.event.len(), self.delivery_ids.len())
    }
}

/// Whether nothing limits the form, nothing in it is unique, and nobody is told of its submissions but by webhooks.
fn is_plain(form: &Form) -> bool {
    form.max_submissions.is_none()
        && form.unique_by.as_ref().is_none_or(Vec::is_empty)
        && form.auto_entry_page_id.is_none()
        && form.notify_email.is_none()
}

/// What was stored together.
#[derive(Debug, Default)]
pub struct StoredBatch {
    /// Ids of the submissions.
    pub ids: Vec<Uuid>,
    /// Webhooks that have deliveries of them.
    pub webhook_ids: Vec<Uuid>,
}

/// Stores those whose form is still what they were checked against, open, and not being edited, with deliveries to all
/// its webhooks. They are committed then, unless `conn` is in a transaction.
///
/// Left out are those of which more webhooks are to be told than were known, or one that is being deleted.
/// On an error none is stored.
pub async fn insert_batch(conn: &mut Conn, all: &[BatchSubmission]) -> Result<StoredBatch, Error> {
    let deliveries: Vec<(Uuid, i32, Uuid)> = all
        .iter()
        .flat_map(|one| (1..).zip(&one.delivery_ids).map(|(place, id)| (one.id, place, *id)))
        .collect();
    // The row of the form is locked although nobody edits it under the other lock: whoever locks a row so that it can't be
    // written sees the last that was committed of it, be it after this statement began. `for key share` would not do.
    //
    // The account's and the webhooks' are taken as the references to them will be, so that nobody here waits for one that is
    // being deleted.
    //
    // Slots above those of single submissions: only another statement such as this is waited for there, and as all count
    // forms in the same order, none waits for one that waits for it.
    let rows = query!(
        r#"with asked as materialized (
               select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::timestamptz[], $6::text[],
                                    $7::timestamptz[], $8::text[], $9::text[])
                   as asked (id, account_id, form_id, lock, checked_at, payload, sent_at, event, traceparent)
           ), ordered as materialized (
               select * from unnest($10::uuid[], $11::int[], $12::uuid[]) as ordered (submission_id, place, id)
           ), free as materialized (
               select form_id, account_id from (select distinct form_id, account_id, lock from asked) forms
               where pg_try_advisory_xact_lock_shared(lock)
           ), listening as materialized (
               select f.form_id, w.id, row_number() over (partition by f.form_id order by w.id) as place
               from free f join webhooks w on w.account_id = f.account_id and w.is_active
                   cross join wants(w.id, w.all_forms, w.events, f.form_id, $13)
           ), held as materialized (
               select l.form_id, l.id, l.place from listening l join webhooks w on w.id = l.id and w.is_active
               for key share of w skip locked
           ), place as materialized (
               select asked.* from asked join free using (form_id, account_id)
                   join forms f on f.id = asked.form_id and f.account_id = asked.account_id
                   join accounts a on a.id = asked.account_id
               where f.updated_at = asked.checked_at and (f.closes_at is null or f.closes_at > asked.sent_at)
                 and not exists (
                     select from listening l where l.form_id = asked.form_id
                       and (not exists (select from held h where h.form_id = l.form_id and h.id = l.id)
                            or not exists (select from ordered o where o.submission_id = asked.id and o.place = l.place)))
               for share of f skip locked for key share of a skip locked
           ), stored as (
               insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
               select id, account_id, form_id, payload::jsonb, sent_at, sent_at from place
               returning id, form_id
           ), tally as (
               insert into form_tallies as t (form_id, slot, submissions)
               select form_id, $14 + pg_backend_pid() % $14, count(*) from stored group by form_id order by form_id
               on conflict (form_id, slot) do update set submissions = t.submissions + excluded.submissions
           ), told as (
               insert into deliveries (id, webhook_id, account_id, submission_id, event, payload, next_attempt_at,
                                       created_at, traceparent)
               select o.id, h.id, p.account_id, p.id, $13, p.event::jsonb, p.sent_at, p.sent_at, p.traceparent
               from place p join held h using (form_id) join ordered o on o.submission_id = p.id and o.place = h.place
           )
           select id, null::uuid as webhook_id from stored
           union all
           select null, id from (select distinct id from held where form_id in (select form_id from place)) told"#,
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
        Happening::Created.word(),
        SLOTS,
    )
    .fetch_all(conn)
    .await?;
    let mut stored = StoredBatch::default();
    for row in rows {
        stored.ids.extend(row.id);
        stored.webhook_ids.extend(row.webhook_id);
    }
    Ok(stored)
}

fn column<'a, One, T>(all: &'a [One], part: impl Fn(&'a One) -> T) -> Vec<T> {
    all.iter().map(part).collect()
}
