//! The fixture: an account with verified domains, an ACME server, and the settings that lead a job-runner to it.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use domain::encryption::MasterKey;
use sandbox::pebble::{Options, Pebble};
use sandbox::test::{eventually, until};
use sqlx::Row as _;

use super::responders;
use crate::fixture::account::{Account, MASTER_KEY, Running, now};

/// An account and an authority that can check its domains.
pub(crate) struct Authority {
    pub(crate) account: Account,
    pub(crate) pebble: Pebble,
}

/// A row of `certificates`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Certificate {
    pub(crate) chain: Option<String>,
    pub(crate) sealed_key: Option<Vec<u8>>,
    pub(crate) issuer: Option<String>,
    pub(crate) not_after: Option<DateTime<Utc>>,
    pub(crate) renew_at: Option<DateTime<Utc>>,
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    pub(crate) failed_attempts: i32,
    pub(crate) error_code: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) order_url: Option<String>,
}

impl Authority {
    /// Starts an authority. Returns `None` and says so if it can't be had here, as without a network.
    #[expect(clippy::print_stderr, reason = "a test that can't run says so")]
    pub(crate) async fn start(options: &Options) -> Option<Self> {
        if let Some(reason) = Pebble::unavailable().await {
            eprintln!("NOT TESTED: no ACME server. {reason}");
            return None;
        }
        let account = Account::new().await;
        let statement = format!(
            "insert into subdomains (id, account_id, name, created_at) values ('{0}', '{0}', 'own-site', now())",
            account.id
        );
        account.change(&statement).await;
        let pebble = Pebble::start(options).await.unwrap();
        responders::http_01(pebble.http_port(), account.database.db.clone()).await;
        Some(Self { account, pebble })
    }

    /// Inserts a verified domain of the account and makes its certificate due.
    pub(crate) async fn verified_domain(&self, domain: &str) {
        self.domain(domain, "verified").await;
    }

    pub(crate) async fn domain(&self, domain: &str, dns_status: &str) {
        let statement = format!(
            "insert into domains (id, account_id, subdomain_id, domain, dns_status, verified_at, challenge, created_at)
             values (gen_random_uuid(), '{0}', '{0}', '{domain}', '{dns_status}',
                 case when '{dns_status}' = 'verified' then now() end, 'x', now())",
            self.account.id
        );
        self.account.change(&statement).await;
        let mut conn = store::acquire(&self.account.database.db).await.unwrap();
        store::certificates::insert_due(&mut conn, domain, now()).await.unwrap();
    }

    /// Returns the settings of a job-runner that orders here and retries soon.
    pub(crate) fn settings(&self) -> Vec<String> {
        vec![
            "http.base_url=http://localhost:8080".to_owned(),
            "http.sites_domain=localhost".to_owned(),
            format!("acme.directory_url={}", self.pebble.directory_url()),
            format!("acme.ca_file={}", self.pebble.ca_file().display()),
            "acme.poll_interval=20ms".to_owned(),
            "acme.retry_schedule=[\"200ms\"]".to_owned(),
            "acme.limits.failures_per_hour=1000".to_owned(),
            // The attempt after a failed one proves by the next kind. Nothing answers the other kind here, and on a busy
            // machine an attempt may fail because it gets no connection to Postgres.
            "acme.challenges=[\"http-01\"]".to_owned(),
        ]
    }

    /// Starts a job-runner with [`Self::settings`] and these.
    pub(crate) async fn run(&self, set: &[&str]) -> Running {
        let settings = self.settings();
        let all: Vec<&str> = settings.iter().map(String::as_str).chain(set.iter().copied()).collect();
        self.account.run(&all).await
    }

    pub(crate) async fn certificate(&self, name: &str) -> Option<Certificate> {
        let row = sqlx::query("select * from certificates where name = $1").bind(name.to_owned());
        let row = row.fetch_optional(&self.account.database.db).await.unwrap()?;
        Some(Certificate {
            chain: row.get("chain"),
            sealed_key: row.get("sealed_key"),
            issuer: row.get("issuer"),
            not_after: row.get("not_after"),
            renew_at: row.get("renew_at"),
            next_attempt_at: row.get("next_attempt_at"),
            failed_attempts: row.get("failed_attempts"),
            error_code: row.get("error_code"),
            error: row.get("error"),
            order_url: row.get("order_url"),
        })
    }

    /// Waits until the certificate matches, and returns it. Before the wait times out, it prints what the certificate and
    /// the authority are at.
    #[expect(clippy::print_stderr, reason = "the output of a failing test")]
    pub(crate) async fn certificate_when(
        &self,
        name: &str,
        matches: impl Fn(&Certificate) -> bool,
    ) -> Certificate {
        let mut report_at = Some(Instant::now() + Duration::from_secs(50));
        eventually(async || {
            let found = self.certificate(name).await;
            if report_at.take_if(|at| *at <= Instant::now()).is_some() {
                let domains = "select string_agg(domain || ' ' || dns_status || ' ' || coalesce(error, ''), ', ') from domains";
                let domains: Option<String> =
                    sqlx::query_scalar(domains).fetch_one(&self.account.database.db).await.unwrap();
                eprintln!("{name} at {}: {found:?}\n{domains:?}\n{}", now(), self.pebble.log());
            }
            found.filter(&matches)
        })
        .await
    }

    pub(crate) async fn issued(&self, name: &str) -> Certificate {
        self.certificate_when(name, |certificate| certificate.chain.is_some()).await
    }

    /// Makes the certificate due, and waits until its renewal has failed this many times. Returns it as it was before and as it is
    /// then.
    ///
    /// In one of a hundred orders Pebble reuses an authorization although it is told to never do so. Such a renewal succeeds, and
    /// the certificate is made due again.
    pub(crate) async fn failed_renewal(&self, name: &str, attempts: i32) -> (Certificate, Certificate) {
        loop {
            let before = self.issued(name).await;
            self.make_due(name).await;
            let is_done = |one: &Certificate| one.failed_attempts >= attempts || one.chain != before.chain;
            let after = self.certificate_when(name, is_done).await;
            if after.chain == before.chain {
                return (before, after);
            }
        }
    }

    /// Makes the certificate due again.
    pub(crate) async fn make_due(&self, name: &str) {
        self.account
            .change(&format!("update certificates set next_attempt_at = now() where name = '{name}'"))
            .await;
    }
}

impl Account {
    /// Inserts an expired challenge. A job-runner deletes it at the end of its periodic work.
    pub(crate) async fn expire_a_challenge(&self) {
        let expired = "insert into acme_challenges (token, name, kind, key_authorization, expires_at)
                       values ('x', 'x.example', 'http-01', 'x', now() - interval '1 day')";
        self.change(expired).await;
    }

    /// Waits until it is deleted.
    pub(crate) async fn upkeep_ran(&self) {
        let left = "select count(*) from acme_challenges where name = 'x.example'";
        until(async || self.number(left).await == 0).await;
    }
}

/// Opens a key as the edges do.
pub(crate) fn open_key(sealed: &[u8]) -> rcgen::KeyPair {
    let key = MasterKey::from_hex(MASTER_KEY).unwrap();
    rcgen::KeyPair::try_from(key.open("certificate_key", sealed).unwrap()).unwrap()
}
