//! Updates submissions on behalf of the form's owner. The caller must hold the form's lock
//! ([`crate::forms::lock_form`]).

use contract::{Change, Signal};
use domain::answers::Answers;
use domain::fields::FieldType;
use domain::forms::ClosedReason;
use domain::submissions::{Status, SubmissionEvent, SubmissionEventData, digest};
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::effects;
use super::read::{Submission, find_submission};
use super::unique::resolve_duplicates;
use crate::forms::{Form, notify_closed};
use crate::mails::{self, Kind};
use crate::write_context::WriteContext;
use crate::{Conn, Error, deliveries, entries, form_files, outbox, usage};

/// The result of an update.
#[derive(Debug)]
pub enum UpdateOutcome {
    /// The updated submission, and signals to send after the commit, which are in the outbox too.
    Done(Box<Submission>, Vec<Signal>),
    /// Another submission has the same values in `uniqueBy`; nothing was changed.
    Duplicate,
    /// It would count, and the form is full; nothing was changed.
    Refused(ClosedReason),
    /// Its files, of so many bytes, exceed the storage limit. The caller must roll back.
    StorageFull(i64),
    /// There is no such submission.
    Gone,
}

/// What an account may have when a submission begins to count; -1 for unlimited.
#[derive(Debug, Clone, Copy)]
pub struct StatusLimits {
    /// Submissions of the form.
    pub submissions: i64,
    /// Bytes in the account's storage, with the submission's files.
    pub storage_bytes: i64,
}

/// Replaces the answers of a submission, which were validated against `form`, and sends the event to webhooks.
pub async fn update_payload(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    submission: &Submission,
    payload: &Answers,
    context: &WriteContext<'_>,
) -> Result<UpdateOutcome, Error> {
    let digest = digest_of(form, payload).filter(|_| submission.status.counts());
    // A submission that keeps its unique values may stay a duplicate.
    let updated = query!(
        "update submissions s
         set payload = $4, unique_digest = $5, is_twin = is_twin and unique_digest is not distinct from $5,
             updated_at = greatest($6, updated_at + interval '1 millisecond')
         where account_id = $1 and form_id = $2 and id = $3
           and (unique_digest is not distinct from $5 or $5::bytea is null
                or not exists (select from submissions o
                               where o.form_id = s.form_id and o.unique_digest = $5 and not o.is_twin))",
        account_id,
        form.id,
        submission.id,
        Json(payload) as _,
        digest.as_ref().map(<[u8; 32]>::as_slice),
        context.now,
    )
    .execute(&mut *conn)
    .await?;
    if updated.rows_affected() == 0 {
        return Ok(UpdateOutcome::Duplicate);
    }
    resolve_duplicates(conn, account_id, form.id).await?;
    let Some(submission) = find_submission(conn, account_id, form.id, submission.id).await? else {
        return Ok(UpdateOutcome::Gone);
    };
    let signals = if submission.status.counts() {
        effects::publish_event(
            conn,
            account_id,
            SubmissionEvent::Updated,
            &event_data(form, &submission),
            context,
        )
        .await?
    } else {
        Vec::new()
    };
    Ok(UpdateOutcome::Done(Box::new(submission), signals))
}

