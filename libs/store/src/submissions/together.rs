//! Submissions of many visitors, to whatever forms, stored at once: one statement, one commit, one write to disk.
//!
//! This is for [`is_plain`] forms alone, of which a submission is its row and its count and nothing else. A statement
//! for many must wait for nobody, or one form that is edited for a minute would hold up all others: what isn't free at
//! once is left out, and whoever brought it takes it by itself ([`super::take_submission`]), which also says why.

use chrono::{DateTime, Utc};
use sqlx::query_scalar;
use uuid::Uuid;

use super::taking::{NewSubmission, SLOTS};
use crate::forms::{Form, lock_number};
use crate::{Conn, Error};

/// A submission of a plain form, checked, and about to be stored.
#[derive(Debug)]
pub struct Plain {
    account_id: Uuid,
    form_id: Uuid,
    /// What the form was when it was checked: the time of its last edit.
    checked_at: DateTime<Utc>,
    id: Uuid,
    /// The answers, as JSON.
    payload: String,
    sent_at: DateTime<Utc>,
}

impl Plain {
    /// One that was checked against `form`; none if more follows from it than its row and its count. `plan_limit` is -1
    /// for unlimited.
    pub fn of(
        account_id: Uuid,
        form: &Form,
        new: &NewSubmission,
        plan_limit: i64,
        now: DateTime<Utc>,
    ) -> Option<Self> {
        if !is_plain(form, plan_limit) || new.external_id.is_some() || !new.spam_reasons.is_empty() {
            return None;
        }
        Some(Self {
            account_id,
            form_id: form.id,
            checked_at: form.updated_at,
            id: new.id,
            payload: serde_json::to_string(&new.payload).ok()?,
            sent_at: now,
        })
    }

    /// Its id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Bytes of its answers.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// Whether nothing limits the form, nothing in it is unique, and nobody is told of its submissions but by webhooks.
fn is_plain(form: &Form, plan_limit: i64) -> bool {
    plan_limit < 0
        && form.max_submissions.is_none()
        && form.unique_by.as_ref().is_none_or(Vec::is_empty)
        && form.auto_entry_page_id.is_none()
        && form.notify_email.is_none()
}

/// Stores those whose form is still what they were checked against, open, listened to by no webhook, and not being
/// edited; gives their ids. They are committed then, unless `conn` is in a transaction.
///
/// # Errors
/// The database's; none is stored then.
pub async fn take_together(conn: &mut Conn, all: &[Plain]) -> Result<Vec<Uuid>, Error> {
    // The row of the form is locked although nobody edits it under the other lock: whoever locks a row so that it can't be
    // written sees the last that was committed of it, be it after this statement began. `for key share` would not do.
    //
    // The account's is taken as the reference to it will be, so that nobody here waits for one that is being deleted.
    //
    // Slots above those of single submissions: only another statement such as this is waited for there, and as all count
    // forms in the same order, none waits for one that waits for it.
    let stored = query_scalar!(
        r#"with asked as (
               select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::timestamptz[], $6::text[],
                                    $7::timestamptz[])
                   as asked (id, account_id, form_id, lock, checked_at, payload, sent_at)
           ), free as materialized (
               select form_id from (select distinct form_id, lock from asked) forms
               where pg_try_advisory_xact_lock_shared(lock)
           ), place as materialized (
               select asked.* from asked join free using (form_id)
                   join forms f on f.id = asked.form_id and f.account_id = asked.account_id
                   join accounts a on a.id = asked.account_id
               where f.updated_at = asked.checked_at and (f.closes_at is null or f.closes_at > asked.sent_at)
                 and not exists (
                     select from webhooks w where w.account_id = asked.account_id and w.is_active
                       and (w.all_forms or exists (select from webhook_forms where webhook_id = w.id and form_id = f.id)))
               for share of f skip locked for key share of a skip locked
           ), stored as (
               insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
               select id, account_id, form_id, payload::jsonb, sent_at, sent_at from place
               returning id, form_id
           ), tally as (
               insert into form_tallies as t (form_id, slot, submissions)
               select form_id, $8 + pg_backend_pid() % $8, count(*) from stored group by form_id order by form_id
               on conflict (form_id, slot) do update set submissions = t.submissions + excluded.submissions
           )
           select id as "id!" from stored"#,
        &column(all, |one| one.id),
        &column(all, |one| one.account_id),
        &column(all, |one| one.form_id),
        &column(all, |one| lock_number(one.form_id)),
        &column(all, |one| one.checked_at),
        &column(all, |one| one.payload.as_str()) as _,
        &column(all, |one| one.sent_at),
        SLOTS,
    )
    .fetch_all(conn)
    .await?;
    Ok(stored)
}

fn column<'a, T>(all: &'a [Plain], part: impl Fn(&'a Plain) -> T) -> Vec<T> {
    all.iter().map(part).collect()
}
