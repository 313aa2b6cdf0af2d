//! Checks of custom domains over a real database and a local DNS server.

use std::io::Write as _;

use mail_parser::MessageParser;
use sandbox::test::{DnsBehavior, DnsServer, until};
use sqlx::Row;
use uuid::Uuid;

use crate::fixture::account::{Account, Running, new_id, now};
use crate::fixture::smtp_server::SmtpServer;

/// A domain's columns that the tests look at.
#[derive(Debug, PartialEq, Eq)]
struct State {
    status: String,
    dns_status: String,
    error_code: Option<String>,
    is_holder: bool,
    failed_checks: i32,
}

impl Account {
    async fn run_checks(&self, dns: &DnsServer, smtp: Option<&SmtpServer>) -> Running {
        self.run_scheduled(dns, smtp, "50ms").await
    }

    /// Starts a job-runner with one delay between checks.
    async fn run_scheduled(&self, dns: &DnsServer, smtp: Option<&SmtpServer>, delay: &str) -> Running {
        let schedule = format!("domains.check_schedule=[\"{delay}\"]");
        let resolvers = format!("domains.resolvers=[\"{}\"]", dns.address());
        let set = [
            resolvers.as_str(),
            "domains.cname_target=edge.test",
            "domains.addresses=[\"203.0.113.7\"]",
            schedule.as_str(),
            "domains.caa_identities=[\"ca.test\"]",
            "domains.poll_interval=20ms",
        ];
        match smtp {
            Some(smtp) => self.run_with_smtp(&smtp.url(), &set).await,
            None => self.run(&set).await,
        }
    }

    /// Adds a domain of an account with this proof.
    async fn add_domain(&self, account_id: Uuid, domain: &str, proof: &str) -> Uuid {
        let id = new_id();
        self.change(&format!(
            "insert into subdomains (id, account_id, name, created_at)
             values ('{id}', '{account_id}', 'site-{id}', now());
             insert into domains (id, account_id, subdomain_id, domain, challenge, created_at)
             values ('{id}', '{account_id}', '{id}', '{domain}', '{proof}', now())"
        ))
        .await;
        id
    }

    async fn state(&self, id: Uuid) -> State {
        let row = sqlx::query(
            "select status, dns_status, error_code, verified_at is not null, failed_checks from domains where id = $1",
        )
        .bind(id)
        .fetch_one(&self.database.db)
        .await
        .unwrap();
        State {
            status: row.get(0),
            dns_status: row.get(1),
            error_code: row.get(2),
            is_holder: row.get(3),
            failed_checks: row.get(4),
        }
    }

    async fn until_state(&self, id: Uuid, matches: impl Fn(&State) -> bool) {
        until(async || matches(&self.state(id).await)).await;
    }

    async fn until_error(&self, id: Uuid, code: &str) {
        self.until_state(id, |state| state.error_code.as_deref() == Some(code)).await;
    }

    async fn is_ordered(&self, domain: &str) -> bool {
        let row = sqlx::query("select from certificates where name = $1 and next_attempt_at is not null");
        row.bind(domain.to_owned()).fetch_optional(&self.database.db).await.unwrap().is_some()
    }

    async fn second_account(&self) -> Uuid {
        let id = new_id();
        sandbox::test::trial(&self.database, id, now()).await;
        id
    }
}

#[tokio::test]
async fn a_domain_becomes_active_and_its_certificate_is_ordered() {
    let account = Account::new().await;
    let dns = DnsServer::start().await;
    let id = account.add_domain(account.id, "www.example.com", "proof").await;
    let _running = account.run_checks(&dns, None).await;
    account.until_error(id, "no_such_name").await;
    assert_eq!(account.state(id).await.status, "pending");
    dns.set("www.example.com", &["CNAME edge.test"]);
    account.until_error(id, "txt_missing").await;
    dns.set("_webruntime.www.example.com", &["TXT other"]);
    account.until_error(id, "txt_wrong").await;
    dns.set("example.com", &["CAA other.test"]);
    dns.set("_webruntime.www.example.com", &["TXT proof"]);
    account.until_error(id, "caa_forbids").await;
    assert_eq!(account.state(id).await.dns_status, "verified", "it is served, but without a certificate");
    assert!(!account.is_ordered("www.example.com").await);
    dns.set("example.com", &["CAA ca.test"]);
    account.until_state(id, |state| state.error_code.is_none()).await;
    assert!(account.is_ordered("www.example.com").await);
    assert_eq!(account.state(id).await.status, "active");
}

