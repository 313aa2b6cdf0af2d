//! Inserts, updates and deletes forms.
//!
//! An edit holds the form's lock exclusively ([`lock_form`]), submissions share it. So edits and submissions are
//! serialized, and a submission that was validated against an outdated version is rejected. The lock is advisory, not a
//! row lock, because advisory locks queue: an edit would wait for a row lock until a moment without submissions.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::read::{Form, find_form};
use crate::accounts::read_plan;
use crate::form_locks::lock_form_exclusive;
use crate::{Conn, DELETION_TIMEOUT, Error, automations};

/// Inserts a form.
pub async fn insert_form(conn: &mut Conn, account_id: Uuid, form: &Form) -> Result<(), Error> {
    query!(
        "insert into forms (id, account_id, folder_id, name, fields, success_message, submit_label, redirect_url,
                            closes_at, max_submissions, unique_by, public_results, auto_entry_page_id, spam_honeypot,
                            spam_min_seconds, spam_proof_of_work, notify_email, created_at, updated_at,
                            closing_look_at, spam_per_minute, spam_per_day, unknown_fields, appearance)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
                 case when $9::timestamptz > $18::timestamptz then $9::timestamptz end, $20, $21, $22, $23)",
        form.id,
        account_id,
        form.folder_id,
        form.name,
        Json(&form.fields) as _,
        form.success_message,
        form.submit_label,
        form.redirect_url,
        form.closes_at,
        form.max_submissions,
        form.unique_by.as_deref(),
        form.public_results,
        form.auto_entry_page_id,
        form.spam.honeypot,
        form.spam.min_seconds,
        form.spam.proof_of_work,
        form.notify_email,
        form.created_at,
        form.updated_at,
        form.spam.per_minute,
        form.spam.per_day,
        form.unknown_fields.as_str(),
        Json(&form.appearance) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks and returns a form. Until the end of the transaction it is not edited and gets no submission. Adds the tallies
/// of its submissions to the count in its row.
pub async fn lock_form(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Form>, Error> {
    lock_form_exclusive(conn, id).await?;
    query!(
        "with gathered as (
             delete from form_tallies t using forms f
             where f.account_id = $1 and f.id = $2 and t.form_id = f.id returning t.submissions
         )
         update forms
         set submission_count = submission_count + coalesce((select sum(submissions) from gathered), 0)::bigint
         where account_id = $1 and id = $2",
        account_id,
        id,
    )
    .execute(&mut *conn)
    .await?;
    find_form(conn, account_id, id).await
}

/// Writes all fields of a form except its count. `updated_at` rises even if the clock does not. If the edit closes the
/// form, the job-runner finds it and sends the event ([`super::close_form`]).
pub async fn update_form(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    // The plan's limit may have closed the form before; then the event was sent already.
    let plan = query_scalar!("select plan from accounts where id = $1", account_id);
    let Some(plan) = plan.fetch_optional(&mut *conn).await? else { return Ok(()) };
    let plan_limit = read_plan(&plan)?.limits().submissions_per_form;
    query!(
        "update forms set folder_id = $3, name = $4, fields = $5, success_message = $6, submit_label = $7,
                          redirect_url = $8, closes_at = $9, max_submissions = $10, unique_by = $11,
                          public_results = $12, auto_entry_page_id = $13, spam_honeypot = $14,
                          spam_min_seconds = $15, spam_proof_of_work = $16, notify_email = $17, spam_per_minute = $20,
                          spam_per_day = $21, unknown_fields = $22, appearance = $23,
                          updated_at = greatest($18, updated_at + interval '1 millisecond'),
                          closing_look_at = case
                              -- Due already: looked at as it is then.
                              when closing_look_at <= $18::timestamptz then closing_look_at
                              -- It was open, and isn't any more.
                              when (closes_at is null or closes_at > $18)
                                   and submission_count < coalesce(least(max_submissions, $19), submission_count + 1)
                                   and ($9::timestamptz <= $18 or submission_count >= least($10::bigint, $19)) then $18
                              when $9::timestamptz > $18 then $9::timestamptz
                          end
         where account_id = $1 and id = $2",
        account_id,
        form.id,
        form.folder_id,
        form.name,
        Json(&form.fields) as _,
        form.success_message,
        form.submit_label,
        form.redirect_url,
        form.closes_at,
        form.max_submissions,
        form.unique_by.as_deref(),
        form.public_results,
        form.auto_entry_page_id,
        form.spam.honeypot,
        form.spam.min_seconds,
        form.spam.proof_of_work,
        form.notify_email,
        now,
        (plan_limit >= 0).then_some(plan_limit),
        form.spam.per_minute,
        form.spam.per_day,
        form.unknown_fields.as_str(),
        Json(&form.appearance) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a form with its submissions and the runs of automations that they started. Returns `false` if there is no such form.
pub async fn delete_form(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    lock_form_exclusive(conn, id).await?;
    conn.allow_long_statements(DELETION_TIMEOUT).await?;
    automations::delete_runs_of_form(conn, account_id, id).await?;
    let done =
        query!("delete from forms where account_id = $1 and id = $2", account_id, id).execute(conn).await?;
    Ok(done.rows_affected() > 0)
}
