//! The end of a page, and of the texts only its versions leaned on.

use sqlx::query;
use uuid::Uuid;

use crate::versions::{delete_unused, texts_of};
use crate::{Conn, Error, usage};

/// Deletes a page of the account with its versions, entries and views; gives where it was served. Entries that are
/// to be kept are archived before.
pub async fn delete_page(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<(Uuid, String)>, Error> {
    usage::lock(conn, account_id).await?;
    let texts = texts_of(conn, id).await?;
    let gone = query!(
        "delete from pages where account_id = $1 and id = $2 returning subdomain_id, slug",
        account_id,
        id,
    )
    .fetch_optional(&mut *conn)
    .await?;
    if gone.is_some() {
        delete_unused(conn, account_id, texts).await?;
    }
    Ok(gone.map(|row| (row.subdomain_id, row.slug)))
}
