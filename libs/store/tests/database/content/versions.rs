//! Versions of pages: twenty for each, shared texts stored once, nothing left behind.

use chrono::{DateTime, TimeDelta, Utc};
use domain::pages::{Content, Publication};
use sandbox::test::TestDatabase;
use serde_json::json;
use sqlx::Row;
use store::Conn;
use store::accounts::{NewTrial, insert_trial};
use store::pages::{self, NewPage, PageChange, PageUpsert, UpsertOutcome};
use store::versions::{find_version, list_versions};
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);
const SITE: Uuid = Uuid::from_u128(100);

fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(1_795_003_200_123_456_000)
}

fn content(html: &str) -> Content {
    let title = "T".to_owned();
    Content { title, html: html.to_owned(), css: None, entry_template: None, metadata: json!({}) }
}

async fn account(conn: &mut Conn) {
    let trial =
        NewTrial { id: ACCOUNT, claim_token_hash: [1; 32], claim_deadline: noon(), created_at: noon() };
    insert_trial(conn, &trial).await.unwrap();
    store::subdomains::insert_subdomain(conn, ACCOUNT, SITE, "quiet-otter", noon()).await.unwrap();
}

async fn page(conn: &mut Conn, number: u128, content: Content) -> Uuid {
    let id = Uuid::from_u128(1_000 + number);
    let page = NewPage {
        id,
        folder_id: None,
        subdomain_id: SITE,
        slug: format!("page-{number}"),
        content,
        publication: Publication::NEW,
        deploy_id: None,
        created_at: noon(),
    };
    assert!(pages::insert_page(conn, ACCOUNT, &page).await.unwrap());
    id
}

async fn edit(conn: &mut Conn, id: Uuid, html: &str) {
    let change = PageChange { html: Some(html.to_owned()), ..PageChange::default() };
    assert!(pages::update_page(conn, ACCOUNT, id, change, noon()).await.unwrap());
}

async fn count(database: &TestDatabase, what: &'static str) -> i64 {
    sqlx::query(what).fetch_one(&database.db).await.unwrap().get(0)
}

const TEXTS: &str = "select count(*) from page_contents";

#[tokio::test]
async fn keeps_the_last_twenty_versions_only() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    account(&mut conn).await;
    let id = page(&mut conn, 0, content("<p>0")).await;
    for number in 1..=25 {
        edit(&mut conn, id, &format!("<p>{number}")).await;
    }
    let versions = list_versions(&mut conn, ACCOUNT, id).await.unwrap();
    let numbers: Vec<i32> = versions.iter().map(|version| version.number).collect();
    assert_eq!(numbers, (7..=26).rev().collect::<Vec<_>>());
    assert_eq!(count(&database, TEXTS).await, 20 + 1, "all versions share their metadata");
    let newest = find_version(&mut conn, ACCOUNT, id, versions[0].id).await.unwrap();
    assert_eq!(newest, Some(content("<p>25")));
    let (other_account, other_page) = (Uuid::from_u128(2), page(&mut conn, 1, content("x")).await);
    assert_eq!(find_version(&mut conn, other_account, id, versions[0].id).await.unwrap(), None);
    assert_eq!(find_version(&mut conn, ACCOUNT, other_page, versions[0].id).await.unwrap(), None);
}

#[tokio::test]
async fn a_shared_text_is_stored_once_and_deleted_with_its_last_version() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    account(&mut conn).await;
    let styled =
        Content { css: Some("p{}".to_owned()), entry_template: Some("p{}".to_owned()), ..content("<p>x") };
    let one = page(&mut conn, 1, styled.clone()).await;
    let other = page(&mut conn, 2, styled).await;
    edit(&mut conn, one, "<p>y").await;
    edit(&mut conn, one, "<p>x").await;
    assert_eq!(count(&database, TEXTS).await, 3 + 1);
    pages::delete_page(&mut conn, ACCOUNT, one).await.unwrap();
    assert_eq!(count(&database, TEXTS).await, 2 + 1, "the other page's are still there");
    pages::delete_page(&mut conn, ACCOUNT, other).await.unwrap();
    assert_eq!(count(&database, TEXTS).await, 0);
}

