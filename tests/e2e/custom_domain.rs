//! A custom domain: from the call that adds it to its page over https, with DNS and a certificate authority of other makes.
//! Each store is killed and restarted once in between.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, System, until};
use http::{Method, StatusCode};
use sandbox::pebble::{Options, Pebble};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::PROGRAM;

const DOMAIN: &str = "shop.example";
/// No server has this address (RFC 5737).
const ELSEWHERE: &str = "192.0.2.1";

/// A system whose ports for http and https are those at which the authority checks names.
struct Owner {
    pebble: Pebble,
    system: System,
    client: Client,
    /// The URL of the domain in the API.
    domain_url: String,
    folder: TempDir,
}

/// A response as curl saw it.
#[derive(Debug)]
struct Fetched {
    status: String,
    http_version: String,
    body: String,
}

impl Owner {
    /// Starts everything. The account is on a plan with custom domains and has a page.
    async fn start() -> Result<Self> {
        let pebble = Pebble::start(&Options::default()).await?;
        let (port, https_port) = (pebble.http_port().to_string(), pebble.tls_port());
        let settings = [
            format!("listen.https=127.0.0.1:{https_port}"),
            format!("http.base_url=https://localhost:{https_port}"),
            format!("acme.directory_url={}", pebble.directory_url()),
            format!("acme.ca_file={}", pebble.ca_file().display()),
            "acme.challenges=[\"http-01\"]".to_owned(),
            "acme.retry_schedule=[\"1s\"]".to_owned(),
            format!("domains.resolvers=[\"{}\"]", pebble.dns_address()),
            "domains.addresses=[\"127.0.0.1\"]".to_owned(),
            "domains.caa_identities=[]".to_owned(),
            "domains.check_schedule=[\"1s\"]".to_owned(),
            "domains.recheck_after=1s".to_owned(),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let system = System::start_with(PROGRAM, &["--processes", "--port", &port], &settings).await?;
        let mut client = system.client();
        let trial = client.retry_until_ok(Method::POST, "http://localhost/api/trial", &Value::Null).await?;
        client.key = Some(trial["key"].as_str().context("no key")?.to_owned());
        let plan = json!({"plan": "pro"});
        client.retry_until_ok(Method::POST, "http://localhost/api/account/upgrade", &plan).await?;
        let page = json!({"slug": "index", "title": "Shop", "html": "<h1>Shop</h1>"});
        client.retry_until_ok(Method::POST, "http://localhost/api/pages", &page).await?;
        let folder = tempfile::tempdir()?;
        Ok(Self { pebble, system, client, domain_url: String::new(), folder })
    }

    async fn adds_the_domain(&mut self) -> Result<Value> {
        let domains = "http://localhost/api/account/domains";
        let added = self.client.retry_until_ok(Method::POST, domains, &json!({"domain": DOMAIN})).await?;
        self.domain_url = format!("{domains}/{}", added["id"].as_str().context("no id")?);
        Ok(added)
    }

    /// Publishes the records that the API asks for.
    async fn publishes(&self, records: &Value) -> Result<()> {
        let records = records.as_array().context("no records")?;
        ensure!(records.len() == 2, "an address and the proof were expected: {records:?}");
        for record in records {
            let (name, value) = (record["name"].as_str(), record["value"].as_str());
            let (name, value) = (name.context("no name")?, value.context("no value")?);
            match record["type"].as_str() {
                Some("TXT") => self.pebble.add_text(name, value).await?,
                Some("A") => self.pebble.set_addresses(name, &[value]).await?,
                other => anyhow::bail!("a record of type {other:?}"),
            }
        }
        Ok(())
    }

    /// Waits until the API says so of the domain.
    async fn reads(&self, condition: &str, is_met: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Value::Null;
        let read = until(condition, async || {
            let answer = self.client.get(&self.domain_url).await.ok()?;
            last = answer.json();
            (answer.status == StatusCode::OK && is_met(&last)).then(|| last.clone())
        });
        let read = read.await;
        read.with_context(|| format!("the API said at last: {last:#}"))
    }

    /// Waits until the domain waits for this, and checks that the answer says what to do.
    async fn waits_for(&self, code: &str, advice: &str) -> Result<Value> {
        let read = self.reads(code, |domain| domain["errorCode"] == code).await?;
        let error = read["error"].as_str().unwrap_or_default();
        ensure!(error.contains(advice) && read["_next"][0]["hint"] == error, "{read:#}");
        ensure!(read["_next"][0]["tool"] == "domains.read", "{read:#}");
        let next_attempt_at = read["nextAttemptAt"].as_str().unwrap_or_default();
        ensure!(next_attempt_at >= read["createdAt"].as_str().context("no createdAt")?, "{read:#}");
        Ok(read)
    }

    /// Writes the root that the authority issues from to a file.
    fn root(&self) -> Result<PathBuf> {
        let url = format!("{}/roots/0", self.pebble.management_url());
        let root = curl(&self.pebble.ca_file(), &[&url])?;
        let file = self.folder.path().join("root.pem");
        std::fs::write(&file, root.body)?;
        Ok(file)
    }

    /// Fetches the page over https on a new connection by a name. It must be issued by this root.
    fn fetches(&self, root: &Path, name: &str) -> Result<Fetched> {
        let port = self.pebble.tls_port();
        curl(root, &["--resolve", &format!("{name}:{port}:127.0.0.1"), &format!("https://{name}:{port}/")])
    }

    fn sees_the_page(&self, root: &Path) -> Result<()> {
        let page = self.fetches(root, DOMAIN)?;
        ensure!(page.status == "200" && page.http_version == "2" && page.body == "<h1>Shop</h1>", "{page:?}");
        Ok(())
    }
}

/// Fetches with curl, which trusts this root alone.
fn curl(root: &Path, arguments: &[&str]) -> Result<Fetched> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--noproxy", "*", "--capath", "/nonexistent", "--cacert"])
        .arg(root);
    curl.args(["--write-out", "\n%{http_code} %{http_version}"]).args(arguments);
    let output = curl.output().context("install curl")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8(output.stdout)?;
    let (body, facts) = text.rsplit_once('\n').context("no facts")?;
    let (status, http_version) = facts.split_once(' ').context("no version")?;
    let [status, http_version, body] = [status, http_version, body].map(str::to_owned);
    Ok(Fetched { status, http_version, body })
}

