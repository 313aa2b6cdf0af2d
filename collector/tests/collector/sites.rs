//! Creation, suspension and deletion of sites take effect on their events.

use contract::{Change, Signal};
use sandbox::test::until;
use store::{accounts, outbox, purges};

use crate::browser::{Browser, Request, is_no_content, page_view};
use crate::collect::{send, visitor};
use crate::fixture::{CollectorProcess, Fixture, now};

impl Fixture {
    /// Publishes the signals in the outbox, as the job-runner does.
    async fn relay(&self) {
        let bus = cache::Bus::connect(&self.redis.url, &self.redis.prefix).unwrap();
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let due = outbox::lock_signals(&mut tx, now(), 100).await.unwrap();
        for row in &due {
            bus.publish(row.message.as_ref().unwrap()).await.unwrap();
        }
        outbox::delete(&mut tx, &due.iter().map(|row| row.id).collect::<Vec<_>>()).await.unwrap();
        store::commit(tx).await.unwrap();
    }
}

impl CollectorProcess {
    /// Returns the value of a counter, zero before its first increment.
    pub(crate) async fn counter(&self, name: &str) -> u64 {
        let scrape = Request { line: "GET /metrics", headers: vec![], body: vec![] };
        let metrics = Browser::connect(self.ops).await.unwrap().send(&scrape).await.unwrap();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or(0)
    }

    /// Sends page views of a site until the counter rises.
    async fn send_until_counted(&self, counter: &str, site_token: &str) {
        let before = self.counter(counter).await;
        let mut browser = Browser::connect(self.address).await.unwrap();
        until(async || {
            let view = page_view(site_token, "/", visitor(1));
            assert!(is_no_content(&browser.send(&view).await.unwrap()));
            self.counter(counter).await > before
        })
        .await;
    }
}

#[tokio::test]
async fn a_site_created_after_its_first_event_counts_once_its_signal_arrives() {
    let mut fixture = Fixture::new().await;
    fixture.set("collector.site_max_age=1h");
    fixture.set("collector.events_per_minute=100000");
    let collector = fixture.start().await;
    let token = "site_created_later";
    let view = page_view(token, "/", visitor(1));
    send(&collector, &view).await;

    let site = fixture.insert_site(token).await;
    let bus = cache::Bus::connect(&fixture.redis.url, &fixture.redis.prefix).unwrap();
    until(async || {
        let change = Change::AnalyticsSite { site_token: token.into(), subdomain_id: None };
        bus.publish(&Signal::Changed(change)).await.unwrap();
        send(&collector, &view).await;
        fixture.page_views_of(site, Fixture::all_time()).await > 0
    })
    .await;
    collector.stop().await;
}

#[tokio::test]
async fn a_suspended_account_is_not_counted_until_it_is_resumed() {
    let mut fixture = Fixture::new().await;
    fixture.set("collector.site_max_age=1h");
    fixture.set("collector.events_per_minute=1000000");
    let collector = fixture.start_process().await;
    let (accepted, unknown) =
        ("collector_events_accepted_total", "collector_events_dropped_total{reason=\"unknown_site\"}");
    let mut conn = store::acquire(&fixture.database.db).await.unwrap();
    let owner = store::sites::find_owner_by_token(&mut conn, &fixture.site_token).await.unwrap().unwrap();
    collector.send_until_counted(accepted, &fixture.site_token).await;

    accounts::suspend(&mut conn, owner.account_id, None, now()).await.unwrap();
    fixture.relay().await;
    collector.send_until_counted(unknown, &fixture.site_token).await;
    let counted = collector.counter(accepted).await;
    let mut browser = Browser::connect(collector.address).await.unwrap();
    for _ in 0..20 {
        let view = page_view(&fixture.site_token, "/", visitor(1));
        assert!(is_no_content(&browser.send(&view).await.unwrap()));
    }
    assert_eq!(collector.counter(accepted).await, counted, "none of them counts");

    accounts::resume(&mut conn, owner.account_id, now()).await.unwrap();
    fixture.relay().await;
    collector.send_until_counted(accepted, &fixture.site_token).await;

    purges::delete_account(&mut conn, owner.account_id, now()).await.unwrap();
    fixture.relay().await;
    collector.send_until_counted(unknown, &fixture.site_token).await;
    collector.kill().await;
}
