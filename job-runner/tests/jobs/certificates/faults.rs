//! Faults of DNS and of the authority: its words are stored, the order is retried, and nothing is lost.

use sandbox::pebble::{Options, Pebble};
use sandbox::test::until;

use super::authority::Authority;
use super::responders;
use crate::fixture::account::{Account, now};

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_that_leads_elsewhere_shows_the_authoritys_words_and_the_next_attempt() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    authority.pebble.set_addresses("lost.example", &["127.0.0.9"]).await.unwrap();
    authority.verified_domain("lost.example").await;
    let running = authority.run(&["acme.challenges=[\"http-01\"]", "acme.retry_schedule=[\"1h\"]"]).await;
    let refused = authority.certificate_when("lost.example", |one| one.failed_attempts == 1).await;
    running.stop().await;
    assert_eq!(refused.error_code.as_deref(), Some("acme_refused"));
    let words = refused.error.unwrap();
    assert!(words.contains("lost.example") && words.contains("refused"), "{words}");
    let until_next = refused.next_attempt_at.unwrap() - now();
    assert!((40..=72).contains(&until_next.num_minutes()), "{until_next}");
    assert_eq!((refused.chain, refused.order_url), (None, None));
    let account = &authority.account;
    assert_eq!(account.number("select count(*) from acme_orders where failed_at is not null").await, 1);
    assert_eq!(account.number("select count(*) from acme_challenges").await, 0);

    authority.pebble.set_addresses("lost.example", &["127.0.0.1"]).await.unwrap();
    authority.make_due("lost.example").await;
    let _running = authority.run(&[]).await;
    let issued = authority.issued("lost.example").await;
    assert_eq!((issued.failed_attempts, issued.error), (0, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_rejects_many_nonces_loses_no_order() {
    let environment = vec![("PEBBLE_WFE_NONCEREJECT", "25".to_owned())];
    let Some(authority) = Authority::start(&Options { environment, ..Options::default() }).await else {
        return;
    };
    for number in 0..20 {
        authority.verified_domain(&format!("www.nonce-{number}.example")).await;
    }
    let running = authority.run(&[]).await;
    let account = &authority.account;
    until(async || account.number("select count(*) from certificates where chain is not null").await == 20)
        .await;
    running.stop().await;
    assert_eq!(authority.pebble.issued(), 20, "none doubled");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_order_that_postgres_does_not_store_at_first_is_not_lost() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let account = &authority.account;
    refuse_updates(account, "old.order_url is null and new.order_url is not null").await;
    authority.verified_domain("kept.example").await;
    let _running = authority.run(&[]).await;
    authority.issued("kept.example").await;
    assert_eq!(account.number("select last_value from refusals").await, 4);
    assert_eq!((authority.pebble.orders(), authority.pebble.issued()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_postgres_does_not_store_at_first_is_not_lost() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let account = &authority.account;
    refuse_updates(account, "old.lease_id is not null and new.lease_id is null").await;
    authority.verified_domain("stored.example").await;
    // Nothing is repeated because its lease expired.
    let _running = authority.run(&["acme.lease_ttl=1h"]).await;
    let issued = authority.issued("stored.example").await;
    assert_eq!((issued.failed_attempts, issued.error), (0, None));
    assert_eq!(account.number("select last_value from refusals").await, 4);
    assert_eq!((authority.pebble.orders(), authority.pebble.issued()), (1, 1));
}

/// Refuses the first three updates of certificates that match, as if Postgres shut down.
async fn refuse_updates(account: &Account, condition: &str) {
    let refuse = format!(
        "create sequence refusals;
         create function refuse() returns trigger language plpgsql as $$ begin
             if nextval('refusals') <= 3 then raise exception 'shutting down' using errcode = '57P01'; end if;
             return new;
         end $$;
         create trigger refuse before update on certificates for each row when ({condition}) execute function refuse()"
    );
    account.change(&refuse).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_is_down_is_tried_again_until_it_is_back() {
    let Some(mut authority) = Authority::start(&Options::default()).await else { return };
    authority.pebble.kill().await.unwrap();
    authority.verified_domain("patient.example").await;
    let _running = authority.run(&[]).await;
    let failed = authority.certificate_when("patient.example", |one| one.failed_attempts >= 2).await;
    assert_eq!(failed.error_code.as_deref(), Some("acme_unreachable"));
    assert!(failed.error.as_ref().unwrap().contains("Connection refused"), "{failed:?}");
    authority.pebble.restart().await.unwrap();
    authority.issued("patient.example").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_authority_issues_after_the_first_has_failed_for_long() {
    let Some(mut authority) = Authority::start(&Options::default()).await else { return };
    let second = Pebble::start(&Options::default()).await.unwrap();
    responders::http_01(second.http_port(), authority.account.database.db.clone()).await;
    let roots =
        [authority.pebble.ca_file(), second.ca_file()].map(|file| std::fs::read_to_string(file).unwrap());
    let (folder, url) = (tempfile::tempdir().unwrap(), second.directory_url());
    let file = folder.path().join("roots.pem");
    std::fs::write(&file, roots.concat()).unwrap();
    authority.pebble.kill().await.unwrap();
    authority.verified_domain("fallback.example").await;
    let (url, file) =
        (format!("acme.fallback_directory_url={url}"), format!("acme.ca_file={}", file.display()));
    let _running = authority.run(&[&url, &file, "acme.fallback_after=0s"]).await;
    authority.issued("fallback.example").await;
    assert_eq!(second.issued(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_lost_everything_gets_a_new_account_and_order() {
    let Some(mut authority) = Authority::start(&Options::default()).await else { return };
    authority.verified_domain("first.example").await;
    let _running = authority.run(&[]).await;
    authority.issued("first.example").await;
    authority.pebble.kill().await.unwrap();
    authority.pebble.restart().await.unwrap();
    authority.verified_domain("second.example").await;
    let issued = authority.issued("second.example").await;
    assert_eq!(issued.failed_attempts, 0);
    assert_eq!(authority.account.number("select count(*) from acme_accounts").await, 1);
}
