//! Renewal information and profiles, over a stub, because pebble lacks both.

use chrono::{DateTime, TimeDelta, Utc};
use sandbox::test::{eventually, until};
use sqlx::Row as _;

use super::stub_authority::{PROFILE, READ_AGAIN_SECONDS, StubAuthority};
use crate::fixture::account::{Account, Running, now};

const NAME: &str = "www.shop.example";

/// An account with one verified domain, and a stub that suggests to renew after 20 days.
pub(super) struct Stubbed {
    pub(super) account: Account,
    pub(super) stub: StubAuthority,
}

/// A row of `certificates`.
pub(super) struct Certificate {
    pub(super) chain: Option<String>,
    renew_at: Option<DateTime<Utc>>,
    next_attempt_at: Option<DateTime<Utc>>,
    renewal_info_due_at: Option<DateTime<Utc>>,
    pub(super) error_code: Option<String>,
    error: Option<String>,
}

impl Stubbed {
    pub(super) async fn new() -> Self {
        let account = Account::new().await;
        account.verified_domain(NAME).await;
        let mut conn = store::acquire(&account.database.db).await.unwrap();
        store::certificates::insert_due(&mut conn, NAME, now()).await.unwrap();
        drop(conn);
        let stub = StubAuthority::start((now() + TimeDelta::days(20), now() + TimeDelta::days(21)));
        Self { account, stub }
    }

    pub(super) async fn run(&self, set: &[&str]) -> Running {
        let settings = [
            "http.base_url=http://localhost:8080".to_owned(),
            "http.sites_domain=localhost".to_owned(),
            format!("acme.directory_url={}", self.stub.directory_url()),
            format!("acme.ca_file={}", self.stub.ca_file().display()),
            "acme.poll_interval=20ms".to_owned(),
            "acme.retry_schedule=[\"100ms\"]".to_owned(),
            "acme.limits.failures_per_hour=1000".to_owned(),
        ];
        let all: Vec<&str> = settings.iter().map(String::as_str).chain(set.iter().copied()).collect();
        self.account.run(&all).await
    }

    pub(super) async fn when(&self, matches: impl Fn(&Certificate) -> bool) -> Certificate {
        eventually(async || Some(self.certificate().await).filter(&matches)).await
    }

    async fn certificate(&self) -> Certificate {
        let row = sqlx::query("select * from certificates where name = $1").bind(NAME);
        let row = row.fetch_one(&self.account.database.db).await.unwrap();
        Certificate {
            chain: row.get("chain"),
            renew_at: row.get("renew_at"),
            next_attempt_at: row.get("next_attempt_at"),
            renewal_info_due_at: row.get("renewal_info_due_at"),
            error_code: row.get("error_code"),
            error: row.get("error"),
        }
    }

    /// Waits until renewal information was read, which is due again later.
    async fn read(&self, reads: usize) -> Certificate {
        until(async || self.stub.reads().len() >= reads).await;
        let soon = now() + TimeDelta::seconds(READ_AGAIN_SECONDS + 60);
        self.when(|one| one.renewal_info_due_at.is_some_and(|at| at > now() && at < soon)).await
    }

