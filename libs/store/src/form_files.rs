//! Files handed in with a form: announced by a visitor, then stored, then of one submission.
//!
//! Whatever deletes them, their bytes are given back by the table itself (see its migration).

use chrono::{DateTime, Utc};
use domain::form_files::WAITING_BYTES_MIN;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::served_files::{ServedFile, ServedFileRow};
use crate::{Conn, Error};

/// How long a visitor waits for others who ask at the same moment, before they are told to come back.
const LOCK_TIMEOUT: &str = "2s";

/// A file about to be announced.
#[derive(Debug)]
pub struct NewFormFile<'a> {
    /// All of it random.
    pub id: Uuid,
    /// The form it is for.
    pub form_id: Uuid,
    /// The field it answers.
    pub field: &'a str,
    /// What it is called.
    pub filename: &'a str,
    /// What it is taken for.
    pub content_type: &'a str,
    /// How many bytes it has.
    pub size_bytes: i64,
    /// Keyed digest of who sends it.
    pub visitor: &'a [u8],
    /// Now.
    pub created_at: DateTime<Utc>,
}

/// A file of a submission, as the form's owner sees it.
#[derive(Debug, Clone)]
pub struct FormFile {
    /// Its object id: the field's answer.
    pub id: Uuid,
    /// The submission it belongs to.
    pub submission_id: Uuid,
    /// The field it answers.
    pub field: String,
    /// What it is called.
    pub filename: String,
    /// What it is taken for.
    pub content_type: String,
    /// How many bytes it has.
    pub size_bytes: i64,
}

/// A file that has come and belongs to no submission yet.
#[derive(Debug, Clone)]
pub struct WaitingFile {
    /// Its object id.
    pub id: Uuid,
    /// The field it was sent for.
    pub field: String,
    /// What it is called.
    pub filename: String,
}

/// Bytes that were announced or have come, and belong to no submission; each file counts [`WAITING_BYTES_MIN`] at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unbound {
    /// Of the form.
    pub of_form: i64,
    /// Of the visitor, at whatever form.
    pub of_visitor: i64,
}

/// As [`find_unbound`], and it stays so until the end of the transaction: others who ask wait for it, shortly.
/// Returns an error if the locks are not granted within [`LOCK_TIMEOUT`].
pub async fn lock_unbound(conn: &mut Conn, form_id: Uuid, visitor: &[u8]) -> Result<Unbound, Error> {
    // Whoever waits has a connection, which others need.
    query!("select set_config('lock_timeout', $1, true)", LOCK_TIMEOUT).fetch_one(&mut *conn).await?;
    // One after the other and always in this order: two visitors can't wait for each other.
    query!("select pg_advisory_xact_lock(hashtextextended($1::uuid::text, 5))", form_id)
        .fetch_one(&mut *conn)
        .await?;
    query!("select pg_advisory_xact_lock(hashtextextended(encode($1::bytea, 'hex'), 7))", visitor)
        .fetch_one(&mut *conn)
        .await?;
    find_unbound(conn, form_id, visitor).await
}

/// What is unbound now.
pub async fn find_unbound(conn: &mut Conn, form_id: Uuid, visitor: &[u8]) -> Result<Unbound, Error> {
    let unbound = query_as!(
        Unbound,
        r#"select (select coalesce(sum(greatest(size_bytes, $3)), 0)::bigint from form_files
                   where form_id = $1 and submission_id is null) as "of_form!",
                  (select coalesce(sum(greatest(size_bytes, $3)), 0)::bigint from form_files
                   where visitor = $2 and submission_id is null) as "of_visitor!""#,
        form_id,
        visitor,
        WAITING_BYTES_MIN,
    )
    .fetch_one(conn)
    .await?;
    Ok(unbound)
}

