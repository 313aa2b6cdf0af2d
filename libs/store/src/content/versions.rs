//! The last twenty versions of each page. Their texts and metadata are stored once per account, by hash.
//!
//! Every transaction that writes pages must first lock the account's usage row ([`crate::usage::lock`]), so that a text
//! can't lose its last version while another transaction begins to reference it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::pages::{Content, Hash, VERSIONS_KEPT, hash_of};
use serde_json::Value;
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// A version without its content, as in a list.
#[derive(Debug, Clone)]
pub struct Version {
    pub id: Uuid,
    /// Counts from 1 within a page.
    pub number: i32,
    pub title: String,
    /// The deploy that wrote it, if any.
    pub deploy_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
}

/// A version to store.
pub(crate) struct NewVersion<'a> {
    pub(crate) page_id: Uuid,
    pub(crate) content: &'a Content,
    /// The deploy that writes it, if any.
    pub(crate) deploy_id: Option<Uuid>,
}

/// Stores a version of each page and deletes those beyond the last twenty.
pub(crate) async fn insert_versions(
    conn: &mut Conn,
    account_id: Uuid,
    versions: &[NewVersion<'_>],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    if versions.is_empty() {
        return Ok(());
    }
    let metadata: Vec<String> = versions.iter().map(|version| version.content.metadata_text()).collect();
    // Each text is sent once, by its hash.
    let mut texts: BTreeMap<Hash, &str> = BTreeMap::new();
    let [mut html, mut css, mut templates, mut notes] = [const { Vec::<Option<Vec<u8>>>::new() }; 4];
    for (version, metadata) in versions.iter().zip(&metadata) {
        let Content { css: style, entry_template, .. } = version.content;
        for (hashes, text) in [
            (&mut html, Some(version.content.html.as_str())),
            (&mut css, style.as_deref()),
            (&mut templates, entry_template.as_deref()),
            (&mut notes, Some(metadata.as_str())),
        ] {
            hashes.push(text.map(|text| {
                let hash = hash_of(text);
                texts.insert(hash, text);
                hash.to_vec()
            }));
        }
    }
    let (hashes, bodies): (Vec<Vec<u8>>, Vec<&str>) =
        texts.into_iter().map(|(hash, text)| (hash.to_vec(), text)).unzip();
    query!(
        "insert into page_contents (account_id, hash, body)
         select $1, hash, body from unnest($2::bytea[], $3::text[]) as text (hash, body)
         on conflict (account_id, hash) do nothing",
        account_id,
        &hashes,
        &bodies as _,
    )
    .execute(&mut *conn)
    .await?;
    let pages: Vec<Uuid> = versions.iter().map(|version| version.page_id).collect();
    let titles: Vec<&str> = versions.iter().map(|version| version.content.title.as_str()).collect();
    let deploys: Vec<Option<Uuid>> = versions.iter().map(|version| version.deploy_id).collect();
    query!(
        "insert into page_versions (account_id, page_id, number, title, html_id, css_id, template_id, metadata_id,
                                    deploy_id, created_at)
         select $1, v.page_id,
                coalesce((select max(number) from page_versions where page_id = v.page_id), 0) + 1, v.title,
                (select id from page_contents where account_id = $1 and hash = v.html),
                (select id from page_contents where account_id = $1 and hash = v.css),
                (select id from page_contents where account_id = $1 and hash = v.template),
                (select id from page_contents where account_id = $1 and hash = v.metadata), v.deploy_id, $9
         from unnest($2::uuid[], $3::text[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::uuid[])
             as v (page_id, title, html, css, template, metadata, deploy_id)",
        account_id,
        &pages,
        &titles as _,
        &html as _,
        &css as _,
        &templates as _,
        &notes as _,
        &deploys as _,
        now,
    )
    .execute(&mut *conn)
    .await?;
    let gone = query!(
        "delete from page_versions v
         using (select page_id, max(number) as newest from page_versions where page_id = any($1) group by page_id) n
         where v.page_id = n.page_id and v.number <= n.newest - $2
         returning v.html_id, v.css_id, v.template_id, v.metadata_id",
        &pages,
        VERSIONS_KEPT,
    )
    .fetch_all(&mut *conn)
    .await?;
    let texts = gone
        .into_iter()
        .flat_map(|row| [Some(row.html_id), row.css_id, row.template_id, Some(row.metadata_id)]);
    delete_unreferenced_texts(conn, account_id, texts.flatten().collect()).await
}

/// Returns the texts that a page's versions reference, for [`delete_unreferenced_texts`] after its deletion.
pub(crate) async fn list_texts_of_page(conn: &mut Conn, page_id: Uuid) -> Result<Vec<i64>, Error> {
    let rows = query!(
        "select html_id, css_id, template_id, metadata_id from page_versions where page_id = $1",
        page_id,
    )
    .fetch_all(conn)
    .await?;
    let texts = rows
        .into_iter()
        .flat_map(|row| [Some(row.html_id), row.css_id, row.template_id, Some(row.metadata_id)]);
    Ok(texts.flatten().collect())
}

/// Deletes those of the texts that no version references.
pub(crate) async fn delete_unreferenced_texts(
    conn: &mut Conn,
    account_id: Uuid,
    texts: Vec<i64>,
) -> Result<(), Error> {
    if texts.is_empty() {
        return Ok(());
    }
    query!(
        "delete from page_contents c where account_id = $1 and id = any($2)
           and not exists (select from page_versions where html_id = c.id)
           and not exists (select from page_versions where css_id = c.id)
           and not exists (select from page_versions where template_id = c.id)
           and not exists (select from page_versions where metadata_id = c.id)",
        account_id,
        &texts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the versions of a page, newest (the current one) first.
pub async fn list_versions(conn: &mut Conn, account_id: Uuid, page_id: Uuid) -> Result<Vec<Version>, Error> {
    let versions = query_as!(
        Version,
        "select id, number, title, deploy_id, created_at from page_versions
         where account_id = $1 and page_id = $2 order by number desc",
        account_id,
        page_id,
    )
    .fetch_all(conn)
    .await?;
    Ok(versions)
}

/// Returns the content of a version.
pub async fn find_version(
    conn: &mut Conn,
    account_id: Uuid,
    page_id: Uuid,
    version_id: Uuid,
) -> Result<Option<Content>, Error> {
    let row = query!(
        r#"select v.title, h.body as html, c.body as "css?", t.body as "template?",
                  m.body::jsonb as "metadata!: Value"
           from page_versions v join page_contents h on h.id = v.html_id
           join page_contents m on m.id = v.metadata_id
           left join page_contents c on c.id = v.css_id left join page_contents t on t.id = v.template_id
           where v.account_id = $1 and v.page_id = $2 and v.id = $3"#,
        account_id,
        page_id,
        version_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Content {
        title: row.title,
        html: row.html,
        css: row.css,
        entry_template: row.template,
        metadata: row.metadata,
    }))
}
