//! Pages that publish themselves: in time, once, by however many runners, also after none ran.

use chrono::{DateTime, TimeDelta, Utc};
use contract::{Change, Signal};
use domain::pages::{Content, Publication};
use futures::StreamExt;
use sandbox::test::{eventually, until};
use serde_json::json;
use sqlx::Row;
use store::pages::NewPage;
use uuid::Uuid;

use crate::harness::{Account, new_id, now};

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

    /// When the page was published: the time of its last edit once it is.
    async fn published_at(&self, page: Uuid) -> Option<DateTime<Utc>> {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let summary = store::pages::find_page(&mut conn, self.id, page).await.unwrap().unwrap().summary;
        assert!(!(summary.is_published && summary.publish_at.is_some()));
        summary.is_published.then_some(summary.updated_at)
    }
}

#[tokio::test]
async fn a_page_is_published_within_a_second_of_its_time_and_edges_are_told_once() {
    let account = Account::new().await;
    let bus: cache::Bus<Signal> = cache::Bus::connect(&account.redis.url, &account.redis.prefix).unwrap();
    let mut heard = std::pin::pin!(bus.subscribe());
    assert_eq!(heard.next().await, Some(cache::BusEvent::Lagged));
    let site = account.site().await;
    let _running = account.run(&[]).await;
    let due = now() + TimeDelta::milliseconds(1_500);
    let page = account.scheduled(site, "soon", due).await;
    let later = account.scheduled(site, "later", due + TimeDelta::hours(1)).await;

    let published = eventually(async || account.published_at(page).await).await;
    let late = published - due;
    assert!(late >= TimeDelta::milliseconds(-1) && late < TimeDelta::seconds(1), "{late}");
    let told = Signal::Changed(Change::Page { subdomain_id: site, slug: "soon".to_owned() });
    let all_heard = async { while heard.next().await != Some(cache::BusEvent::Message(told.clone())) {} };
    tokio::time::timeout(std::time::Duration::from_secs(30), all_heard).await.unwrap();
    assert_eq!(account.published_at(later).await, None);
    assert_eq!(account.published_at(page).await, Some(published), "edited once");
}

#[tokio::test]
async fn what_came_due_while_nobody_ran_is_published_once_by_many_runners() {
    let account = Account::new().await;
    let site = account.site().await;
    let mut pages = Vec::new();
    for number in 0..450 {
        let due = now() - TimeDelta::seconds(number);
        pages.push(account.scheduled(site, &format!("page-{number}"), due).await);
    }
    // Every publication is noted by the database itself.
    account
        .change(
            "create table noted (page_id uuid);
             create function note() returns trigger language plpgsql as $$ begin
                 insert into noted values (new.id); return new; end $$;
             create trigger note after update on pages for each row execute function note();",
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
    assert_eq!(count("select count(*) from noted").await, 450, "each once");
    assert_eq!(count("select count(distinct page_id) from noted").await, 450);
}

#[tokio::test]
async fn a_page_somebody_edits_right_then_waits_and_keeps_no_other_from_its_time() {
    let account = Account::new().await;
    let site = account.site().await;
    let due = now() - TimeDelta::seconds(1);
    let (held, other) =
        (account.scheduled(site, "held", due).await, account.scheduled(site, "other", due).await);
    let mut edit = store::begin(&account.database.db).await.unwrap();
    store::pages::lock_page(&mut edit, account.id, held).await.unwrap();
    let _running = account.run(&[]).await;
    until(async || account.published_at(other).await.is_some()).await;
    assert_eq!(account.published_at(held).await, None);
    // The edit takes the schedule away: then there is nothing to publish any more.
    let wish = domain::pages::PublicationChange { is_published: Some(false), publish_at: None };
    let change = store::pages::PageChange { publication: wish, ..Default::default() };
    store::pages::update_page(&mut edit, account.id, held, change, now()).await.unwrap();
    store::commit(edit).await.unwrap();
    let third = account.scheduled(site, "third", due).await;
    until(async || account.published_at(third).await.is_some()).await;
    assert_eq!(account.published_at(held).await, None);
}

#[tokio::test]
async fn archives_are_forgotten_after_ninety_days_and_not_before() {
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
    let left = async || -> Vec<String> {
        let rows =
            sqlx::query("select slug from archived_entries join entry_archives x on x.id = archive_id");
        rows.fetch_all(&account.database.db).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    until(async || left().await == ["a89"]).await;
}
