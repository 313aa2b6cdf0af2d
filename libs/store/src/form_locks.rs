//! The advisory lock of a form: exclusive for edits, shared for submissions.

use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// By which number a form is locked. Two forms that share one merely wait for each other.
pub(crate) fn advisory_lock_key(form_id: Uuid) -> i64 {
    form_id.as_u64_pair().1.cast_signed()
}

/// By a statement of its own: the next one sees what was committed while this one waited.
pub(crate) async fn lock_form_exclusive(conn: &mut Conn, id: Uuid) -> Result<(), Error> {
    query!("select from pg_advisory_xact_lock($1)", advisory_lock_key(id)).execute(conn).await?;
    Ok(())
}

/// Waits in line for a moment in which the form is not edited; from then on to the end of this transaction it isn't.
pub async fn lock_form_shared(conn: &mut Conn, id: Uuid) -> Result<(), Error> {
    query!("select from pg_advisory_xact_lock_shared($1)", advisory_lock_key(id)).execute(conn).await?;
    Ok(())
}