#[tokio::test]
async fn the_owner_is_mailed_once_when_records_go_and_the_domain_is_still_held() {
    let account = Account::new().await;
    account.insert_owner("owner@example.com", true).await;
    let (dns, smtp) = (DnsServer::start().await, SmtpServer::responding([]).await);
    dns.set("example.com", &["A 203.0.113.7"]);
    dns.set("_webruntime.example.com", &["TXT proof"]);
    let id = account.add_domain(account.id, "example.com", "proof").await;
    let running = account.run_checks(&dns, Some(&smtp)).await;
    account.until_state(id, |state| state.dns_status == "verified").await;
    // A DNS server that is silent for a while says nothing about the records.
    dns.misbehave("example.com", Some(DnsBehavior::ServerFailure));
    account.until_state(id, |state| state.failed_checks >= 4).await;
    assert_eq!(account.state(id).await.dns_status, "verified");
    assert!(smtp.received().is_empty());
    dns.misbehave("example.com", None);
    dns.set("example.com", &["A 203.0.113.7", "AAAA 2001:db8::1"]);
    account.until_error(id, "address_extra").await;
    until(async || !smtp.received().is_empty()).await;
    let failed = account.state(id).await.failed_checks;
    account.until_state(id, |state| state.failed_checks > failed + 3).await;
    let state = account.state(id).await;
    assert_eq!(
        (state.status.as_str(), state.dns_status.as_str(), state.is_holder),
        ("active", "failed", true)
    );
    running.stop().await;
    let received = smtp.received();
    assert_eq!((received.len(), &received[0].to), (1, &vec!["owner@example.com".to_owned()]));
    let mail = MessageParser::default().parse(&received[0].data).unwrap();
    let text = mail.body_text(0).unwrap();
    assert!(text.contains("2001:db8::1") && text.contains("is served until"), "{text}");
}

#[tokio::test]
async fn another_accounts_text_moves_a_domain_at_once() {
    let account = Account::new().await;
    let dns = DnsServer::start().await;
    let proofs = "_webruntime.www.example.com";
    dns.set("www.example.com", &["CNAME edge.test"]);
    dns.set(proofs, &["TXT one"]);
    let one = account.add_domain(account.id, "www.example.com", "one").await;
    let other = account.second_account().await;
    let two = account.add_domain(other, "www.example.com", "two").await;
    // Two job-runners check both rows all the time.
    let _running = (account.run_checks(&dns, None).await, account.run_checks(&dns, None).await);
    account.until_state(one, |state| state.is_holder).await;
    account.until_error(two, "txt_wrong").await;
    dns.set(proofs, &["TXT one", "TXT two"]);
    account.until_error(two, "claimed_elsewhere").await;
    assert!(account.state(one).await.is_holder, "the holder's own text still stands");
    for round in 0..4 {
        let (winner, loser, text) =
            if round % 2 == 0 { (two, one, "TXT two") } else { (one, two, "TXT one") };
        dns.set(proofs, &[text]);
        account.until_state(winner, |state| state.is_holder && state.dns_status == "verified").await;
        let state = account.state(loser).await;
        assert_eq!((state.is_holder, state.status.as_str()), (false, "failed"));
    }
    assert_eq!(account.number("select count(*) from certificates").await, 1);
}

