//! What a deploy did to pages, so that it can be undone.

use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// What a deploy did to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageChange {
    /// The page.
    pub page_id: Uuid,
    /// The version it had before; none if the deploy made the page.
    pub version_id: Option<Uuid>,
}

/// Notes what a deploy did to pages.
///
/// # Errors
/// The database's.
pub async fn insert_changes(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
    changes: &[PageChange],
) -> Result<(), Error> {
    let pages: Vec<Uuid> = changes.iter().map(|change| change.page_id).collect();
    let versions: Vec<Option<Uuid>> = changes.iter().map(|change| change.version_id).collect();
    query!(
        "insert into deploy_pages (deploy_id, page_id, version_id)
         select d.id, p.page_id, p.version_id from deploys d,
             unnest($3::uuid[], $4::uuid[]) p (page_id, version_id)
         where d.account_id = $1 and d.id = $2",
        account_id,
        deploy_id,
        &pages,
        &versions as &[Option<Uuid>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What a deploy did to pages that there still are.
///
/// # Errors
/// The database's.
pub async fn list_changes(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
) -> Result<Vec<PageChange>, Error> {
    let changes = query_as!(
        PageChange,
        "select p.page_id, p.version_id from deploy_pages p join deploys d on d.id = p.deploy_id
         where d.account_id = $1 and d.id = $2 order by p.page_id",
        account_id,
        deploy_id,
    )
    .fetch_all(conn)
    .await?;
    Ok(changes)
}

/// A page of a site, as a deploy finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPage {
    /// Its id.
    pub id: Uuid,
    /// Its slug.
    pub slug: String,
    /// The version it has.
    pub version_id: Option<Uuid>,
}

/// Every page of a site, with the version it has.
///
/// # Errors
/// The database's.
pub async fn list_pages(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain_id: Uuid,
) -> Result<Vec<FoundPage>, Error> {
    let pages = query_as!(
        FoundPage,
        r#"select p.id, p.slug, v.id as "version_id?" from pages p
           left join lateral (select id from page_versions where page_id = p.id order by number desc limit 1) v
               on true
           where p.account_id = $1 and p.subdomain_id = $2 order by p.slug"#,
        account_id,
        subdomain_id,
    )
    .fetch_all(conn)
    .await?;
    Ok(pages)
}
