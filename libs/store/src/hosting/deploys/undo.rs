//! The changes that deploys made to pages, so that they can be rolled back.

use chrono::{DateTime, Utc};
use domain::pages::Publication;
use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// The state of a page before a deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageChange {
    pub page_id: Uuid,
    /// `None` if the deploy created the page.
    pub version_id: Option<Uuid>,
    /// Unpublished if the deploy created the page.
    pub publication: Publication,
    /// The path of the page before the deploy.
    pub path: Option<String>,
}

/// Inserts the page changes of a deploy.
pub async fn insert_changes(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
    changes: &[PageChange],
) -> Result<(), Error> {
    let pages: Vec<Uuid> = changes.iter().map(|change| change.page_id).collect();
    let versions: Vec<Option<Uuid>> = changes.iter().map(|change| change.version_id).collect();
    let published: Vec<bool> = changes.iter().map(|change| change.publication.is_published).collect();
    let due: Vec<Option<DateTime<Utc>>> =
        changes.iter().map(|change| change.publication.publish_at).collect();
    let paths: Vec<Option<&str>> = changes.iter().map(|change| change.path.as_deref()).collect();
    query!(
        "insert into deploy_pages (deploy_id, page_id, version_id, was_published, publish_at, path)
         select d.id, p.* from deploys d,
             unnest($3::uuid[], $4::uuid[], $5::boolean[], $6::timestamptz[], $7::text[]) p
         where d.account_id = $1 and d.id = $2",
        account_id,
        deploy_id,
        &pages,
        &versions as &[Option<Uuid>],
        &published,
        &due as &[Option<DateTime<Utc>>],
        &paths as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the changes of a deploy to pages that still exist.
pub async fn list_changes(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
) -> Result<Vec<PageChange>, Error> {
    let rows = query!(
        "select p.page_id, p.version_id, p.was_published, p.publish_at, p.path
         from deploy_pages p join deploys d on d.id = p.deploy_id
         where d.account_id = $1 and d.id = $2 order by p.page_id",
        account_id,
        deploy_id,
    )
    .fetch_all(conn)
    .await?;
    let changes = rows.into_iter().map(|row| PageChange {
        page_id: row.page_id,
        version_id: row.version_id,
        publication: Publication { is_published: row.was_published, publish_at: row.publish_at },
        path: row.path,
    });
    Ok(changes.collect())
}

/// A page of a site before a deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPage {
    pub id: Uuid,
    pub slug: String,
    /// Path of the deployed file that it shows, if any.
    pub path: Option<String>,
    /// Its current version.
    pub version_id: Option<Uuid>,
    pub publication: Publication,
}

/// Returns every page of a site with its current version.
pub async fn list_pages(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain_id: Uuid,
) -> Result<Vec<FoundPage>, Error> {
    let rows = query!(
        r#"select p.id, p.slug, p.path, p.is_published, p.publish_at, v.id as "version_id?" from pages p
           left join lateral (select id from page_versions where page_id = p.id order by number desc limit 1) v
               on true
           where p.account_id = $1 and p.subdomain_id = $2 order by p.slug"#,
        account_id,
        subdomain_id,
    )
    .fetch_all(conn)
    .await?;
    let pages = rows.into_iter().map(|row| FoundPage {
        id: row.id,
        slug: row.slug,
        path: row.path,
        version_id: row.version_id,
        publication: Publication { is_published: row.is_published, publish_at: row.publish_at },
    });
    Ok(pages.collect())
}
