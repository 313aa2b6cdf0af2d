//! The paths of deployed pages.

use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// The path of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePath {
    pub page_id: Uuid,
    /// Path on the site of the deployed file that the page shows. `None` for a page that is no file.
    pub path: Option<String>,
}

/// Sets the paths of pages. Pages of a site may exchange their paths. The caller must publish the change of the site.
pub async fn update_paths(conn: &mut Conn, account_id: Uuid, paths: &[PagePath]) -> Result<(), Error> {
    if paths.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = paths.iter().map(|page| page.page_id).collect();
    let paths: Vec<Option<&str>> = paths.iter().map(|page| page.path.as_deref()).collect();
    // A path is unique at every moment, so the pages give up the old ones first.
    query!(
        "update pages p set path = null from unnest($2::uuid[], $3::text[]) as n (id, path)
         where p.account_id = $1 and p.id = n.id and p.path is distinct from n.path and p.path is not null",
        account_id,
        &ids,
        &paths as _,
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "update pages p set path = n.path from unnest($2::uuid[], $3::text[]) as n (id, path)
         where p.account_id = $1 and p.id = n.id and p.path is distinct from n.path",
        account_id,
        &ids,
        &paths as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}
