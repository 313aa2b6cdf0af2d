//! What a form's owner makes of submissions. Whoever calls these has the form's row ([`crate::forms::lock_form`]).

use contract::{Change, Signal};
use domain::answers::Answers;
use domain::forms::{Shut, shut};
use domain::submissions::{Happening, Status, Told, digest};
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

/// What became of a change.
#[derive(Debug)]
pub enum UpdateOutcome {
    /// The submission as it is now, and what may be told right after the commit; it stands in the outbox as well.
    Done(Box<Submission>, Vec<Signal>),
    /// It would agree with another on all of `uniqueBy`: nothing was changed.
    Duplicate,
    /// It would count, and the form takes no more: nothing was changed.
    Refused(Shut),
    /// There is no such submission (any more).
    Gone,
}

/// Gives a submission other answers, which were checked against `form`, and tells webhooks of it.
pub async fn update_payload(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    submission: &Submission,
    payload: &Answers,
    context: &WriteContext<'_>,
) -> Result<UpdateOutcome, Error> {
    let digest = digest_of(form, payload).filter(|_| submission.status.counts());
    // One that keeps what was unique in it stays where it is, be it an old twin.
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
        effects::tell(conn, account_id, Happening::Updated, &told(form, &submission), context).await?
    } else {
        Vec::new()
    };
    Ok(UpdateOutcome::Done(Box::new(submission), signals))
}

/// Makes of a submission what its form's owner takes it for. What is found to be no spam counts from now on, if the
/// form has room and no twin of it, and all follows as if it had come now. What is found to be spam gives up its place
/// and its entry of a page. `plan_limit` is -1 for unlimited.
pub async fn update_status(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    submission: &Submission,
    status: Status,
    plan_limit: i64,
    context: &WriteContext<'_>,
) -> Result<UpdateOutcome, Error> {
    if submission.status == status {
        return Ok(UpdateOutcome::Done(Box::new(submission.clone()), Vec::new()));
    }
    let counted = submission.status.counts();
    let mut digest = None;
    if status.counts() && !counted {
        // It came in time; only the room is asked for.
        if let Some(why) =
            shut(submission.created_at, None, form.submission_count, form.max_submissions, plan_limit)
        {
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
        count_files(conn, account_id, submission.id, more > 0).await?;
    }
    if more > 0 {
        let told = told(form, submission);
        let created = Happening::Created.word();
        let listeners = deliveries::lock_listeners(conn, account_id, form.id, created).await?;
        signals = effects::follow(conn, account_id, form, &told, listeners, context).await?;
        let why = |count| shut(context.now, form.closes_at, count, form.max_submissions, plan_limit);
        if let (None, Some(why)) = (why(form.submission_count), why(form.submission_count + more)) {
            signals.extend(notify_closed(conn, account_id, form, why, context).await?);
        }
    } else if more < 0 {
        resolve_duplicates(conn, account_id, form.id).await?;
        mails::delete_mail(conn, account_id, Kind::Submission, submission.id).await?;
        let shown = entries::delete_entries_of_submissions(conn, account_id, &[submission.id]).await?;
        let changes: Vec<Change> = shown
            .into_iter()
            .map(|shown| Change::Page { subdomain_id: shown.subdomain_id, slug: shown.slug })
            .collect();
        signals = outbox::insert_orders(conn, &[], &changes, context.traceparent, context.now).await?;
    }
    let changed = find_submission(conn, account_id, form.id, submission.id).await?;
    Ok(changed.map_or(UpdateOutcome::Gone, |submission| UpdateOutcome::Done(Box::new(submission), signals)))
}

/// Counts the bytes of a submission's files, or no more. They are here already and were let in: what is found to be no
/// spam may pass the plan's limit.
async fn count_files(
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
    counts: bool,
) -> Result<(), Error> {
    match form_files::update_counted(conn, account_id, submission_id, counts).await? {
        0 => Ok(()),
        bytes if counts => usage::reserve_bytes(conn, account_id, bytes, -1).await.map(drop),
        bytes => usage::release_bytes(conn, account_id, bytes).await,
    }
}

/// Counts so many submissions of a form more, or less.
/// Returns an error if the count would become negative.
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
    // Between the two that count, what is unique in it stays as it is.
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
        status.word(),
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

fn told<'a>(form: &'a Form, submission: &'a Submission) -> Told<'a> {
    Told {
        form_id: form.id,
        form_name: &form.name,
        submission_id: submission.id,
        external_id: submission.external_id.as_deref(),
        submitted_at: submission.created_at,
        fields: &submission.payload,
    }
}
