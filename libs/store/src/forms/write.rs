//! Forms made, edited and deleted.
//!
//! Whoever edits a form has it alone ([`lock_form`]); those who submit have it together. So an edit and a submission
//! happen one after the other, and a submission that was checked against what the form was before is told so. The lock is
//! no row's but an advisory one: it stands in line, where a row's would wait for a moment in which nobody submits.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::read::{Form, find_form};
use crate::accounts::read_plan;
use crate::form_locks::lock_form_exclusive;
use crate::{Conn, Error};

/// Stores a form.
pub async fn insert_form(conn: &mut Conn, account_id: Uuid, form: &Form) -> Result<(), Error> {
    query!(
        "insert into forms (id, account_id, folder_id, name, fields, success_message, submit_label, redirect_url,
                            closes_at, max_submissions, unique_by, public_results, auto_entry_page_id, spam_honeypot,
                            spam_min_seconds, spam_proof_of_work, notify_email, created_at, updated_at,
                            closing_look_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
                 case when $9::timestamptz > $18::timestamptz then $9::timestamptz end)",
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
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A form of the account, taken for this transaction: until it ends, the form is not edited and gets no submission. What
/// its submissions have counted apart from each other stands in its own row from then on.
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

/// Writes a form of the account as it is to be, but for its count. Its `updated_at` rises whatever the clock says. What is
/// left of its row may say that it has closed by this: then the job-runner looks ([`super::close_form`]).
pub async fn update_form(
    conn: &mut Conn,
    account_id: Uuid,
    form: &Form,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    // The plan's limit may have filled it before, which was told then.
    let plan = query_scalar!("select plan from accounts where id = $1", account_id);
    let Some(plan) = plan.fetch_optional(&mut *conn).await? else { return Ok(()) };
    let plan_limit = read_plan(&plan)?.limits().submissions_per_form;
    query!(
        "update forms set folder_id = $3, name = $4, fields = $5, success_message = $6, submit_label = $7,
                          redirect_url = $8, closes_at = $9, max_submissions = $10, unique_by = $11,
                          public_results = $12, auto_entry_page_id = $13, spam_honeypot = $14,
                          spam_min_seconds = $15, spam_proof_of_work = $16, notify_email = $17,
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
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a form of the account with its submissions; gives whether there was one.
pub async fn delete_form(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    lock_form_exclusive(conn, id).await?;
    let done =
        query!("delete from forms where account_id = $1 and id = $2", account_id, id).execute(conn).await?;
    Ok(done.rows_affected() > 0)
}
