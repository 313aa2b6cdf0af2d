//! Crashes of Postgres, which empty the unlogged tables of salts: visitors keep their ids while one copy of a salt is left.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use sandbox::test::{KillablePostgres, until};
use store::Db;

use crate::browser::{Browser, Request, is_no_content, page_view};
use crate::fixture::{CollectorProcess, Fixture};

const MASTER_KEY: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9";
const OTHER_KEY: &str = "f9e8d7c6b5a493827160f5e4d3c2b1a0f9e8d7c6b5a493827160f5e4d3c2b1a0";
const VISITOR: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));
const ACCOUNT_AND_SITE: &str = "
    insert into accounts (id, name, created_at) values ('00000000-0000-0000-0000-000000000001', 'a', now());
    insert into analytics_sites (id, account_id, site_token, name, created_at)
    values ('00000000-0000-0000-0000-000000000007', '00000000-0000-0000-0000-000000000001', 'st_token', 's', now())";

struct Crashes {
    fixture: Fixture,
    postgres: KillablePostgres,
    db: Db,
    page: u32,
}

impl Crashes {
    async fn new() -> Self {
        let (mut fixture, postgres) = tokio::join!(Fixture::new(), KillablePostgres::start(&[]));
        let db = store::connect(&store::Config::new(postgres.url(), 2)).unwrap();
        store::execute_raw(&db, ACCOUNT_AND_SITE).await.unwrap();
        fixture.site_token = "st_token".to_owned();
        fixture.set(&format!("store.url={}", postgres.url()));
        fixture.set(&format!("salts.master_key={MASTER_KEY}"));
        Self { fixture, postgres, db, page: 0 }
    }

    async fn crash(&mut self) {
        self.postgres.kill().await;
        self.postgres.restart().await;
    }

    /// Sends a page view of the only visitor and waits until ClickHouse has it.
    async fn visit(&mut self, collector: &CollectorProcess) {
        self.page += 1;
        let (path, page) = (format!("/{}", self.page), self.page as usize);
        let (token, fixture) = (self.fixture.site_token.clone(), &self.fixture);
        // While Postgres starts, the site can't be looked up and the event is dropped.
        until(async || {
            let mut browser = Browser::connect(collector.address).await.unwrap();
            let response = browser.send(&page_view(&token, &path, VISITOR)).await.unwrap();
            assert!(is_no_content(&response), "{response}");
            fixture.count_by_path().await.len() == page
        })
        .await;
        // The row for retention follows the event.
        until(async || self.ids().await.iter().any(|id| id.starts_with("retention"))).await;
    }

    /// Returns the visitor's ids of the day, and those for retention.
    async fn ids(&self) -> BTreeSet<String> {
        let ids = "SELECT DISTINCT 'day', visitor FROM events
                   UNION ALL SELECT DISTINCT 'retention', returner FROM returns";
        let ids = self.fixture.query(ids).await;
        ids.lines().map(str::to_owned).collect()
    }

    async fn salts(&self) -> i64 {
        let count = "select (select count(*) from salts) + (select count(*) from retention_salts)";
        sqlx::query_scalar(count).fetch_one(&mut *store::acquire(&self.db).await.unwrap()).await.unwrap()
    }
}

async fn counter(collector: &CollectorProcess, name: &str) -> u64 {
    let scrape = Request { line: "GET /metrics", headers: vec![], body: vec![] };
    let metrics = Browser::connect(collector.ops).await.unwrap().send(&scrape).await.unwrap();
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in\n{metrics}"))
}

async fn restored_and_lost(collector: &CollectorProcess) -> (u64, u64) {
    let restored = counter(collector, "collector_salts_restored_total").await;
    (restored, counter(collector, "collector_salts_lost_total").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_keep_their_ids_while_a_copy_of_the_salts_is_left() {
    let mut crashes = Crashes::new().await;
    let first = crashes.fixture.start_process().await;
    crashes.visit(&first).await;
    assert_eq!(restored_and_lost(&first).await, (0, 0), "the first salts of an installation are no loss");
    let ids = crashes.ids().await;
    let salts = crashes.salts().await;

    // From Redis: the collector that starts after the crash knows nothing. The master key was rotated meanwhile.
    first.stop().await;
    crashes.crash().await;
    assert_eq!(crashes.salts().await, 0, "the tables of salts are unlogged");
    crashes.fixture.set(&format!("salts.master_key=2027:{OTHER_KEY},0:{MASTER_KEY}"));
    crashes.fixture.set_folder();
    let second = crashes.fixture.start_process().await;
    crashes.visit(&second).await;
    assert_eq!(crashes.ids().await, ids);
    let (restored, lost) = restored_and_lost(&second).await;
    assert_eq!((restored.cast_signed(), lost), (salts, 0));

    // From the memory of a running collector: Redis is empty, and another collector starts.
    crashes.crash().await;
    until(async || crashes.salts().await == salts).await;
    crashes.fixture.set("redis.prefix=emptied");
    crashes.fixture.set_folder();
    let third = crashes.fixture.start_process().await;
    crashes.visit(&third).await;
    assert_eq!(crashes.ids().await, ids);
    assert_eq!(restored_and_lost(&third).await, (0, 0));

    // All copies are gone.
    second.stop().await;
    third.kill().await;
    crashes.crash().await;
    crashes.fixture.set("redis.prefix=emptied_again");
    crashes.fixture.set_folder();
    let fourth = crashes.fixture.start_process().await;
    crashes.visit(&fourth).await;
    // The visitor counts anew.
    until(async || crashes.ids().await.len() == 2 * ids.len()).await;
    let (restored, lost) = restored_and_lost(&fourth).await;
    assert_eq!((restored, lost.cast_signed()), (0, salts));
    fourth.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collectors_that_start_at_once_after_a_crash_restore_each_salt_once() {
    let mut crashes = Crashes::new().await;
    let first = crashes.fixture.start_process().await;
    crashes.visit(&first).await;
    let (ids, salts) = (crashes.ids().await, crashes.salts().await);
    first.stop().await;
    crashes.crash().await;
    let mut collectors = Vec::new();
    for _ in 0..3 {
        crashes.fixture.set_folder();
        collectors.push(crashes.fixture.start_process().await);
    }
    for collector in &collectors {
        crashes.visit(collector).await;
    }
    assert_eq!(crashes.ids().await, ids);
    let (mut restored, mut lost) = (0, 0);
    for collector in collectors {
        let counted = restored_and_lost(&collector).await;
        (restored, lost) = (restored + counted.0, lost + counted.1);
        collector.stop().await;
    }
    assert_eq!((restored.cast_signed(), lost), (salts, 0));
}