    async fn change(&self, set: &str) {
        self.account.change(&format!("update certificates set {set}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn renews_when_the_authority_says() {
    let stubbed = Stubbed::new().await;
    let _running = stubbed.run(&[]).await;
    let first = stubbed.read(1).await;
    let day = (first.renew_at.unwrap() - now()).num_hours() / 24;
    assert!((19..=20).contains(&day), "in the window, not at a third of 90 days: {:?}", first.renew_at);
    assert_eq!(first.next_attempt_at, first.renew_at);
    let again = (first.renewal_info_due_at.unwrap() - now()).num_seconds();
    assert!((READ_AGAIN_SECONDS - 60..=READ_AGAIN_SECONDS).contains(&again), "{again}");

    // The same window gives the same moment, and one that is postponed stays so.
    stubbed.change("renewal_info_due_at = now()").await;
    let same = stubbed.read(2).await;
    assert_eq!((same.renew_at, same.next_attempt_at), (first.renew_at, first.renew_at));
    stubbed.change("renewal_info_due_at = now(), next_attempt_at = now() + interval '1 hour'").await;
    let postponed = stubbed.read(3).await;
    assert_eq!(postponed.renew_at, first.renew_at);
    assert!(postponed.next_attempt_at < first.renew_at);
    stubbed.change("next_attempt_at = renew_at").await;

    // The authority has to revoke the certificate and wants it renewed at once.
    let identifier = stubbed.stub.reads()[0].clone();
    let past = (now() - TimeDelta::hours(2), now() - TimeDelta::hours(1));
    stubbed.stub.suggest(&identifier, past);
    assert_eq!(stubbed.stub.orders().len(), 1);
    stubbed.change("renewal_info_due_at = now()").await;
    stubbed.when(|one| one.chain != first.chain).await;
    let renewed = stubbed.read(5).await;
    assert!(renewed.renew_at.unwrap() > now() + TimeDelta::days(19));
    assert_eq!(stubbed.stub.orders()[1]["replaces"].as_str(), Some(identifier.as_str()));
    assert_eq!(stubbed.stub.orders().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_names_its_profile_and_what_it_replaces() {
    let stubbed = Stubbed::new().await;
    let profile = format!("acme.profile={PROFILE}");
    let _running = stubbed.run(&[&profile]).await;
    stubbed.read(1).await;
    let identifier = stubbed.stub.reads()[0].clone();
    let first = stubbed.certificate().await;
    stubbed.change("next_attempt_at = now()").await;
    let second = stubbed.when(|one| one.chain != first.chain).await;
    let orders = stubbed.stub.orders();
    assert_eq!(orders.len(), 2);
    assert!(orders.iter().all(|order| order["profile"] == PROFILE), "{orders:?}");
    assert!(orders[0]["replaces"].is_null(), "the first certificate replaces none");
    assert_eq!(orders[1]["replaces"].as_str(), Some(identifier.as_str()));

    // The authority knows of another replacement, as after a lost response.
    stubbed.stub.refuse_replacements();
    stubbed.change("next_attempt_at = now()").await;
    stubbed.when(|one| one.chain != second.chain).await;
    let orders = stubbed.stub.orders();
    assert_eq!((orders.len(), orders[3]["replaces"].is_null()), (4, true));
    let failed = stubbed.account.number("select count(*) from acme_orders where failed_at is not null").await;
    assert_eq!(failed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_not_offered_is_refused_in_the_authoritys_words() {
    let stubbed = Stubbed::new().await;
    let running = stubbed.run(&["acme.profile=classic"]).await;
    let refused = stubbed.when(|one| one.error.is_some()).await;
    running.stop().await;
    assert_eq!(refused.error.as_deref(), Some("The stub offers only the profile shortlived."));
    assert_eq!((refused.error_code.as_deref(), refused.chain), (Some("acme_refused"), None));
    let _running = stubbed.run(&[]).await;
    let issued = stubbed.when(|one| one.chain.is_some()).await;
    assert_eq!((issued.error_code, issued.error), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_authority_has_a_profile_of_its_own() {
    let stubbed = Stubbed::new().await;
    let url = format!("acme.fallback_directory_url={}", stubbed.stub.directory_url());
    let profile = format!("acme.fallback_profile={PROFILE}");
    // Nothing answers at the first one.
    let set = ["acme.directory_url=https://127.0.0.1:9/directory", &url, &profile];
    let _running =
        stubbed.run(&[&set[..], &["acme.fallback_after=0s", "acme.profile=classic"]].concat()).await;
    stubbed.read(1).await;
    let orders = stubbed.stub.orders();
    assert_eq!((orders.len(), orders[0]["profile"].as_str()), (1, Some(PROFILE)));
}
