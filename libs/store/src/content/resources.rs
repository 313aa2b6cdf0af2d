//! Resources of every kind in one shape, with their account and folder. Authorization checks use it.

use chrono::{DateTime, Utc};
use domain::scopes::Resource;
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// The folder and the name of a resource.
#[derive(Debug, Clone)]
pub struct ResourceFolder {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    /// Name, title or label.
    pub name: String,
}

/// A resource in a folder.
#[derive(Debug, Clone)]
pub struct FolderItem {
    /// `forms`, `pages` and so on.
    pub kind: String,
    pub id: Uuid,
    /// Name or title.
    pub name: String,
    pub created_at: DateTime<Utc>,
}

/// Returns the folders of those resources in `ids` that exist, have this kind and belong to the account.
pub async fn list_resource_folders(
    conn: &mut Conn,
    account_id: Uuid,
    kind: Resource,
    ids: &[Uuid],
) -> Result<Vec<ResourceFolder>, Error> {
    let places = query_as!(
        ResourceFolder,
        r#"select id as "id!", folder_id, name as "name!" from things where account_id = $1 and kind = $2 and id = any($3)"#,
        account_id,
        kind.as_str(),
        ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(places)
}

/// Returns up to `limit` resources of a folder, oldest first.
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

/// Moves a resource to a folder, or out of its folder if `to` is `None`. Returns `false` if there is no such resource,
/// if its kind can't be in a folder, or if it is not in folder `from` when that is given.
pub async fn update_folder(
    conn: &mut Conn,
    account_id: Uuid,
    kind: Resource,
    id: Uuid,
    from: Option<Uuid>,
    to: Option<Uuid>,
) -> Result<bool, Error> {
    macro_rules! update {
        ($table:literal) => {
            query!(
                "update "
                    + $table
                    + " set folder_id = $3
                 where account_id = $1 and id = $2 and ($4::uuid is null or folder_id = $4)",
                account_id,
                id,
                to,
                from,
            )
        };
    }
    let moving = match kind {
        Resource::Forms => update!("forms"),
        Resource::Pages => update!("pages"),
        Resource::Analytics => update!("analytics_sites"),
        Resource::Automations => update!("automations"),
        _ => return Ok(false),
    };
    Ok(moving.execute(conn).await?.rows_affected() > 0)
}
