//! Things of every kind in one shape: whose they are and in which folder. Restrictions are checked against it.

use chrono::{DateTime, Utc};
use domain::scopes::Resource;
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// Where a thing lies.
#[derive(Debug, Clone, Copy)]
pub struct ResourceFolder {
    /// The thing.
    pub id: Uuid,
    /// Its folder, if it lies in one.
    pub folder_id: Option<Uuid>,
}

/// A thing in a folder.
#[derive(Debug, Clone)]
pub struct FolderItem {
    /// `forms`, `pages` and so on.
    pub kind: String,
    /// Its id.
    pub id: Uuid,
    /// Its name or title.
    pub name: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// Where those of `ids` lie that are things of this kind and of the account.
pub async fn list_resource_folders(
    conn: &mut Conn,
    account_id: Uuid,
    kind: Resource,
    ids: &[Uuid],
) -> Result<Vec<ResourceFolder>, Error> {
    let places = query_as!(
        ResourceFolder,
        r#"select id as "id!", folder_id from things where account_id = $1 and kind = $2 and id = any($3)"#,
        account_id,
        kind.word(),
        ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(places)
}

/// What lies in a folder, oldest first, up to `limit`.
pub async fn list_folder_items(
    conn: &mut Conn,
    account_id: Uuid,
    folder_id: Uuid,
    limit: i64,
) -> Result<Vec<FolderItem>, Error> {
    let things = query_as!(
        FolderItem,
        r#"select kind as "kind!", id as "id!", name as "name!", created_at as "created_at!" from things
           where account_id = $1 and folder_id = $2 and kind in ('forms', 'pages', 'analytics', 'automations')
           order by created_at, id limit $3"#,
        account_id,
        folder_id,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(things)
}

/// Puts a thing of the account into a folder, or takes it out of all. `false` if there is no such thing, or it
/// can't lie in a folder, or it was not in `from` where that is given.
pub async fn update_folder(
    conn: &mut Conn,
    account_id: Uuid,
    kind: Resource,
    id: Uuid,
    from: Option<Uuid>,
    to: Option<Uuid>,
) -> Result<bool, Error> {
    let moving = match kind {
        Resource::Forms => query!(
            "update forms set folder_id = $3
             where account_id = $1 and id = $2 and ($4::uuid is null or folder_id = $4)",
            account_id,
            id,
            to,
            from,
        ),
        Resource::Pages => query!(
            "update pages set folder_id = $3
             where account_id = $1 and id = $2 and ($4::uuid is null or folder_id = $4)",
            account_id,
            id,
            to,
            from,
        ),
        Resource::Analytics => query!(
            "update analytics_sites set folder_id = $3
             where account_id = $1 and id = $2 and ($4::uuid is null or folder_id = $4)",
            account_id,
            id,
            to,
            from,
        ),
        _ => return Ok(false),
    };
    Ok(moving.execute(conn).await?.rows_affected() > 0)
}
