//! Inserts a submission. One statement counts it within the form's limits and stores it.
//!
//! Submissions of a form without limits are counted in separate slots, so that a thousand per second don't queue for
//! one row. See `migrations/postgres/0016_form_tallies.sql`.

use contract::Signal;
use domain::answers::Answers;
use domain::forms::ClosedReason;
use domain::honeypot::reasons;
use domain::submissions::{SubmissionEvent, SubmissionEventData, digest};
use sqlx::query;
use sqlx::types::Json;
use uuid::Uuid;

use super::effects;
use super::spam;
use crate::forms::{Form, find_form, notify_closed};
use crate::write_context::WriteContext;
use crate::{Conn, Error, deliveries};

/// Number of counter slots of a form without limits. Concurrent connections have different backend process ids, so few
/// of them share a slot.
pub(super) const SLOTS: i32 = 64;

/// A submission to store.
#[derive(Debug)]
pub struct NewSubmission {
    pub id: Uuid,
    /// The owner's id for it.
    pub external_id: Option<String>,
    /// The stored answers.
    pub payload: Answers,
    /// Answers to fields that the form does not have, if it stores them.
    pub extra: Answers,
    /// Why it is taken for spam; empty otherwise.
    pub spam_reasons: Vec<String>,
}

impl NewSubmission {
    /// The value of `submissions.extra`.
    fn extra_column(&self) -> Option<Json<&Answers>> {
        (!self.extra.is_empty()).then_some(Json(&self.extra))
    }
}

/// The result of inserting a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmissionOutcome {
    /// Stored with all its effects. Sending the signals after the commit is optional: they are in the outbox too.
    Stored(Vec<Signal>),
    /// The form is closed.
    Refused(ClosedReason),
    /// Another submission has the same values in `uniqueBy`, or the same external id.
    Duplicate,
    /// The form has changed since the validation; validate again.
    Changed,
    /// The form is being edited, which may take a while. Retry later without holding a connection.
    Busy,
    /// The address has sent too many submissions, and the form has as many of those as are stored.
    RateLimited,
    /// The form does not exist.
    NoForm,
}

/// Stores a submission that was validated against `form`, with all its effects: count, page entry, deliveries and jobs.
/// The form must be unchanged and open. Spam is stored without effects. `plan_limit` is -1 for unlimited.
///
/// One statement checks, counts and inserts, so concurrent submissions can't exceed a limit, and of those with equal
/// `uniqueBy` values only one is stored. The submission that fills the form sends `form.closed`. **Unless the result is
/// [`SubmissionOutcome::Stored`], the caller must roll back.** Keep the transaction short: the form's other submissions
/// wait for it.
pub async fn insert_submission(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    new: &NewSubmission,
    plan_limit: i64,
    context: &WriteContext<'_>,
) -> Result<SubmissionOutcome, Error> {
    if !new.spam_reasons.is_empty() {
        return insert_spam(conn, account_id, form, new, plan_limit, context).await;
    }
    // From here on the form is not edited, so the reads below are consistent.
    let listeners =
        deliveries::try_lock_listeners(conn, account_id, form.id, SubmissionEvent::Created.as_str());
    let Some(listeners) = listeners.await? else { return Ok(SubmissionOutcome::Busy) };
    let is_limited = form.max_submissions.is_some() || plan_limit >= 0;
    let done = if is_limited {
        insert_within_limit(conn, account_id, form, new, plan_limit, context).await?
    } else {
        insert_unlimited(conn, account_id, form, new, context).await?
    };
    match done {
        InsertResult::Stored { fills } => {
            let data = event_data(form, new, context);
            let mut signals =
                effects::apply_effects(conn, account_id, form, &data, listeners, context).await?;
            if fills {
                signals.extend(notify_closed(conn, account_id, form, ClosedReason::Full, context).await?);
            }
            Ok(SubmissionOutcome::Stored(signals))
        }
        InsertResult::Duplicate => Ok(SubmissionOutcome::Duplicate),
        InsertResult::Rejected => find_rejection(conn, account_id, form, plan_limit, context).await,
    }
}

/// The result of the insert statement.
enum InsertResult {
    Stored {
        /// Whether the form is full now.
        fills: bool,
    },
    Duplicate,
    Rejected,
}

impl InsertResult {
    fn of(has_place: bool, is_stored: bool, fills: bool) -> Self {
        match (has_place, is_stored) {
            (true, true) => Self::Stored { fills },
            (true, false) => Self::Duplicate,
            (false, _) => Self::Rejected,
        }
    }
}