#[tokio::test]
async fn a_check_of_a_killed_job_runner_is_made_after_its_lease() {
    let account = Account::new().await;
    let dns = DnsServer::start().await;
    let id = account.add_domain(account.id, "www.example.com", "proof").await;
    account.change("update domains set check_leased_until = now() + interval '500 ms'").await;
    let _running = account.run_checks(&dns, None).await;
    account.until_error(id, "no_such_name").await;
    let too_early = account
        .number("select count(*) from domains where last_checked_at < created_at + interval '400 ms'")
        .await;
    assert_eq!(too_early, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_domains_are_verified_although_others_are_silent() {
    let account = Account::new().await;
    let dns = DnsServer::start().await;
    for number in 0..20 {
        dns.misbehave(&format!("silent{number}.example"), Some(DnsBehavior::Silent));
    }
    for number in 0..500 {
        let domain = format!("www.example{number}.com");
        dns.set(&domain, &["CNAME edge.test"]);
        dns.set(&format!("_webruntime.{domain}"), &["TXT proof"]);
    }
    account
        .change(&format!(
            "insert into subdomains (id, account_id, name, created_at) values ('{0}', '{0}', 'own-site', now());
             insert into domains (id, account_id, subdomain_id, domain, challenge, created_at)
             select gen_random_uuid(), '{0}'::uuid, '{0}'::uuid, 'silent' || number || '.example', 'proof', now()
             from generate_series(0, 19) number union all
             select gen_random_uuid(), '{0}'::uuid, '{0}'::uuid, 'www.example' || number || '.com', 'proof', now()
             from generate_series(0, 499) number",
            account.id
        ))
        .await;
    let started = std::time::Instant::now();
    let _running = account.run_scheduled(&dns, None, "1h").await;
    let verified = "select count(*) from domains where dns_status = 'verified'";
    until(async || account.number(verified).await == 500).await;
    let rate = 500.0 / started.elapsed().as_secs_f64();
    let _written = writeln!(std::io::stderr(), "500 domains verified, {rate:.0} per second");
    let ordered = "select count(*) from certificates where next_attempt_at is not null";
    assert_eq!(account.number(ordered).await, 500);
}

#[tokio::test]
async fn a_thousand_black_holed_domains_of_one_account_delay_no_other_account() {
    let account = Account::new().await;
    let dns = DnsServer::start().await;
    dns.misbehave_below("silent.example", DnsBehavior::Silent);
    account
        .change(&format!(
            "insert into subdomains (id, account_id, name, created_at) values ('{0}', '{0}', 'own-site', now());
             insert into domains (id, account_id, subdomain_id, domain, challenge, created_at)
             select gen_random_uuid(), '{0}'::uuid, '{0}'::uuid, number || '.silent.example', 'proof', now()
             from generate_series(1, 1000) number",
            account.id
        ))
        .await;
    let other = account.second_account().await;
    let _running = account.run_scheduled(&dns, None, "1h").await;
    let under_way = "select count(*) from domains where check_leased_until > now()";
    until(async || account.number(under_way).await > 0).await;
    for number in 0..5 {
        let domain = format!("www.example{number}.com");
        dns.set(&domain, &["CNAME edge.test"]);
        dns.set(&format!("_webruntime.{domain}"), &["TXT proof"]);
        let added = std::time::Instant::now();
        let id = account.add_domain(other, &domain, "proof").await;
        account.until_state(id, |state| state.dns_status == "verified").await;
        let delay = added.elapsed();
        let _written = writeln!(std::io::stderr(), "checked {delay:?} after it was added");
        assert!(delay < std::time::Duration::from_secs(2), "{delay:?}");
        assert!(account.number(under_way).await <= 8, "of the account with slow DNS");
        // Between two claims there may be none for a moment.
        until(async || account.number(under_way).await > 0).await;
    }
}

#[tokio::test]
async fn certificates_of_deleted_accounts_domains_are_deleted_and_our_own_stay() {
    let account = Account::new().await;
    let dns = DnsServer::start().await;
    account.add_domain(account.id, "www.example.com", "proof").await;
    account
        .change(
            "insert into certificates (name, created_at) values
             ('gone.example.com', now()), ('www.example.com', now()), ('*.sites.example.net', now()), ('app.example.com', now())",
        )
        .await;
    let _running = account.run_checks(&dns, None).await;
    until(async || account.number("select count(*) from certificates").await == 3).await;
    assert_eq!(account.number("select count(*) from certificates where name = 'gone.example.com'").await, 0);
}
