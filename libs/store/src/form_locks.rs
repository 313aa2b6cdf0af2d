//! The advisory lock of a form: exclusive for edits, shared for submissions.

use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// The key of a form's advisory lock. Two forms with the same key only wait for each other.
pub(crate) fn advisory_lock_key(form_id: Uuid) -> i64 {
    form_id.as_u64_pair().1.cast_signed()
}

/// Takes the lock for an edit. A separate statement, so that the next one sees what was committed while this one
/// waited.
pub(crate) async fn lock_form_exclusive(conn: &mut Conn, id: Uuid) -> Result<(), Error> {
    query!("select from pg_advisory_xact_lock($1)", advisory_lock_key(id)).execute(conn).await?;
    Ok(())
}

/// Waits until no edit of the form is in progress, and prevents edits until the end of the transaction.
pub async fn lock_form_shared(conn: &mut Conn, id: Uuid) -> Result<(), Error> {
    query!("select from pg_advisory_xact_lock_shared($1)", advisory_lock_key(id)).execute(conn).await?;
    Ok(())
}