/// Counts in the form's row, so concurrent submissions wait for each other.
async fn insert_within_limit(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    new: &NewSubmission,
    plan_limit: i64,
    context: &WriteContext<'_>,
) -> Result<InsertResult, Error> {
    let done = query!(
        r#"with place as (
               update forms set submission_count = submission_count + 1
               where account_id = $1 and id = $2 and updated_at = $3 and (closes_at is null or closes_at > $4)
                 and submission_count + coalesce((select sum(submissions) from form_tallies where form_id = $2), 0)
                     < least(max_submissions, case when $5::bigint >= 0 then $5 end)
               returning id,
                   submission_count + coalesce((select sum(submissions) from form_tallies where form_id = $2), 0)
                   >= least(max_submissions, case when $5 >= 0 then $5 end) as is_last
           ), stored as (
               insert into submissions (id, account_id, form_id, external_id, payload, unique_digest, extra,
                                        created_at, updated_at)
               select $6, $1, id, $7, $8, $9, $10, $4, $4 from place
               on conflict do nothing returning id
           )
           select exists (select from place) as "has_place!", exists (select from stored) as "is_stored!",
                  coalesce((select is_last from place), false) as "fills!""#,
        account_id,
        form.id,
        form.updated_at,
        context.now,
        plan_limit,
        new.id,
        new.external_id,
        Json(&new.payload) as _,
        digest_of(form, &new.payload),
        new.extra_column() as _,
    )
    .fetch_one(conn)
    .await?;
    Ok(InsertResult::of(done.has_place, done.is_stored, done.fills))
}

/// Counts in the slot of this connection, so submissions don't wait for each other and their commits share a write to
/// disk.
async fn insert_unlimited(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    new: &NewSubmission,
    context: &WriteContext<'_>,
) -> Result<InsertResult, Error> {
    let done = query!(
        r#"with place as (
               select id from forms
               where account_id = $1 and id = $2 and updated_at = $3 and (closes_at is null or closes_at > $4)
           ), tally as (
               insert into form_tallies as t (form_id, slot, submissions)
               select id, pg_backend_pid() % $5, 1 from place
               on conflict (form_id, slot) do update set submissions = t.submissions + 1
           ), stored as (
               insert into submissions (id, account_id, form_id, external_id, payload, unique_digest, extra,
                                        created_at, updated_at)
               select $6, $1, id, $7, $8, $9, $10, $4, $4 from place
               on conflict do nothing returning id
           )
           select exists (select from place) as "has_place!", exists (select from stored) as "is_stored!""#,
        account_id,
        form.id,
        form.updated_at,
        context.now,
        SLOTS,
        new.id,
        new.external_id,
        Json(&new.payload) as _,
        digest_of(form, &new.payload),
        new.extra_column() as _,
    )
    .fetch_one(conn)
    .await?;
    Ok(InsertResult::of(done.has_place, done.is_stored, false))
}

fn digest_of(form: &Form, payload: &Answers) -> Option<Vec<u8>> {
    let unique_by = form.unique_by.as_deref().unwrap_or_default();
    digest(&form.fields, unique_by, payload).map(|digest| digest.to_vec())
}

pub(super) fn event_data<'a>(
    form: &'a Form,
    new: &'a NewSubmission,
    context: &WriteContext<'_>,
) -> SubmissionEventData<'a> {
    SubmissionEventData {
        form_id: form.id,
        form_name: &form.name,
        submission_id: new.id,
        external_id: new.external_id.as_deref(),
        submitted_at: context.now,
        fields: &new.payload,
    }
}

/// Stores spam. It is rejected in the same cases as other submissions, so that a spammer learns nothing.
async fn insert_spam(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    new: &NewSubmission,
    plan_limit: i64,
    context: &WriteContext<'_>,
) -> Result<SubmissionOutcome, Error> {
    let is_rate_limited = new.spam_reasons.iter().any(|reason| reason == reasons::RATE);
    if is_rate_limited && spam::is_full_of_rate_limited(conn, account_id, form.id).await? {
        return Ok(SubmissionOutcome::RateLimited);
    }
    let stored = query!(
        "insert into submissions (id, account_id, form_id, external_id, payload, status, spam_reasons, extra,
                                  created_at, updated_at)
         select $6, $1, id, $7, $8, 'spam', $9, $10, $4, $4 from forms
         where account_id = $1 and id = $2 and updated_at = $3 and (closes_at is null or closes_at > $4)
           and ((max_submissions is null and $5::bigint = -1)
                or submission_count + coalesce((select sum(submissions) from form_tallies where form_id = $2), 0)
                   < least(max_submissions, case when $5 >= 0 then $5 end))",
        account_id,
        form.id,
        form.updated_at,
        context.now,
        plan_limit,
        new.id,
        new.external_id,
        Json(&new.payload) as _,
        &new.spam_reasons,
        new.extra_column() as _,
    )
    .execute(&mut *conn)
    .await?;
    match stored.rows_affected() {
        0 => find_rejection(conn, account_id, form, plan_limit, context).await,
        _ => {
            spam::delete_excess_spam(conn, account_id, form.id, context.now).await?;
            Ok(SubmissionOutcome::Stored(Vec::new()))
        }
    }
}

async fn find_rejection(
    conn: &mut Conn,
    account_id: Uuid,
    checked: &Form,
    plan_limit: i64,
    context: &WriteContext<'_>,
) -> Result<SubmissionOutcome, Error> {
    let Some(form) = find_form(conn, account_id, checked.id).await? else {
        return Ok(SubmissionOutcome::NoForm);
    };
    if form.updated_at != checked.updated_at {
        return Ok(SubmissionOutcome::Changed);
    }
    let why = ClosedReason::of(
        context.now,
        form.closes_at,
        form.submission_count,
        form.max_submissions,
        plan_limit,
    );
    // Reopened between the two statements: a retry will be stored.
    Ok(why.map_or(SubmissionOutcome::Changed, SubmissionOutcome::Refused))
}
