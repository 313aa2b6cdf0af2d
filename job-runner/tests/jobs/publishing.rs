//! Scheduled pages are published on time and once, with several job-runners and after downtime.

use chrono::{DateTime, TimeDelta, Utc};
use contract::{Change, Signal};
use domain::pages::{Content, Publication};
use futures::StreamExt;
use sandbox::test::{eventually, until};
use serde_json::json;
use sqlx::Row;
use store::pages::NewPage;
use uuid::Uuid;

use crate::fixture::account::{Account, new_id, now};

impl Account {
    async fn site(&self) -> Uuid {
        let id = new_id();
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let name = format!("site-{}", &id.simple().to_string()[20..]);
        store::subdomains::insert_subdomain(&mut conn, self.id, id, &name, now()).await.unwrap();
        id
    }

    async fn scheduled(&self, site: Uuid, slug: &str, publish_at: DateTime<Utc>) -> Uuid {
        let page = NewPage {
            id: new_id(),
            folder_id: None,
            subdomain_id: site,
            slug: slug.to_owned(),
            content: Content {
                title: "T".to_owned(),
                html: "x".to_owned(),
                css: None,
                entry_template: None,
                metadata: json!({}),
            },
            publication: Publication { is_published: false, publish_at: Some(publish_at) },
            deploy_id: None,
            created_at: now() - TimeDelta::hours(1),
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        assert!(store::pages::insert_page(&mut conn, self.id, &page).await.unwrap());
        page.id
    }

    /// Returns the time of the last edit of a published page.
    async fn published_at(&self, page: Uuid) -> Option<DateTime<Utc>> {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let summary = store::pages::find_page(&mut conn, self.id, page).await.unwrap().unwrap().summary;
        assert!(!(summary.is_published && summary.publish_at.is_some()));
        summary.is_published.then_some(summary.updated_at)
    }
}

#[tokio::test]
async fn a_page_is_published_within_a_second_of_its_time_and_edges_are_notified_once() {
    let account = Account::new().await;
    let bus: cache::Bus<Signal> = cache::Bus::connect(&account.redis.url, &account.redis.prefix).unwrap();
    let mut events = std::pin::pin!(bus.subscribe());
    assert_eq!(events.next().await, Some(cache::BusEvent::Lagged));
    let site = account.site().await;
    let _running = account.run(&[]).await;
    // The first one shows that the job runner has started.
    let first = account.scheduled(site, "first", now()).await;
    eventually(async || account.published_at(first).await).await;
    let due = now() + TimeDelta::milliseconds(1_500);
    let page = account.scheduled(site, "soon", due).await;
    let later = account.scheduled(site, "later", due + TimeDelta::hours(1)).await;

    let published = eventually(async || account.published_at(page).await).await;
    let late = published - due;
    assert!(late >= TimeDelta::milliseconds(-1) && late < TimeDelta::seconds(1), "{late}");
    let signal = Signal::Changed(Change::Page { subdomain_id: site, slug: "soon".to_owned(), path: None });
    let until_published =
        async { while events.next().await != Some(cache::BusEvent::Message(signal.clone())) {} };
    tokio::time::timeout(std::time::Duration::from_secs(30), until_published).await.unwrap();
    assert_eq!(account.published_at(later).await, None);
    assert_eq!(account.published_at(page).await, Some(published), "edited once");
}

#[tokio::test]
async fn pages_that_came_due_during_downtime_are_published_once_by_several_job_runners() {
    let account = Account::new().await;
    let site = account.site().await;
    let mut pages = Vec::new();
    for number in 0..450 {
        let due = now() - TimeDelta::seconds(number);
        pages.push(account.scheduled(site, &format!("page-{number}"), due).await);
    }
    // A trigger records every publication.
    account
        .change(
            "create table recorded (page_id uuid);
             create function record_publication() returns trigger language plpgsql as $$ begin
                 insert into recorded values (new.id); return new; end $$;
             create trigger record_publication after update on pages for each row execute function record_publication();",
        )
        .await;
    let (one, other, third) = (account.run(&[]).await, account.run(&[]).await, account.run(&[]).await);
    until(async || account.published_at(pages[449]).await.is_some()).await;
    let count = async |what: &'static str| -> i64 {
        sqlx::query(what).fetch_one(&account.database.db).await.unwrap().get(0)
    };
    until(async || count("select count(*) from pages where not is_published").await == 0).await;
    for runner in [one, other, third] {
        runner.stop().await;
    }
    assert_eq!(count("select count(*) from recorded").await, 450, "each once");
    assert_eq!(count("select count(distinct page_id) from recorded").await, 450);
}

#[tokio::test]
async fn a_page_locked_by_an_edit_blocks_no_other() {
    let account = Account::new().await;
    let site = account.site().await;
    let due = now() - TimeDelta::seconds(1);
    let (locked, other) =
        (account.scheduled(site, "locked", due).await, account.scheduled(site, "other", due).await);
    let mut edit = store::begin(&account.database.db).await.unwrap();
    store::pages::lock_page(&mut edit, account.id, locked).await.unwrap();
    let _running = account.run(&[]).await;
    until(async || account.published_at(other).await.is_some()).await;
    assert_eq!(account.published_at(locked).await, None);
    // The edit removes the schedule, so the page is not published any more.
    let publication = domain::pages::PublicationChange { is_published: Some(false), publish_at: None };
    let change = store::pages::PageChange { publication, ..Default::default() };
    store::pages::update_page(&mut edit, account.id, locked, change, now()).await.unwrap();
    store::commit(edit).await.unwrap();
    let third = account.scheduled(site, "third", due).await;
    until(async || account.published_at(third).await.is_some()).await;
    assert_eq!(account.published_at(locked).await, None);
}

#[tokio::test]
async fn archives_are_deleted_after_ninety_days_and_not_before() {
    let account = Account::new().await;
    let archive = |days: i32| {
        format!(
            "insert into entry_archives (id, account_id, page_id, slug, subdomain_id, deleted_by, created_at)
             values (gen_random_uuid(), '{0}', '{0}', 'a{days}', '{0}', 'x', now() - interval '{days} days');
             insert into archived_entries select id, gen_random_uuid(), '{{}}', null, now() from entry_archives
             where slug = 'a{days}'",
            account.id
        )
    };
    account.change(&archive(91)).await;
    account.change(&archive(89)).await;
    let _running = account.run(&["archives.cleanup_interval=20ms"]).await;
    let remaining = async || -> Vec<String> {
        let rows =
            sqlx::query("select slug from archived_entries join entry_archives x on x.id = archive_id");
        rows.fetch_all(&account.database.db).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    until(async || remaining().await == ["a89"]).await;
}
