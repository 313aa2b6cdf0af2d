//! What a deploy did to pages, so that it can be undone.

use chrono::{DateTime, Utc};
use domain::pages::Publication;
use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// What a deploy did to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageChange {
    /// The page.
    pub page_id: Uuid,
    /// The version it had before; none if the deploy made the page.
    pub version_id: Option<Uuid>,
    /// Whether visitors saw it before, and when they would have; hidden if the deploy made the page.
    pub publication: Publication,
}

/// Notes what a deploy did to pages.
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
    query!(
        "insert into deploy_pages (deploy_id, page_id, version_id, was_published, publish_at)
         select d.id, p.* from deploys d,
             unnest($3::uuid[], $4::uuid[], $5::boolean[], $6::timestamptz[]) p
         where d.account_id = $1 and d.id = $2",
        account_id,
        deploy_id,
        &pages,
        &versions as &[Option<Uuid>],
        &published,
        &due as &[Option<DateTime<Utc>>],
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What a deploy did to pages that there still are.
pub async fn list_changes(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
) -> Result<Vec<PageChange>, Error> {
    let rows = query!(
        "select p.page_id, p.version_id, p.was_published, p.publish_at
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
    });
    Ok(changes.collect())
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
    /// Whether visitors see it, and when they will.
    pub publication: Publication,
}

/// Every page of a site, with the version it has.
pub async fn list_pages(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain_id: Uuid,
) -> Result<Vec<FoundPage>, Error> {
    let rows = query!(
        r#"select p.id, p.slug, p.is_published, p.publish_at, v.id as "version_id?" from pages p
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
        version_id: row.version_id,
        publication: Publication { is_published: row.is_published, publish_at: row.publish_at },
    });
    Ok(pages.collect())
}
