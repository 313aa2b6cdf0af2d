//! Views from concurrent edge servers add up exactly, and only for existing pages.

use domain::pages::{Content, Publication};
use serde_json::json;
use sqlx::Row;
use store::pages::{NewPage, PageChange, insert_page, update_page};
use store::views::add_views;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_views_add_up_and_unknown_pages_are_skipped() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    let (account, site, now) = (Uuid::from_u128(1), Uuid::from_u128(2), chrono::DateTime::UNIX_EPOCH);
    sandbox::test::trial(&database, account, now).await;
    store::subdomains::insert_subdomain(&mut conn, account, site, "quiet-otter", now).await.unwrap();
    let ids: Vec<Uuid> = (10..40).map(Uuid::from_u128).collect();
    for id in &ids {
        let page = NewPage {
            id: *id,
            folder_id: None,
            subdomain_id: site,
            slug: id.to_string(),
            content: Content {
                title: "T".to_owned(),
                html: String::new(),
                css: None,
                entry_template: None,
                metadata: json!({}),
            },
            publication: Publication::NEW,
            deploy_id: None,
            created_at: now,
        };
        assert!(insert_page(&mut conn, account, &page).await.unwrap());
    }
    // A concurrent edit of one of them neither waits nor is waited for.
    let mut edit = store::begin(&database.db).await.unwrap();
    let change = PageChange { html: Some("x".to_owned()), ..PageChange::default() };
    assert!(update_page(&mut edit, account, ids[0], change, now).await.unwrap());
    let mut writing = tokio::task::JoinSet::new();
    for edge in 0..8 {
        let (db, mut counted) = (database.db.clone(), ids.clone());
        counted.rotate_left(edge * 3);
        if edge % 2 == 0 {
            counted.reverse();
        }
        counted.extend([ids[0], Uuid::from_u128(99)]);
        writing.spawn(async move {
            let counted: Vec<_> = counted.into_iter().map(|id| (id, 2)).collect();
            let mut conn = store::acquire(&db).await.unwrap();
            add_views(&mut conn, &counted).await.unwrap();
        });
    }
    writing.join_all().await;
    store::commit(edit).await.unwrap();
    let rows = sqlx::query("select page_id, views from page_views order by page_id").fetch_all(&database.db);
    let views: Vec<(Uuid, i64)> = rows.await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected: Vec<_> = ids.iter().map(|id| (*id, if *id == ids[0] { 32 } else { 16 })).collect();
    assert_eq!(views, expected);
}
