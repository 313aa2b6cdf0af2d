//! Whose events count: of sites that are there, as soon as they are, and for as long.

use contract::{Change, Signal};
use sandbox::test::until;
use store::{accounts, outbox, purges};

use crate::browser::{Browser, Request, answered, page_view};
use crate::collect::{send, visitor};
use crate::fixture::{CollectorProcess, Fixture, now};

impl Fixture {
    /// Says what stands in the outbox, as the job-runner would.
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
    /// A counter's value; zero before its first event.
    pub(crate) async fn counter(&self, name: &str) -> u64 {
        let scrape = Request { line: "GET /metrics", headers: vec![], body: vec![] };
        let metrics = Browser::connect(self.ops).await.unwrap().send(&scrape).await.unwrap();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or(0)
    }

    /// Sends views of a site until the counter rises.
    async fn send_until_one_is(&self, outcome: &str, site_token: &str) {
        let before = self.counter(outcome).await;
        let mut browser = Browser::connect(self.address).await.unwrap();
        until(async || {
            let view = page_view(site_token, "/", visitor(1));
            assert!(answered(&browser.send(&view).await.unwrap()));
            self.counter(outcome).await > before
        })
        .await;
    }
}

#[tokio::test]
async fn a_site_made_after_its_first_event_counts_at_once_when_news_of_it_comes() {
    let mut fixture = Fixture::new().await;
    fixture.set("collector.site_max_age=1h");
    fixture.set("collector.events_per_minute=100000");
    let collector = fixture.start().await;
    let token = "site_that_comes_later";
    let view = page_view(token, "/", visitor(1));
    send(&collector, &view).await;

    let site = fixture.make_site(token).await;
    let bus = cache::Bus::connect(&fixture.redis.url, &fixture.redis.prefix).unwrap();
    until(async || {
        let change = Change::AnalyticsSite { site_token: token.into(), subdomain_id: None };
        bus.publish(&Signal::Changed(change)).await.unwrap();
        send(&collector, &view).await;
        fixture.page_views_of(site, Fixture::always()).await > 0
    })
    .await;
    collector.stop().await;
}

#[tokio::test]
async fn a_suspended_accounts_visits_end_when_that_is_said_and_count_again_when_it_is_over() {
    let mut fixture = Fixture::new().await;
    fixture.set("collector.site_max_age=1h");
    fixture.set("collector.events_per_minute=1000000");
    let collector = fixture.start_process().await;
    let (accepted, unknown) =
        ("collector_events_accepted_total", "collector_events_dropped_total{reason=\"unknown_site\"}");
    let mut conn = store::acquire(&fixture.database.db).await.unwrap();
    let owner = store::sites::find_owner_by_token(&mut conn, &fixture.site_token).await.unwrap().unwrap();
    collector.send_until_one_is(accepted, &fixture.site_token).await;

    accounts::suspend(&mut conn, owner.account_id, None, now()).await.unwrap();
    fixture.relay().await;
    collector.send_until_one_is(unknown, &fixture.site_token).await;
    let counted = collector.counter(accepted).await;
    let mut browser = Browser::connect(collector.address).await.unwrap();
    for _ in 0..20 {
        let view = page_view(&fixture.site_token, "/", visitor(1));
        assert!(answered(&browser.send(&view).await.unwrap()));
    }
    assert_eq!(collector.counter(accepted).await, counted, "none of them");

    accounts::resume(&mut conn, owner.account_id, now()).await.unwrap();
    fixture.relay().await;
    collector.send_until_one_is(accepted, &fixture.site_token).await;

    purges::delete_account(&mut conn, owner.account_id, now()).await.unwrap();
    fixture.relay().await;
    collector.send_until_one_is(unknown, &fixture.site_token).await;
    collector.kill().await;
}
