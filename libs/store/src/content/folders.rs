//! Folders, which group an account's resources.

use chrono::{DateTime, Utc};
use domain::restrictions::Restrictions;
use sqlx::query;
use uuid::Uuid;

use crate::list_filter::sorted_rows;
use crate::{Conn, Error, ListFilter};

/// A folder with the number of resources in it.
#[derive(Debug, Clone)]
pub struct Folder {
    pub id: Uuid,
    pub name: String,
    pub description: Option<String>,
    pub forms: i64,
    pub pages: i64,
    pub analytics: i64,
    pub automations: i64,
    pub created_at: DateTime<Utc>,
    /// Changes with name or description.
    pub updated_at: DateTime<Utc>,
}

/// Changes to a folder; `None` leaves a field unchanged.
#[derive(Debug, Default)]
pub struct FolderChange {
    pub name: Option<String>,
    /// The inner `None` removes the description.
    pub description: Option<Option<String>>,
}

/// Inserts a folder.
pub async fn insert_folder(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    name: &str,
    description: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into folders (id, account_id, name, description, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $5)",
        id,
        account_id,
        name,
        description,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the account's folders with resource counts. For the kinds in `seen`, only the listed resources
/// are counted.
pub async fn list_folders(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
    seen: &Restrictions,
) -> Result<Vec<Folder>, Error> {
    let (kinds, ids): (Vec<String>, Vec<Uuid>) =
        seen.ids.iter().flat_map(|(kind, ids)| ids.iter().map(|id| (kind.as_str().to_owned(), *id))).unzip();
    let narrowed: Vec<String> = seen.ids.keys().map(|kind| kind.as_str().to_owned()).collect();
    Ok(sorted_rows!(
        Folder,
        conn,
        account_id,
        filter,
        r#"select f.id, f.name, f.description,
                  t.forms as "forms!", t.pages as "pages!", t.analytics as "analytics!",
                  t.automations as "automations!",
                  f.created_at, f.updated_at
           from folders f
           left join lateral (
               select
                   count(*) filter (where kind = 'forms') as forms,
                   count(*) filter (where kind = 'pages') as pages,
                   count(*) filter (where kind = 'analytics') as analytics,
                   count(*) filter (where kind = 'automations') as automations
               from things
               where account_id = $1 and folder_id = f.id
                 and (kind <> all($7) or (kind, id) in (select * from unnest($8::text[], $9::uuid[])))
           ) t on true
           where f.account_id = $1 and ($2::uuid is null or f.id = $2) and ($3::uuid[] is null or f.id = any($3))"#,
        "f.created_at",
        "f.id",
        &narrowed,
        &kinds,
        &ids
    )?)
}

/// Returns a folder of the account, with counts as in [`list_folders`].
pub async fn find_folder(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    seen: &Restrictions,
) -> Result<Option<Folder>, Error> {
    let filter = ListFilter { folder_id: Some(id), limit: 1, ..ListFilter::default() };
    Ok(list_folders(conn, account_id, &filter, seen).await?.pop())
}

/// Updates a folder. Returns `false` if there is no such folder.
pub async fn update_folder(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: &FolderChange,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let done = query!(
        "update folders set name = coalesce($3, name), description = case when $4 then $5 else description end,
                            updated_at = $6
         where account_id = $1 and id = $2",
        account_id,
        id,
        change.name,
        change.description.is_some(),
        change.description.as_ref().and_then(Option::as_ref),
        now,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Deletes a folder; its resources remain without a folder. Returns `false` if there is no such folder.
pub async fn delete_folder(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    let done =
        query!("delete from folders where account_id = $1 and id = $2", account_id, id).execute(conn).await?;
    Ok(done.rows_affected() > 0)
}
