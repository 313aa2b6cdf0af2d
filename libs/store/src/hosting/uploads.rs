//! Signed upload URLs, each for one upload.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// The object that an upload is for; it has the upload's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Asset,
    Deploy,
    FormFile,
}

impl Purpose {
    fn as_str(self) -> &'static str {
        match self {
            Self::Asset => "asset",
            Self::Deploy => "deploy",
            Self::FormFile => "form_file",
        }
    }

    fn parse(word: &str) -> Result<Self, Error> {
        let purposes = [Self::Asset, Self::Deploy, Self::FormFile];
        purposes.into_iter().find(|purpose| purpose.as_str() == word).ok_or_else(|| Error::Unreadable {
            table: "uploads",
            column: "purpose",
            value: word.to_owned(),
        })
    }
}

/// An upload to announce.
#[derive(Debug)]
pub struct NewUpload<'a> {
    /// The id of the object it is for.
    pub id: Uuid,
    pub purpose: Purpose,
    pub content_type: &'a str,
    pub size_bytes: i64,
    pub expires_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

/// An upload with the properties that its receiver needs.
#[derive(Debug, Clone)]
pub struct Upload {
    pub account_id: Uuid,
    pub purpose: Purpose,
    pub content_type: String,
    pub size_bytes: i64,
    /// Whether its bytes are stored.
    pub is_stored: bool,
    /// Whether its account is suspended.
    pub is_suspended: bool,
}

/// An expired upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiredUpload {
    /// The id of the object it was for.
    pub id: Uuid,
    pub account_id: Uuid,
    pub size_bytes: i64,
    /// Whether its bytes were stored.
    pub is_stored: bool,
    pub is_asset: bool,
}

/// Inserts an announced upload.
pub async fn insert_upload(conn: &mut Conn, account_id: Uuid, new: &NewUpload<'_>) -> Result<(), Error> {
    query!(
        "insert into uploads (id, account_id, purpose, content_type, size_bytes, expires_at, created_at)
         values ($1, $2, $3, $4, $5, $6, $7)",
        new.id,
        account_id,
        new.purpose.as_str(),
        new.content_type,
        new.size_bytes,
        new.expires_at,
        new.created_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the upload of a signed URL. Takes no account, because the signature authorizes the request.
pub async fn find_upload(conn: &mut Conn, id: Uuid) -> Result<Option<Upload>, Error> {
    let row = query!(
        r#"select u.account_id, u.purpose, u.content_type, u.size_bytes, u.stored_at is not null as "is_stored!",
                  a.suspended_at is not null as "is_suspended!"
           from uploads u join accounts a on a.id = u.account_id where u.id = $1"#,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(Upload {
            account_id: row.account_id,
            purpose: Purpose::parse(&row.purpose)?,
            content_type: row.content_type,
            size_bytes: row.size_bytes,
            is_stored: row.is_stored,
            is_suspended: row.is_suspended,
        })
    })
    .transpose()
}

/// Marks an upload as stored. Returns `false` if other bytes came first or it has expired.
pub async fn finish_upload(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let finished = query_scalar!(
        "update uploads set stored_at = $3 where account_id = $1 and id = $2 and stored_at is null returning id",
        account_id,
        id,
        now,
    )
    .fetch_optional(conn)
    .await?;
    Ok(finished.is_some())
}

/// Deletes the upload of an object that is being deleted.
pub async fn delete_upload(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<(), Error> {
    query!("delete from uploads where account_id = $1 and id = $2", account_id, id).execute(conn).await?;
    Ok(())
}

/// Deletes and returns up to `limit` expired uploads.
pub async fn delete_expired(
    conn: &mut Conn,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<ExpiredUpload>, Error> {
    let expired = query_as!(
        ExpiredUpload,
        r#"delete from uploads where id in (
               select id from uploads where expires_at <= $1 order by expires_at limit $2 for update skip locked)
           returning id, account_id, size_bytes, stored_at is not null as "is_stored!",
                     purpose = 'asset' as "is_asset!""#,
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(expired)
}
