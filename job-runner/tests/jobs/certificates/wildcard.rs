//! The certificate of the sites domain's wildcard: by DNS-01 with a program or a dynamic update, or from files.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use sandbox::knot::{Knot, UpdateKey};
use sandbox::pebble::Options;
use sandbox::test::until;

use super::authority::{Authority, open_key};
use crate::fixture::account::{Account, Running};

const WILDCARD: &str = "*.sites.pages.example";
const SITES_DOMAIN: &str = "http.sites_domain=sites.pages.example";
const RECORD: &str = "_acme-challenge.sites.pages.example";
const SECRET: &[u8] = b"a secret of thirty-two bytes....";

#[tokio::test(flavor = "multi_thread")]
async fn the_wildcard_is_ordered_by_dns_01_with_a_program_that_publishes_the_record() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let folder = tempfile::tempdir().unwrap();
    let (hook, log) = (folder.path().join("hook"), folder.path().join("log"));
    let script = format!(
        "echo \"$ACME_ACTION $ACME_RECORD\" >> {log}
         if [ \"$ACME_ACTION\" = publish ]; then path=/set-txt; else path=/clear-txt; fi
         body=\"{{\\\"host\\\":\\\"$ACME_RECORD.\\\",\\\"value\\\":\\\"$ACME_VALUE\\\"}}\"
         exec 3<>/dev/tcp/127.0.0.1/{port}
         printf 'POST %s HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\nContent-Length: %s\\r\\n\\r\\n%s' \\
             \"$path\" \"${{#body}}\" \"$body\" >&3
         read -r status <&3
         case \"$status\" in *200*) ;; *) echo \"$status\" >&2; exit 1 ;; esac\n",
        log = log.display(),
        port = authority.pebble.dns_management_port(),
    );
    fs::write(&hook, script).unwrap();
    let command = format!("acme.exec.command=[\"/bin/bash\", \"{}\"]", hook.display());
    let _running = authority.run(&[SITES_DOMAIN, "acme.wildcard=exec", &command]).await;
    authority.issued(WILDCARD).await;
    let calls = fs::read_to_string(log).unwrap();
    assert_eq!(calls, format!("publish {RECORD}\nremove {RECORD}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_fails_is_reported_with_its_message() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let command = "acme.exec.command=[\"/bin/sh\", \"-c\", \"echo no such zone >&2; exit 1\"]";
    let _running = authority.run(&[SITES_DOMAIN, "acme.wildcard=exec", command]).await;
    let failed = authority.certificate_when(WILDCARD, |one| one.failed_attempts > 0).await;
    assert!(failed.error.as_ref().unwrap().contains("no such zone"), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_could_not_be_published_is_no_refused_order_and_its_order_is_continued() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let set = [SITES_DOMAIN, "acme.wildcard=exec", "acme.retry_schedule=[\"1h\"]"];
    let broken = "acme.exec.command=[\"/bin/false\"]";
    let running = authority.run(&[&set[..], &[broken]].concat()).await;
    let failed = authority.certificate_when(WILDCARD, |one| one.failed_attempts > 0).await;
    running.stop().await;
    assert_eq!(failed.error_code.as_deref(), Some("dns_update_failed"));
    let account = &authority.account;
    assert_eq!(account.number("select count(*) from acme_orders where failed_at is not null").await, 0);
    let order = failed.order_url.unwrap();
    // The second attempt continues it: the authority knows of one order.
    authority.make_due(WILDCARD).await;
    let running = authority.run(&[&set[..], &[broken]].concat()).await;
    let again = authority.certificate_when(WILDCARD, |one| one.failed_attempts > 1).await;
    running.stop().await;
    assert_eq!(again.order_url, Some(order));
    assert_eq!((authority.pebble.orders(), account.number("select count(*) from acme_orders").await), (1, 1));
}

/// An authority that asks an authoritative server of the sites domain, with a key `acme` that may change it.
struct Dynamic {
    authority: Authority,
    knot: Knot,
    folder: tempfile::TempDir,
}

impl Dynamic {
    /// Starts both. Returns `None` and says so if one can't be had here, as without a network.
    #[expect(clippy::print_stderr, reason = "a test that can't run says so")]
    async fn start() -> Option<Self> {
        if let Some(reason) = Knot::unavailable().await {
            eprintln!("NOT TESTED: no DNS server. {reason}");
            return None;
        }
        let key = UpdateKey { name: "acme", algorithm: "hmac-sha256", secret: SECRET, may_update: true };
        let knot = Knot::start("sites.pages.example", &[key]).await.unwrap();
        let options = Options { dns_port: Some(knot.port()), ..Options::default() };
        let authority = Authority::start(&options).await?;
        Some(Self { authority, knot, folder: tempfile::tempdir().unwrap() })
    }

    async fn run(&self, secret: &[u8]) -> Running {
        let file = self.folder.path().join("secret");
        fs::write(&file, STANDARD.encode(secret)).unwrap();
        let server = format!("acme.rfc2136.server={}", self.knot.address());
        let file = format!("acme.rfc2136.tsig_secret_file={}", file.display());
        let key = "acme.rfc2136.tsig_key_name=acme";
        self.authority.run(&[SITES_DOMAIN, "acme.wildcard=rfc2136", &server, &file, key]).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wildcard_is_ordered_by_dns_01_with_a_dynamic_update_and_the_record_is_removed() {
    let Some(dynamic) = Dynamic::start().await else { return };
    let running = dynamic.run(SECRET).await;
    let issued = dynamic.authority.issued(WILDCARD).await;
    running.stop().await;
    assert_eq!((issued.failed_attempts, issued.error), (0, None));
    assert_eq!(dynamic.knot.texts(RECORD).await.unwrap(), Vec::<String>::new());
    assert_eq!(dynamic.authority.pebble.issued(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_tsig_secret_is_reported_until_it_is_corrected() {
    let Some(dynamic) = Dynamic::start().await else { return };
    let running = dynamic.run(b"another secret").await;
    let failed = dynamic.authority.certificate_when(WILDCARD, |one| one.failed_attempts > 0).await;
    running.stop().await;
    let error = failed.error.unwrap();
    assert!(error.contains(RECORD) && error.contains("BADSIG"), "{error}");
    assert!(!error.contains(&STANDARD.encode("another secret")), "{error}");
    assert_eq!((failed.chain, dynamic.authority.pebble.issued()), (None, 0));
    let _running = dynamic.run(SECRET).await;
    let issued = dynamic.authority.issued(WILDCARD).await;
    assert_eq!((issued.failed_attempts, issued.error), (0, None));
}

fn write_pair(folder: &Path, name: &str) -> (String, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let chain = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    fs::write(folder.join("chain.pem"), &chain).unwrap();
    fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    (chain, key)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wildcard_is_read_from_files_and_a_pair_that_does_not_fit_changes_nothing() {
    let (account, folder) = (Account::new().await, tempfile::tempdir().unwrap());
    let path = folder.path();
    let set = [
        "http.sites_domain=sites.pages.example".to_owned(),
        "http.base_url=http://localhost:8080".to_owned(),
        "acme.wildcard=files".to_owned(),
        format!("acme.files.certificate={}", path.join("chain.pem").display()),
        format!("acme.files.key={}", path.join("key.pem").display()),
    ];
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let stored = async || -> Option<(String, Vec<u8>)> {
        let row = sqlx::query_as("select chain, sealed_key from certificates where name = $1").bind(WILDCARD);
        row.fetch_optional(&account.database.db).await.unwrap()
    };
    let (chain, key) = write_pair(path, WILDCARD);
    let running = account.run(&set).await;
    until(async || stored().await.is_some()).await;
    running.stop().await;
    let (found, sealed_key) = stored().await.unwrap();
    assert_eq!(found, chain);
    assert_eq!(open_key(&sealed_key).serialize_der(), key.serialize_der());

    // A certificate for another name, and a key of another certificate.
    write_pair(path, "*.other.example");
    account.expire_a_challenge().await;
    let running = account.run(&set).await;
    account.upkeep_ran().await;
    running.stop().await;
    assert_eq!(stored().await.unwrap().0, chain);
    let (renewed, _) = write_pair(path, WILDCARD);
    let running = account.run(&set).await;
    until(async || stored().await.is_some_and(|(found, _)| found == renewed)).await;
    running.stop().await;
}