/// Stores a file whose bytes are to come.
/// Returns an error if the form no longer exists.
pub async fn insert_file(conn: &mut Conn, account_id: Uuid, new: &NewFormFile<'_>) -> Result<(), Error> {
    query!(
        "insert into form_files (id, account_id, form_id, field, filename, content_type, size_bytes, visitor, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        new.id,
        account_id,
        new.form_id,
        new.field,
        new.filename,
        new.content_type,
        new.size_bytes,
        new.visitor,
        new.created_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The bytes of a file have come. Gives whether there is such a file still.
pub async fn update_blob(conn: &mut Conn, account_id: Uuid, id: Uuid, blob_id: Uuid) -> Result<bool, Error> {
    let done = query!(
        "update form_files set blob_id = $3 where account_id = $1 and id = $2",
        account_id,
        id,
        blob_id
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Files of a form that have come and can be handed in, of those ids.
pub async fn list_waiting(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    ids: &[Uuid],
) -> Result<Vec<WaitingFile>, Error> {
    let files = query_as!(
        WaitingFile,
        "select id, field, filename from form_files
         where account_id = $1 and form_id = $2 and id = any($3) and blob_id is not null and submission_id is null",
        account_id,
        form_id,
        ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(files)
}

/// Makes a file the submission's: one that has come for exactly that form and field, and is nobody's yet. Gives its
/// bytes; none if it is no such file. Of two submissions at once one gets it.
pub async fn bind(
    conn: &mut Conn,
    account_id: Uuid,
    (form_id, submission_id): (Uuid, Uuid),
    (field, id): (&str, Uuid),
    is_counted: bool,
) -> Result<Option<i64>, Error> {
    let bytes = query_scalar!(
        "update form_files set submission_id = $3, is_counted = $6
         where account_id = $1 and form_id = $2 and field = $4 and id = $5
           and blob_id is not null and submission_id is null
         returning size_bytes",
        account_id,
        form_id,
        submission_id,
        field,
        id,
        is_counted,
    )
    .fetch_optional(conn)
    .await?;
    Ok(bytes)
}

/// Lets go of a file that was handed in with spam: one that could have been bound. Gives whether it was one.
pub async fn discard(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    (field, id): (&str, Uuid),
) -> Result<bool, Error> {
    let done = query!(
        "delete from form_files
         where account_id = $1 and form_id = $2 and field = $3 and id = $4
           and blob_id is not null and submission_id is null",
        account_id,
        form_id,
        field,
        id,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Lets go of a submission's files that answer one of these fields and are not among `kept`: other answers have taken
/// their place. The account's counters must be taken.
pub async fn delete_replaced(
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
    fields: &[String],
    kept: &[Uuid],
) -> Result<(), Error> {
    query!(
        "delete from form_files
         where account_id = $1 and submission_id = $2 and field = any($3) and id <> all($4)",
        account_id,
        submission_id,
        fields,
        kept,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Marks the files of a submission as counted, or as not counted any more, as it is taken for spam or no longer is.
/// Gives how many bytes that makes: they are to be taken, or given back.
pub async fn update_counted(
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
    is_counted: bool,
) -> Result<i64, Error> {
    let sizes = query_scalar!(
        "update form_files set is_counted = $3
         where account_id = $1 and submission_id = $2 and is_counted <> $3 returning size_bytes",
        account_id,
        submission_id,
        is_counted,
    )
    .fetch_all(conn)
    .await?;
    Ok(sizes.into_iter().sum())
}

/// The files of these submissions of the account.
pub async fn list_files(
    conn: &mut Conn,
    account_id: Uuid,
    submission_ids: &[Uuid],
) -> Result<Vec<FormFile>, Error> {
    let files = query_as!(
        FormFile,
        r#"select id, submission_id as "submission_id!", field, filename, content_type, size_bytes from form_files
           where account_id = $1 and submission_id = any($2) order by created_at, id"#,
        account_id,
        submission_ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(files)
}

/// A file that may be fetched, whoever's it is: one of a submission that is no spam.
pub async fn find_downloadable(
    conn: &mut Conn,
    form_id: Option<Uuid>,
    id: Uuid,
) -> Result<Option<ServedFile>, Error> {
    let row = query_as!(
        ServedFileRow,
        r#"select f.account_id, b.sha256, f.size_bytes, f.content_type, f.filename,
                  a.suspended_at is not null as "is_suspended!"
           from form_files f join submissions s on s.id = f.submission_id join blobs b on b.id = f.blob_id
           join accounts a on a.id = f.account_id
           where f.id = $1 and ($2::uuid is null or f.form_id = $2) and s.status <> 'spam'"#,
        id,
        form_id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(ServedFile::try_from).transpose()
}

/// Deletes a file that was announced and whose bytes did not come in time; does nothing if it is none.
pub async fn delete_unsent(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<(), Error> {
    query!("delete from form_files where account_id = $1 and id = $2 and blob_id is null", account_id, id)
        .execute(conn)
        .await?;
    Ok(())
}

/// Deletes up to `limit` files that were announced before `before` and belong to no submission; gives how many.
pub async fn delete_unbound(conn: &mut Conn, before: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = query!(
        "delete from form_files where id in (
             select id from form_files where submission_id is null and created_at < $1
             order by created_at limit $2 for update skip locked) and submission_id is null",
        before,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(deleted.rows_affected())
}