#[tokio::test]
async fn large_metadata_is_stored_once_however_often_its_pages_are_edited() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    account(&mut conn).await;
    // Postgres can't compress digests well.
    let noise: Vec<String> =
        (0..200).map(|n| format!("{:x?}", domain::pages::hash_of(&n.to_string()))).collect();
    let large = Content { metadata: json!({"noise": noise}), ..content("<p>x") };
    let bytes = i64::try_from(large.metadata_text().len()).unwrap();
    let (one, other) = (page(&mut conn, 1, large.clone()).await, page(&mut conn, 2, large.clone()).await);
    for number in 1..=25 {
        edit(&mut conn, one, &format!("<p>{number}")).await;
        edit(&mut conn, other, &format!("<p>{number}")).await;
    }
    const STORED: &str = "select sum(length(body)) from page_contents where body like '%noise%'";
    assert_eq!(count(&database, STORED).await, bytes, "one copy for 40 versions");
    let size = count(&database, "select pg_total_relation_size('pages')").await;
    assert!(size < 20 * bytes, "{size} bytes: an edit that leaves the metadata does not store it again");
    let oldest = list_versions(&mut conn, ACCOUNT, one).await.unwrap().pop().unwrap();
    let restored = find_version(&mut conn, ACCOUNT, one, oldest.id).await.unwrap().unwrap();
    assert_eq!(restored, Content { html: "<p>6".to_owned(), ..large });
}

#[tokio::test]
async fn only_content_changes_create_versions_and_every_edit_raises_updated_at() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    account(&mut conn).await;
    let id = page(&mut conn, 1, content("<p>x")).await;
    let mut times = Vec::new();
    for change in [
        PageChange { html: Some("<p>x".to_owned()), ..PageChange::default() },
        PageChange { folder_id: Some(None), ..PageChange::default() },
        PageChange::default(),
    ] {
        pages::update_page(&mut conn, ACCOUNT, id, change, noon() - TimeDelta::days(1)).await.unwrap();
        times.push(pages::lock_page(&mut conn, ACCOUNT, id).await.unwrap().unwrap().timestamp_micros());
    }
    let first = noon().timestamp_millis() * 1_000;
    assert_eq!(times, [first + 1_000, first + 2_000, first + 3_000], "even if the clock does not advance");
    assert_eq!(list_versions(&mut conn, ACCOUNT, id).await.unwrap().len(), 1);
    let gone = pages::update_page(&mut conn, ACCOUNT, SITE, PageChange::default(), noon()).await.unwrap();
    assert!(!gone);
}

fn upsert(html: &str) -> PageUpsert {
    PageUpsert {
        id: Uuid::from_u128(7),
        folder_id: None,
        subdomain_id: SITE,
        slug: "index".to_owned(),
        title: "T".to_owned(),
        html: html.to_owned(),
        css: None,
        metadata: None,
        is_published: None,
        deploy_id: None,
    }
}

