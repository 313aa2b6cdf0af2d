//! Orders that an authority did not accept count for no limit, and what a limit or this service delays is never silent.

use chrono::TimeDelta;
use sandbox::pebble::{Options, Pebble};
use sandbox::test::until;

use super::authority::Authority;
use super::renewal_info::Stubbed;
use super::responders;
use crate::fixture::account::now;

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_the_authority_did_not_accept_counts_for_no_limit() {
    let stubbed = Stubbed::new().await;
    let account = &stubbed.account;
    let orders = async || account.number("select count(*) from acme_orders").await;
    let unaccepted = [
        (503, "serverInternal", "acme_unreachable"),
        (429, "rateLimited", "acme_rate_limited"),
        (404, "malformed", "acme_refused"),
    ];
    for (status, kind, code) in unaccepted {
        stubbed.stub.answer_orders_with(Some((status, kind)));
        let running = stubbed.run(&[]).await;
        let sent = stubbed.stub.orders().len();
        until(async || stubbed.stub.orders().len() >= sent + 3).await;
        stubbed.when(|one| one.error_code.as_deref() == Some(code)).await;
        running.stop().await;
        // The attempt that the stop aborted may have counted its order.
        assert!(orders().await <= 1, "{kind}");
        account.change("delete from acme_orders").await;
    }
    // A refusal counts as a failure of the name, and as no order.
    stubbed.stub.answer_orders_with(Some((400, "rejectedIdentifier")));
    let running = stubbed.run(&["acme.limits.failures_per_hour=3", "acme.limits.orders_per_3h=1"]).await;
    until(async || account.number("select count(*) from acme_orders where is_rejected").await == 3).await;
    stubbed.when(|one| one.error_code.as_deref() == Some("acme_rate_limited")).await;
    running.stop().await;
    assert_eq!(orders().await, 3);
    account.change("update acme_orders set failed_at = failed_at - interval '2 hours'").await;
    account.change("update certificates set next_attempt_at = now()").await;
    stubbed.stub.answer_orders_with(None);
    let _running = stubbed.run(&["acme.limits.orders_per_3h=1"]).await;
    stubbed.when(|one| one.chain.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_the_authority_lost_does_not_count_beside_the_next() {
    let Some(mut authority) = Authority::start(&Options::default()).await else { return };
    let name = "lost.example";
    authority.verified_domain(name).await;
    // No challenge can be stored, so the order does not end.
    let account = &authority.account;
    account.change("create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
                    create trigger refuse before insert on acme_challenges for each row execute function refuse()").await;
    let http_01 = "acme.challenges=[\"http-01\"]";
    let running = authority.run(&[http_01, "acme.retry_schedule=[\"1h\"]"]).await;
    let failed = authority.certificate_when(name, |one| one.failed_attempts == 1).await;
    running.stop().await;
    assert!(failed.order_url.is_some());
    account.change("drop trigger refuse on acme_challenges").await;
    authority.pebble.kill().await.unwrap();
    authority.pebble.restart().await.unwrap();
    authority.make_due(name).await;
    let _running = authority.run(&[http_01]).await;
    authority.issued(name).await;
    assert_eq!(authority.account.number("select count(*) from acme_orders").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_that_stand_for_a_day_lead_to_the_second_authority() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let second = Pebble::start(&Options::default()).await.unwrap();
    responders::http_01(second.http_port(), authority.account.database.db.clone()).await;
    let roots =
        [authority.pebble.ca_file(), second.ca_file()].map(|file| std::fs::read_to_string(file).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("roots.pem");
    std::fs::write(&file, roots.concat()).unwrap();
    let url = format!("acme.fallback_directory_url={}", second.directory_url());
    let file = format!("acme.ca_file={}", file.display());
    let set = [url.as_str(), &file, "acme.limits.certificates_per_domain_per_week=1"];
    let earlier = format!(
        "insert into acme_orders (id, directory_url, name, registered_domain, created_at)
         values (gen_random_uuid(), '{}', 'www.shop.example', 'shop.example', now() - interval '1 hour')",
        authority.pebble.directory_url()
    );
    authority.account.change(&earlier).await;
    let name = "blog.shop.example";
    authority.verified_domain(name).await;
    let running = authority.run(&set).await;
    let limited =
        |one: &super::authority::Certificate| one.error_code.as_deref() == Some("acme_rate_limited");
    let waiting = authority.certificate_when(name, limited).await;
    running.stop().await;
    let wait = waiting.next_attempt_at.unwrap() - now();
    assert!(wait > TimeDelta::hours(23) && wait <= TimeDelta::days(1), "not for the whole week: {wait}");
    assert_eq!(waiting.failed_attempts, 0);

    let later = "update certificates set failing_since = failing_since - interval '1 day'";
    authority.account.change(later).await;
    authority.make_due(name).await;
    let _running = authority.run(&set).await;
    authority.issued(name).await;
    assert_eq!((authority.pebble.orders(), second.issued()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_this_service_is_retried_with_backoff_and_keeps_the_order() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let (name, account) = ("sealed.example", &authority.account);
    authority.verified_domain(name).await;
    // As after a change of the master key.
    let sealed = format!(
        "insert into acme_accounts (directory_url, sealed_credentials, created_at) values ('{0}', '\\x00', now());
         update certificates set order_directory = '{0}', order_url = 'https://ca.example/order/1', order_sealed_key = '\\x00'",
        authority.pebble.directory_url()
    );
    account.change(&sealed).await;
    let set = ["acme.retry_schedule=[\"1h\"]", "acme.challenges=[\"http-01\"]"];
    let running = authority.run(&set).await;
    let failed = authority.certificate_when(name, |one| one.failed_attempts == 1).await;
    running.stop().await;
    assert_eq!(failed.error_code.as_deref(), Some("order_failed"));
    assert_eq!(failed.error.as_deref(), Some("This service failed while it ordered the certificate."));
    let wait = failed.next_attempt_at.unwrap() - now();
    assert!((40..=72).contains(&wait.num_minutes()), "{wait}");
    assert_eq!(failed.order_url.as_deref(), Some("https://ca.example/order/1"));

    account.change("delete from acme_accounts; update certificates set order_url = null").await;
    authority.make_due(name).await;
    let _running = authority.run(&set).await;
    let issued = authority.issued(name).await;
    assert_eq!((issued.failed_attempts, issued.error_code), (0, None));
}
