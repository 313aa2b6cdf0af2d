//! Paths of deployed pages: unique on their site, and part of every change of a page.

use chrono::{DateTime, TimeDelta, Utc};
use contract::{Change, Signal};
use domain::pages::{Content, Publication, PublicationChange};
use serde_json::json;
use store::entries::{EntryOutcome, NewEntry, PageLocation, insert_entry};
use store::pages::{self, NewPage, PageChange, PagePath};
use store::{Conn, accounts};
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);
const SITE: Uuid = Uuid::from_u128(100);
const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

async fn page(conn: &mut Conn, number: u128) -> Uuid {
    let page = NewPage {
        id: Uuid::from_u128(number),
        folder_id: None,
        subdomain_id: SITE,
        slug: format!("page-{number}"),
        content: Content {
            title: "T".to_owned(),
            html: "<!-- service:entries -->".to_owned(),
            css: None,
            entry_template: Some("<p>{{a}}".to_owned()),
            metadata: json!({}),
        },
        publication: Publication::NEW,
        deploy_id: None,
        created_at: NOW,
    };
    assert!(pages::insert_page(conn, ACCOUNT, &page).await.unwrap());
    page.id
}

fn at(page_id: Uuid, path: &str) -> PagePath {
    PagePath { page_id, path: (!path.is_empty()).then(|| path.to_owned()) }
}

async fn path_of(conn: &mut Conn, id: Uuid) -> Option<String> {
    pages::find_location(conn, ACCOUNT, id).await.unwrap().unwrap().path
}

#[tokio::test]
async fn pages_exchange_their_paths_and_no_two_have_the_same() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    sandbox::test::trial(&database, ACCOUNT, NOW).await;
    store::subdomains::insert_subdomain(&mut conn, ACCOUNT, SITE, "quiet-otter", NOW).await.unwrap();
    let [one, two, three] = [page(&mut conn, 10).await, page(&mut conn, 11).await, page(&mut conn, 12).await];
    pages::update_paths(&mut conn, ACCOUNT, &[at(one, "a.html"), at(two, "b.html")]).await.unwrap();
    let exchanged = [at(one, "b.html"), at(two, "c.html"), at(three, "a.html")];
    pages::update_paths(&mut conn, ACCOUNT, &exchanged).await.unwrap();
    assert_eq!(path_of(&mut conn, one).await.as_deref(), Some("b.html"));
    assert_eq!(path_of(&mut conn, two).await.as_deref(), Some("c.html"));
    assert_eq!(path_of(&mut conn, three).await.as_deref(), Some("a.html"));
    pages::update_paths(&mut conn, OTHER, &[at(one, "x.html")]).await.unwrap();
    assert_eq!(path_of(&mut conn, one).await.as_deref(), Some("b.html"), "of another account");
    pages::update_paths(&mut conn, ACCOUNT, &[at(one, "")]).await.unwrap();
    assert_eq!(path_of(&mut conn, one).await, None);
    assert!(pages::update_paths(&mut conn, ACCOUNT, &[at(one, "a.html")]).await.is_err(), "taken");
}

#[tokio::test]
async fn each_change_of_a_deployed_page_names_its_path() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    sandbox::test::trial(&database, ACCOUNT, NOW).await;
    store::subdomains::insert_subdomain(&mut conn, ACCOUNT, SITE, "quiet-otter", NOW).await.unwrap();
    let id = page(&mut conn, 10).await;
    pages::update_paths(&mut conn, ACCOUNT, &[at(id, "Docs/a.html")]).await.unwrap();
    let path = Some("Docs/a.html".to_owned());
    let location = PageLocation { subdomain_id: SITE, slug: "page-10".to_owned(), path: path.clone() };
    let change = Change::Page { subdomain_id: SITE, slug: "page-10".to_owned(), path };
    assert_eq!(Change::from(location.clone()), change);

    let entry = NewEntry {
        id: Uuid::from_u128(20),
        page_id: id,
        data: json!({"a": "b"}),
        submission_id: None,
        created_at: NOW,
    };
    assert_eq!(
        insert_entry(&mut conn, ACCOUNT, &entry).await.unwrap(),
        EntryOutcome::Stored(location.clone())
    );
    let deleted = store::entries::delete_entry(&mut conn, ACCOUNT, id, entry.id).await.unwrap();
    assert_eq!(deleted.as_ref(), Some(&location));
    let read = pages::find_page(&mut conn, ACCOUNT, id).await.unwrap().unwrap();
    assert_eq!(read.location(), location);
    assert!(accounts::list_cached_items(&mut conn, ACCOUNT).await.unwrap().contains(&change));

    let later = PublicationChange { is_published: Some(false), publish_at: Some(Some(NOW)) };
    let later = PageChange { publication: later, ..PageChange::default() };
    pages::update_page(&mut conn, ACCOUNT, id, later, NOW - TimeDelta::days(1)).await.unwrap();
    assert_eq!(pages::publish_due(&mut conn, NOW, 10).await.unwrap(), 1);
    let rows = store::outbox::lock_signals(&mut conn, NOW + TimeDelta::days(1), 10).await.unwrap();
    let signals: Vec<Signal> = rows.into_iter().filter_map(|row| row.message).collect();
    assert!(signals.contains(&Signal::Changed(change)), "{signals:?}");

    assert_eq!(pages::delete_page(&mut conn, ACCOUNT, id).await.unwrap(), Some(location));
}