/// Says so and returns true if there is no authority here, as without a network.
#[expect(clippy::print_stderr, reason = "shows what was not tested")]
async fn is_unavailable() -> bool {
    let reason = Pebble::unavailable().await;
    if let Some(reason) = &reason {
        eprintln!("NOT TESTED: no ACME server. {reason}");
    }
    reason.is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_domain_goes_live_by_itself_while_each_store_is_restarted() -> Result<()> {
    if is_unavailable().await {
        return Ok(());
    }
    let mut owner = Owner::start().await?;
    owner.pebble.kill().await?;
    owner.pebble.set_default_address("").await?;
    let added = owner.adds_the_domain().await?;
    ensure!(added["status"] == "pending" && added["certificate"].is_null(), "{added:#}");
    ensure!(
        added["_next"][0]["hint"].as_str().is_some_and(|hint| hint.contains("Add the records")),
        "{added:#}"
    );
    owner.waits_for("no_such_name", "127.0.0.1").await?;

    owner.system.restart_store("redis").await?;
    owner.pebble.set_addresses(DOMAIN, &[ELSEWHERE]).await?;
    let waiting = owner.waits_for("txt_missing", "_webruntime.shop.example").await?;
    ensure!(
        waiting["records"][0]["status"] == "wrong" && waiting["records"][0]["found"] == json!([ELSEWHERE]),
        "{waiting:#}"
    );
    owner.publishes(&added["records"]).await?;
    owner.pebble.set_addresses(DOMAIN, &["127.0.0.1", ELSEWHERE]).await?;
    owner.waits_for("address_extra", ELSEWHERE).await?;
    owner.pebble.set_addresses(DOMAIN, &["127.0.0.1"]).await?;
    let waiting = owner.waits_for("acme_unreachable", "can't be reached").await?;
    ensure!(waiting["dnsStatus"] == "verified" && waiting["sslStatus"] == "issuing", "{waiting:#}");
    ensure!(waiting["status"] == "active", "it is served over http meanwhile: {waiting:#}");
    let plain = owner.client.get(&format!("http://{DOMAIN}/")).await?;
    ensure!(plain.status == StatusCode::OK && plain.text() == "<h1>Shop</h1>", "{plain:?}");

    owner.system.restart_store("postgres").await?;
    owner.pebble.restart().await?;
    let issued = owner.reads("the certificate", |domain| domain["sslStatus"] == "active").await?;
    ensure!(issued["errorCode"].is_null() && issued.get("_next").is_none(), "{issued:#}");
    let certificate = &issued["certificate"];
    ensure!(certificate["issuer"].as_str().is_some_and(|issuer| issuer.contains("Pebble")), "{issued:#}");
    let [renewal, end] = [&certificate["nextRenewalAt"], &certificate["notAfter"]].map(|at| at.as_str());
    ensure!(issued["createdAt"].as_str() < renewal && renewal < end, "{issued:#}");

    let root = owner.root()?;
    owner.sees_the_page(&root)?;
    let plain = owner.client.get(&format!("http://{DOMAIN}/about?x=1")).await?;
    let https = format!("https://{DOMAIN}:{}/about?x=1", owner.pebble.tls_port());
    ensure!(plain.status == StatusCode::PERMANENT_REDIRECT && plain.header("location") == https, "{plain:?}");
    let stranger = owner.fetches(&root, "stranger.example").err().context("a name without a certificate")?;
    ensure!(stranger.to_string().contains("unrecognized name"), "{stranger:#}");
    let untrusted =
        owner.fetches(&owner.pebble.ca_file(), DOMAIN).err().context("the root was not checked")?;
    ensure!(untrusted.to_string().contains("certificate"), "{untrusted:#}");

    owner.system.restart_store("clickhouse").await?;
    owner.sees_the_page(&root)?;
    owner.system.until_ready().await?;
    let read = owner.reads("the domain", |_| true).await?;
    ensure!(read["certificate"] == *certificate && read["status"] == "active", "{read:#}");
    ensure!(owner.pebble.issued() == 1, "{} certificates were issued", owner.pebble.issued());
    Ok(())
}
