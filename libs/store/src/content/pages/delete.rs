//! Deletes pages and the texts that only their versions reference.

use sqlx::query_as;
use uuid::Uuid;

use crate::entries::PageLocation;
use crate::versions::{delete_unreferenced_texts, list_texts_of_page};
use crate::{Conn, Error, usage};

/// Deletes a page with its versions, entries and views. Returns where it was served. To keep its entries, archive them
/// first.
pub async fn delete_page(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<PageLocation>, Error> {
    usage::lock(conn, account_id).await?;
    let texts = list_texts_of_page(conn, id).await?;
    let gone = query_as!(
        PageLocation,
        "delete from pages where account_id = $1 and id = $2 returning subdomain_id, slug, path",
        account_id,
        id,
    )
    .fetch_optional(&mut *conn)
    .await?;
    if gone.is_some() {
        delete_unreferenced_texts(conn, account_id, texts).await?;
    }
    Ok(gone)
}
