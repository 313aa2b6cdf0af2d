//! Assets: files that an account uploads for its pages.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::list_filter::sorted_rows;
use crate::served_files::{ServedFile, ServedFileRow};
use crate::{Conn, Error, ListFilter};

/// An asset.
#[derive(Debug, Clone)]
pub struct Asset {
    /// Part of its URL.
    pub id: Uuid,
    pub page_id: Option<Uuid>,
    pub filename: String,
    /// As the uploader declared it.
    pub content_type: String,
    /// Expected size until the upload.
    pub size_bytes: i64,
    /// `None` until the upload.
    pub blob_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
}

/// Inserts an asset before its upload.
pub async fn insert_asset(conn: &mut Conn, account_id: Uuid, asset: &Asset) -> Result<(), Error> {
    query!(
        "insert into assets (id, account_id, page_id, filename, content_type, size_bytes, created_at)
         values ($1, $2, $3, $4, $5, $6, $7)",
        asset.id,
        account_id,
        asset.page_id,
        asset.filename,
        asset.content_type,
        asset.size_bytes,
        asset.created_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Sets the uploaded bytes of an asset.
pub async fn update_blob(conn: &mut Conn, account_id: Uuid, id: Uuid, blob_id: Uuid) -> Result<(), Error> {
    query!("update assets set blob_id = $3 where account_id = $1 and id = $2", account_id, id, blob_id)
        .execute(conn)
        .await?;
    Ok(())
}

/// Returns an asset of the account.
pub async fn find_asset(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Asset>, Error> {
    let asset = query_as!(
        Asset,
        "select id, page_id, filename, content_type, size_bytes, blob_id, created_at from assets
         where account_id = $1 and id = $2",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(asset)
}

/// Returns the account's assets, optionally of one page. The filter's folder and ids are those of pages.
pub async fn list_assets(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
    page_id: Option<Uuid>,
) -> Result<Vec<Asset>, Error> {
    Ok(sorted_rows!(
        Asset,
        conn,
        account_id,
        filter,
        "select a.id, a.page_id, a.filename, a.content_type, a.size_bytes, a.blob_id, a.created_at
         from assets a left join pages p on p.id = a.page_id
         where a.account_id = $1 and ($2::uuid is null or p.folder_id = $2)
           and ($3::uuid[] is null or a.page_id = any($3)) and ($7::uuid is null or a.page_id = $7)",
        "a.created_at",
        "a.id",
        page_id
    )?)
}

/// Deletes an asset and returns it, so that the caller can release its bytes.
pub async fn delete_asset(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Asset>, Error> {
    let asset = query_as!(
        Asset,
        "delete from assets where account_id = $1 and id = $2
         returning id, page_id, filename, content_type, size_bytes, blob_id, created_at",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(asset)
}

/// Returns an asset for the edge. Takes no account, because visitors have none.
pub async fn find_served(conn: &mut Conn, id: Uuid) -> Result<Option<ServedFile>, Error> {
    let row = query_as!(
        ServedFileRow,
        r#"select s.account_id, b.sha256, s.size_bytes, s.content_type, s.filename,
                  a.suspended_at is not null as "is_suspended!"
           from assets s join blobs b on b.id = s.blob_id join accounts a on a.id = s.account_id where s.id = $1"#,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(ServedFile::try_from).transpose()
}

/// Returns a deployed image or font by its digest, under the content type that its address states. Accounts can deploy
/// the same bytes under different names, so the type that one of them stored says nothing about another's address.
/// Prefers accounts that are not suspended: the bytes are the same, and a client that knows their digest has seen them
/// already.
pub async fn find_served_by_digest(
    conn: &mut Conn,
    sha256: &[u8; 32],
    content_type: &str,
) -> Result<Option<ServedFile>, Error> {
    let row = query!(
        r#"select d.account_id, f.size_bytes, a.suspended_at is not null as "is_suspended!"
           from blobs b join deploy_files f on f.blob_id = b.id and f.by_content
           join deploys d on d.id = f.deploy_id join accounts a on a.id = d.account_id
           where b.sha256 = $1 order by a.suspended_at is not null limit 1"#,
        sha256.as_slice(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| ServedFile {
        account_id: row.account_id,
        sha256: *sha256,
        size_bytes: row.size_bytes,
        content_type: content_type.to_owned(),
        // Images and fonts are not downloads, so no file name is sent.
        filename: String::new(),
        is_suspended: row.is_suspended,
    }))
}