#[tokio::test]
async fn an_upsert_writes_only_differences() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    account(&mut conn).await;
    let id = Uuid::from_u128(7);
    let styled = || PageUpsert {
        css: Some(Some("p{}".to_owned())),
        metadata: Some(json!({"n": 1e2, "a": {"c": 1, "b": [2.0]}})),
        deploy_id: Some(SITE),
        ..upsert("<p>x")
    };
    let hide = || PageUpsert { is_published: Some(false), ..upsert("<p>x") };
    let bare = || PageUpsert { css: Some(None), ..upsert("<p>x") };
    let mut updated_at = None;
    for (page, became) in [
        (styled(), UpsertOutcome::Created(id)),
        (styled(), UpsertOutcome::Unchanged(id)),
        (PageUpsert { id: Uuid::from_u128(8), ..upsert("<p>x") }, UpsertOutcome::Unchanged(id)),
        (styled(), UpsertOutcome::Unchanged(id)),
        (hide(), UpsertOutcome::Updated(id)),
        (hide(), UpsertOutcome::Unchanged(id)),
        (bare(), UpsertOutcome::Updated(id)),
        (upsert("<p>y"), UpsertOutcome::Updated(id)),
    ] {
        let said = format!("{page:?}");
        assert_eq!(pages::upsert_page(&mut conn, ACCOUNT, page, noon()).await.unwrap(), became, "{said}");
        let now = pages::lock_page(&mut conn, ACCOUNT, id).await.unwrap();
        assert_eq!(now > updated_at, !matches!(became, UpsertOutcome::Unchanged(_)), "{said}");
        updated_at = now;
    }
    let versions = list_versions(&mut conn, ACCOUNT, id).await.unwrap();
    let deploys: Vec<_> = versions.iter().map(|version| version.deploy_id).collect();
    assert_eq!(deploys, [None, None, Some(SITE)]);
}

#[tokio::test]
async fn many_pages_are_upserted_like_one_after_the_other() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    account(&mut conn).await;
    let [changed, same] = [7, 8].map(Uuid::from_u128);
    let page = |id: Uuid, slug: &str, html: &str| PageUpsert { id, slug: slug.to_owned(), ..upsert(html) };
    for round in 0..25_u128 {
        let new = Uuid::from_u128(100 + round);
        let all = vec![
            page(new, &format!("new-{round}"), "<p>new"),
            page(changed, "changed", &format!("<p>{round}")),
            page(same, "same", "<p>new"),
        ];
        let outcomes = pages::upsert_pages(&mut conn, ACCOUNT, all, noon()).await.unwrap();
        let expected = match round {
            0 => [new, changed, same].map(UpsertOutcome::Created),
            _ => {
                [UpsertOutcome::Created(new), UpsertOutcome::Updated(changed), UpsertOutcome::Unchanged(same)]
            }
        };
        assert_eq!(outcomes, expected, "round {round}");
    }
    for (id, html, numbers) in [(changed, "<p>24", (6..=25).rev().collect()), (same, "<p>new", vec![1])] {
        let page = pages::find_page(&mut conn, ACCOUNT, id).await.unwrap().unwrap();
        assert_eq!(page.content.html, html);
        let versions = list_versions(&mut conn, ACCOUNT, id).await.unwrap();
        assert_eq!(versions.iter().map(|version| version.number).collect::<Vec<i32>>(), numbers);
        let newest = find_version(&mut conn, ACCOUNT, id, versions[0].id).await.unwrap().unwrap();
        assert_eq!(newest.html, html);
    }
    let texts = sqlx::query_scalar::<_, i64>("select count(*) from page_contents");
    assert_eq!(
        texts.fetch_one(&database.db).await.unwrap(),
        22,
        "20 versions, the shared text and the metadata"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_edits_of_shared_texts_neither_deadlock_nor_lose_texts() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    account(&mut conn).await;
    let mut editing = tokio::task::JoinSet::new();
    for number in 0..6 {
        let id = page(&mut conn, number, content("<p>0")).await;
        let db = database.db.clone();
        editing.spawn(async move {
            for turn in 0..30 {
                let mut tx = store::begin(&db).await.unwrap();
                edit(&mut tx, id, &format!("<p>{}", turn % 23)).await;
                store::commit(tx).await.unwrap();
            }
            id
        });
    }
    for id in editing.join_all().await {
        for version in list_versions(&mut conn, ACCOUNT, id).await.unwrap() {
            assert!(find_version(&mut conn, ACCOUNT, id, version.id).await.unwrap().is_some());
        }
    }
    assert_eq!(count(&database, TEXTS).await, 20 + 1, "all versions share their metadata");
}
