//! Files of form submissions: announced by a visitor, uploaded, then bound to a submission.
//!
//! When a row is deleted, a trigger of the table releases its bytes (see its migration).

use chrono::{DateTime, Utc};
use domain::form_files::WAITING_BYTES_MIN;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::served_files::{ServedFile, ServedFileRow};
use crate::{Conn, Error};

/// How long a request waits for concurrent ones before it is told to retry.
const LOCK_TIMEOUT: &str = "2s";

/// A file to announce.
#[derive(Debug)]
pub struct NewFormFile<'a> {
    /// Fully random.
    pub id: Uuid,
    pub form_id: Uuid,
    /// The field it answers.
    pub field: &'a str,
    pub filename: &'a str,
    pub content_type: &'a str,
    pub size_bytes: i64,
    /// Keyed digest that identifies the visitor.
    pub visitor: &'a [u8],
    pub created_at: DateTime<Utc>,
}

/// A file of a submission, as the form's owner sees it.
#[derive(Debug, Clone)]
pub struct FormFile {
    /// The object id, which is the field's value in the payload.
    pub id: Uuid,
    pub submission_id: Uuid,
    /// The field it answers.
    pub field: String,
    pub filename: String,
    pub content_type: String,
    pub size_bytes: i64,
}

/// An uploaded file that is not bound to a submission yet.
#[derive(Debug, Clone)]
pub struct WaitingFile {
    /// Its object id.
    pub id: Uuid,
    /// The field it was uploaded for.
    pub field: String,
    pub filename: String,
    pub size_bytes: i64,
}

/// Bytes of files that are announced or uploaded but not bound. Each file counts at least [`WAITING_BYTES_MIN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unbound {
    /// Of this form.
    pub of_form: i64,
    /// Of this visitor, in all forms.
    pub of_visitor: i64,
}

/// Like [`find_unbound`], and locks the totals until the end of the transaction. Returns an error if the locks are not
/// granted within [`LOCK_TIMEOUT`].
pub async fn lock_unbound(conn: &mut Conn, form_id: Uuid, visitor: &[u8]) -> Result<Unbound, Error> {
    // A waiting request occupies a connection that others need.
    query!("select set_config('lock_timeout', $1, true)", LOCK_TIMEOUT).fetch_one(&mut *conn).await?;
    // Always in this order, so that two transactions can't deadlock.
    query!("select pg_advisory_xact_lock(hashtextextended($1::uuid::text, 5))", form_id)
        .fetch_one(&mut *conn)
        .await?;
    query!("select pg_advisory_xact_lock(hashtextextended(encode($1::bytea, 'hex'), 7))", visitor)
        .fetch_one(&mut *conn)
        .await?;
    find_unbound(conn, form_id, visitor).await
}

/// Returns the current totals.
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

/// Inserts an announced file. Returns an error if the form no longer exists.
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

/// Sets the uploaded bytes of a file. Returns `false` if the file no longer exists.
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

/// Returns the files among `ids` that are uploaded for this form and not bound.
pub async fn list_waiting(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    ids: &[Uuid],
) -> Result<Vec<WaitingFile>, Error> {
    let files = query_as!(
        WaitingFile,
        "select id, field, filename, size_bytes from form_files
         where account_id = $1 and form_id = $2 and id = any($3) and blob_id is not null and submission_id is null",
        account_id,
        form_id,
        ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(files)
}

/// Binds an uploaded file to a submission. The file must belong to exactly this form and field. Returns its size, or
/// `None` if there is no such unbound file. Of two concurrent submissions one gets it.
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

/// Deletes the files of a submission that answer one of these fields and are not among `kept`, because new answers
/// replaced them. The caller must hold the lock of the account's counters.
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

/// Marks the files of a submission as counted or not counted, when its spam status changes. Returns the bytes to
/// reserve or release.
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

/// Returns the files of these submissions.
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

/// Returns a file that may be downloaded: one of a submission that is not spam. Takes no account, because visitors have
/// none.
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

/// Deletes an announced file if its bytes did not arrive in time. Does nothing otherwise.
pub async fn delete_unsent(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<(), Error> {
    query!("delete from form_files where account_id = $1 and id = $2 and blob_id is null", account_id, id)
        .execute(conn)
        .await?;
    Ok(())
}

/// Deletes up to `limit` unbound files that were announced before `before`. Returns how many.
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
