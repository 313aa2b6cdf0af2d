//! Taking a submission: one statement counts it, within the form's limits, and stores it.
//!
//! Where nothing limits a form, submissions at the same time count apart from each other: a thousand a second are then no
//! queue at one row. See `migrations/postgres/0016_form_tallies.sql`.

use contract::Signal;
use domain::answers::Answers;
use domain::forms::{Shut, shut};
use domain::submissions::{Happening, Told, digest};
use sqlx::query;
use sqlx::types::Json;
use uuid::Uuid;

use super::effects;
use super::spam;
use crate::forms::{Form, find_form, notify_closed};
use crate::write_context::WriteContext;
use crate::{Conn, Error, deliveries};

/// Counters of a form that nothing limits. Connections that are open at the same time have processes of different
/// numbers, so few of them share one.
pub(super) const SLOTS: i32 = 64;

/// A submission about to be stored.
#[derive(Debug)]
pub struct NewSubmission {
    /// Its id.
    pub id: Uuid,
    /// The owner's own name for it.
    pub external_id: Option<String>,
    /// The answers the form keeps.
    pub payload: Answers,
    /// Why it is held to be spam; empty for one that is not.
    pub spam_reasons: Vec<String>,
}

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmissionOutcome {
    /// It is stored, with all that follows. The signals stand in the outbox as well: sent right after the commit, they
    /// are heard sooner.
    Stored(Vec<Signal>),
    /// The form takes no more.
    Refused(Shut),
    /// The form has one that agrees with it on all of `uniqueBy`, or that has its external id.
    Duplicate,
    /// The form is not any more what it was checked against: look again.
    Changed,
    /// The form is being edited, which may take its time: come back, and hold no connection until then.
    Busy,
    /// There is no such form (any more).
    NoForm,
}

/// Stores a submission that was checked against `form`, if that is still what the form is and it takes one more, with
/// all that follows from it: its count, an entry of a page, deliveries, jobs. Spam is stored, and nothing follows.
/// `plan_limit` is -1 for unlimited.
///
/// Count and check are one statement with the insert, so no number of submissions at once passes a limit, and of those
/// that agree on `uniqueBy` one is stored. Webhooks are told by the one that fills the form that it is closed. **Unless it is [`SubmissionOutcome::Stored`], the transaction must be rolled back.**
/// What else is to be committed with it goes into the same transaction, shortly: the form's other submissions wait.
pub async fn insert_submission(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    new: &NewSubmission,
    plan_limit: i64,
    context: &WriteContext<'_>,
) -> Result<SubmissionOutcome, Error> {
    if !new.spam_reasons.is_empty() {
        return put_aside(conn, account_id, form, new, plan_limit, context).await;
    }
    // From here on the form is not edited, so that what is read of it below is what it is.
    let listeners = deliveries::try_lock_listeners(conn, account_id, form.id, Happening::Created.word());
    let Some(listeners) = listeners.await? else { return Ok(SubmissionOutcome::Busy) };
    let is_limited = form.max_submissions.is_some() || plan_limit >= 0;
    let done = if is_limited {
        count_within_limit(conn, account_id, form, new, plan_limit, context).await?
    } else {
        count_apart(conn, account_id, form, new, context).await?
    };
    match done {
        InsertResult::Stored { fills } => {
            let told = told(form, new, context);
            let mut signals = effects::follow(conn, account_id, form, &told, listeners, context).await?;
            if fills {
                signals.extend(notify_closed(conn, account_id, form, Shut::Full, context).await?);
            }
            Ok(SubmissionOutcome::Stored(signals))
        }
        InsertResult::Duplicate => Ok(SubmissionOutcome::Duplicate),
        InsertResult::NoPlace => why_not(conn, account_id, form, plan_limit, context).await,
    }
}

/// How far it came.
enum InsertResult {
    Stored {
        /// There was no place but this.
        fills: bool,
    },
    Duplicate,
    NoPlace,
}

impl InsertResult {
    fn of(has_place: bool, is_stored: bool, fills: bool) -> Self {
        match (has_place, is_stored) {
            (true, true) => Self::Stored { fills },
            (true, false) => Self::Duplicate,
            (false, _) => Self::NoPlace,
        }
    }
}

/// The form's own counter: who counts waits for whoever counted before.
async fn count_within_limit(
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
               insert into submissions (id, account_id, form_id, external_id, payload, unique_digest, created_at,
                                        updated_at)
               select $6, $1, id, $7, $8, $9, $4, $4 from place
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
    )
    .fetch_one(conn)
    .await?;
    Ok(InsertResult::of(done.has_place, done.is_stored, done.fills))
}

/// A counter that no other connection uses: nobody waits for anybody, and their commits reach the disk together.
async fn count_apart(
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
               insert into submissions (id, account_id, form_id, external_id, payload, unique_digest, created_at,
                                        updated_at)
               select $6, $1, id, $7, $8, $9, $4, $4 from place
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
    )
    .fetch_one(conn)
    .await?;
    Ok(InsertResult::of(done.has_place, done.is_stored, false))
}

fn digest_of(form: &Form, payload: &Answers) -> Option<Vec<u8>> {
    let unique_by = form.unique_by.as_deref().unwrap_or_default();
    digest(&form.fields, unique_by, payload).map(|digest| digest.to_vec())
}

pub(super) fn told<'a>(form: &'a Form, new: &'a NewSubmission, context: &WriteContext<'_>) -> Told<'a> {
    Told {
        form_id: form.id,
        form_name: &form.name,
        submission_id: new.id,
        external_id: new.external_id.as_deref(),
        submitted_at: context.now,
        fields: &new.payload,
    }
}

/// Spam is refused where anything else would be, so that it can't learn what it is taken for.
async fn put_aside(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    new: &NewSubmission,
    plan_limit: i64,
    context: &WriteContext<'_>,
) -> Result<SubmissionOutcome, Error> {
    let stored = query!(
        "insert into submissions (id, account_id, form_id, external_id, payload, status, spam_reasons, created_at,
                                  updated_at)
         select $6, $1, id, $7, $8, 'spam', $9, $4, $4 from forms
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
    )
    .execute(&mut *conn)
    .await?;
    match stored.rows_affected() {
        0 => why_not(conn, account_id, form, plan_limit, context).await,
        _ => {
            spam::delete_excess(conn, account_id, form.id).await?;
            Ok(SubmissionOutcome::Stored(Vec::new()))
        }
    }
}

async fn why_not(
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
    let why = shut(context.now, form.closes_at, form.submission_count, form.max_submissions, plan_limit);
    // Reopened between the two statements: asked again, it is taken.
    Ok(why.map_or(SubmissionOutcome::Changed, SubmissionOutcome::Refused))
}
