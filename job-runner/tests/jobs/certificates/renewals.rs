//! Certificates are renewed in time. A failing renewal leaves the certificate that is served, and its owner is mailed a week
//! before the end.

use mail_parser::MessageParser;
use sandbox::pebble::Options;
use sandbox::test::until;

use super::authority::Authority;
use crate::fixture::account::{Account, new_id, now};
use crate::fixture::smtp_server::SmtpServer;

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_renewal_keeps_the_unexpired_certificate_until_one_succeeds() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    authority.verified_domain("renewed.example").await;
    let _running = authority.run(&["acme.challenges=[\"http-01\"]"]).await;
    authority.issued("renewed.example").await;
    authority.pebble.set_addresses("renewed.example", &["127.0.0.9"]).await.unwrap();
    let (first, failing) = authority.failed_renewal("renewed.example", 2).await;
    assert_eq!(
        (&failing.chain, &failing.sealed_key, failing.not_after),
        (&first.chain, &first.sealed_key, first.not_after)
    );
    assert_eq!(failing.error_code.as_deref(), Some("acme_refused"));
    authority.pebble.set_addresses("renewed.example", &["127.0.0.1"]).await.unwrap();
    let renewed = authority.certificate_when("renewed.example", |one| one.chain != first.chain).await;
    assert_ne!(renewed.sealed_key, first.sealed_key, "with a new key");
    assert_eq!((renewed.failed_attempts, renewed.error), (0, None));
}

/// Inserts an owner of the account with a verified address.
async fn add_owner(account: &Account) {
    let identity = new_id();
    let owner = format!(
        "insert into identities (id, issuer, subject, email, email_verified, created_at)
         values ('{identity}', 'https://login.example', '{identity}', 'owner@example.com', true, now());
         insert into identity_accounts (account_id, identity_id, added_at) values ('{}', '{identity}', now())",
        account.id
    );
    account.change(&owner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_is_mailed_once_when_a_certificate_ends_within_a_week_and_its_renewal_fails() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let account = &authority.account;
    add_owner(account).await;
    let once = ["acme.challenges=[\"http-01\"]", "acme.retry_schedule=[\"1h\"]"];
    for name in ["ending.example", "later.example"] {
        authority.verified_domain(name).await;
        let running = authority.run(&once).await;
        authority.issued(name).await;
        authority.pebble.set_addresses(name, &["127.0.0.9"]).await.unwrap();
        authority.failed_renewal(name, 1).await;
        running.stop().await;
    }
    let soon = "update certificates set not_after = now() + interval '6 days' where name = 'ending.example';
                update certificates set not_after = now() + interval '8 days' where name = 'later.example'";
    account.change(soon).await;

    let smtp = SmtpServer::responding([]).await;
    let settings = authority.settings();
    let set: Vec<&str> = settings.iter().map(String::as_str).chain(once).collect();
    // The second run finds nothing more to send.
    for _ in 0..2 {
        account.expire_a_challenge().await;
        let running = account.run_with_smtp(&smtp.url(), &set).await;
        until(async || !smtp.received().is_empty()).await;
        account.upkeep_ran().await;
        until(async || account.number("select count(*) from mails").await == 0).await;
        running.stop().await;
    }
    let received = smtp.received();
    assert_eq!((received.len(), &received[0].to), (1, &vec!["owner@example.com".to_owned()]));
    let mail = MessageParser::default().parse(&received[0].data).unwrap();
    assert_eq!(mail.subject(), Some("The certificate of ending.example ends soon"));
    let text = mail.body_text(0).unwrap();
    assert!(text.contains("refused") && text.contains("GET /api/account/domains/"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_that_only_a_limit_postpones_fails_for_the_metric_and_the_mail() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let account = &authority.account;
    add_owner(account).await;
    for name in ["limited.example", "overdue.example", "late.example"] {
        authority.verified_domain(name).await;
    }
    let running = authority.run(&[]).await;
    until(async || account.number("select count(*) from certificates where chain is not null").await == 3)
        .await;
    running.stop().await;
    let states = async || {
        let mut conn = store::acquire(&account.database.db).await.unwrap();
        let found = store::certificates::summarize(&mut conn, now()).await.unwrap();
        let counts = |one: store::certificates::StateSummary| {
            (one.state, (one.count, one.within_7_days, one.within_21_days))
        };
        found.into_iter().map(counts).collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(states().await, [("active".to_owned(), (3, 0, 0))].into());

    let changes = format!(
        "insert into acme_orders (id, directory_url, name, registered_domain, created_at, failed_at)
         values (gen_random_uuid(), '{}', 'limited.example', 'limited.example', now(), now());
         update certificates set not_after = now() + interval '6 days';
         update certificates set not_after = now() + interval '20 days' where name = 'late.example';
         update certificates set renew_at = now() - interval '25 hours' where name = 'overdue.example';
         update certificates set renew_at = now() - interval '23 hours' where name = 'late.example'",
        authority.pebble.directory_url()
    );
    account.change(&changes).await;
    authority.make_due("limited.example").await;
    let set = ["acme.limits.failures_per_hour=1"];
    let running = authority.run(&set).await;
    let limited = authority.certificate_when("limited.example", |one| one.error_code.is_some()).await;
    running.stop().await;
    assert_eq!((limited.failed_attempts, limited.error_code.as_deref()), (0, Some("acme_rate_limited")));
    assert_eq!(
        states().await,
        [("active".to_owned(), (1, 0, 1)), ("renewal_failing".to_owned(), (2, 2, 2))].into()
    );

    let smtp = SmtpServer::responding([]).await;
    let settings = authority.settings();
    let set: Vec<&str> = settings.iter().map(String::as_str).chain(set).collect();
    let _running = account.run_with_smtp(&smtp.url(), &set).await;
    until(async || smtp.received().len() == 2).await;
    let read = |data: &[u8]| MessageParser::default().parse(data).unwrap().body_text(0).unwrap().into_owned();
    let texts: Vec<String> = smtp.received().iter().map(|mail| read(&mail.data)).collect();
    for part in
        ["certificate of limited.example", "permits 1 refused orders", "certificate of overdue.example"]
    {
        assert!(texts.iter().any(|text| text.contains(part)), "{part}: {texts:?}");
    }
}