/// Sets the status of a submission. One that is no longer spam counts from now on, if the form has room and no other
/// submission has its unique values, and all effects are applied as for a new one. One that becomes spam loses its
/// unique values and its page entry.
///
/// A submission that counts gets the files that its answers name and that were not kept while it was spam, if they still
/// exist. The caller must hold the lock of the account's counters.
pub async fn update_status(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    submission: &Submission,
    status: Status,
    limits: StatusLimits,
    context: &WriteContext<'_>,
) -> Result<UpdateOutcome, Error> {
    if submission.status == status {
        return Ok(UpdateOutcome::Done(Box::new(submission.clone()), Vec::new()));
    }
    let plan_limit = limits.submissions;
    let counted = submission.status.counts();
    let mut digest = None;
    if status.counts() && !counted {
        // It came in time, so only the limits are checked.
        if let Some(why) = ClosedReason::of(
            submission.created_at,
            None,
            form.submission_count,
            form.max_submissions,
            plan_limit,
        ) {
            return Ok(UpdateOutcome::Refused(why));
        }
        digest = digest_of(form, &submission.payload);
        if is_taken(conn, form.id, digest.as_ref().map(<[u8; 32]>::as_slice)).await? {
            return Ok(UpdateOutcome::Duplicate);
        }
    }
    let more = i64::from(status.counts()) - i64::from(counted);
    write_status(conn, account_id, form, submission, status, digest.as_ref(), context).await?;
    let mut signals = Vec::new();
    if more != 0 {
        update_count(conn, account_id, form.id, more).await?;
    }
    if more > 0 {
        let bytes = bind_waiting(conn, account_id, form, submission).await?
            + form_files::update_counted(conn, account_id, submission.id, true).await?;
        if bytes > 0 && !usage::reserve_bytes(conn, account_id, bytes, limits.storage_bytes).await? {
            return Ok(UpdateOutcome::StorageFull(bytes));
        }
    } else if more < 0 {
        let bytes = form_files::update_counted(conn, account_id, submission.id, false).await?;
        usage::release_bytes(conn, account_id, bytes).await?;
    }
    if more > 0 {
        let data = event_data(form, submission);
        let created = SubmissionEvent::Created.as_str();
        let listeners = deliveries::lock_listeners(conn, account_id, form.id, created).await?;
        signals = effects::apply_effects(conn, account_id, form, &data, listeners, context).await?;
        let why =
            |count| ClosedReason::of(context.now, form.closes_at, count, form.max_submissions, plan_limit);
        if let (None, Some(why)) = (why(form.submission_count), why(form.submission_count + more)) {
            signals.extend(notify_closed(conn, account_id, form, why, context).await?);
        }
    } else if more < 0 {
        resolve_duplicates(conn, account_id, form.id).await?;
        mails::delete_mail(conn, account_id, Kind::Submission, submission.id).await?;
        let shown = entries::delete_entries_of_submissions(conn, account_id, &[submission.id]).await?;
        let changes: Vec<Change> = shown.into_iter().map(Change::from).collect();
        signals = outbox::insert_orders(conn, &[], &changes, context.traceparent, context.now).await?;
    }
    let changed = find_submission(conn, account_id, form.id, submission.id).await?;
    Ok(changed.map_or(UpdateOutcome::Gone, |submission| UpdateOutcome::Done(Box::new(submission), signals)))
}

/// Binds the unbound files among the answers of a submission that counts from now on. Returns their bytes, which are not
/// reserved yet.
async fn bind_waiting(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    submission: &Submission,
) -> Result<i64, Error> {
    let mut bytes = 0;
    for field in form.fields.iter().filter(|field| field.kind == FieldType::File) {
        let answer = submission.payload.get(&field.name).and_then(|answer| answer.as_str());
        let Some(id) = answer.and_then(|answer| answer.parse::<Uuid>().ok()) else { continue };
        let (target, file) = ((form.id, submission.id), (field.name.as_str(), id));
        bytes += form_files::bind(conn, account_id, target, file, true).await?.unwrap_or_default();
    }
    Ok(bytes)
}

/// Adds `more`, which may be negative, to the submission count of a form. Returns an error if the count would become
/// negative.
pub async fn update_count(conn: &mut Conn, account_id: Uuid, form_id: Uuid, more: i64) -> Result<(), Error> {
    query!(
        "update forms set submission_count = submission_count + $3 where account_id = $1 and id = $2",
        account_id,
        form_id,
        more,
    )
    .execute(conn)
    .await?;
    Ok(())
}

async fn write_status(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    submission: &Submission,
    status: Status,
    digest: Option<&[u8; 32]>,
    context: &WriteContext<'_>,
) -> Result<(), Error> {
    // Between statuses that count, the unique values stay unchanged.
    query!(
        "update submissions
         set status = $4,
             unique_digest = case when status = 'spam' then $5 when $4 <> 'spam' then unique_digest end,
             is_twin = is_twin and $4 <> 'spam',
             spam_reasons = case when $4 = 'spam' then spam_reasons else '{}' end,
             updated_at = greatest($6, updated_at + interval '1 millisecond')
         where account_id = $1 and form_id = $2 and id = $3",
        account_id,
        form.id,
        submission.id,
        status.as_str(),
        digest.map(<[u8; 32]>::as_slice),
        context.now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

async fn is_taken(conn: &mut Conn, form_id: Uuid, digest: Option<&[u8]>) -> Result<bool, Error> {
    let taken = query_scalar!(
        r#"select exists (select from submissions where form_id = $1 and unique_digest = $2 and not is_twin)
           as "taken!""#,
        form_id,
        digest,
    )
    .fetch_one(conn)
    .await?;
    Ok(taken)
}

fn digest_of(form: &Form, payload: &Answers) -> Option<[u8; 32]> {
    digest(&form.fields, form.unique_by.as_deref().unwrap_or_default(), payload)
}

fn event_data<'a>(form: &'a Form, submission: &'a Submission) -> SubmissionEventData<'a> {
    SubmissionEventData {
        form_id: form.id,
        form_name: &form.name,
        submission_id: submission.id,
        external_id: submission.external_id.as_deref(),
        submitted_at: submission.created_at,
        fields: &submission.payload,
    }
}
