//! Operator commands on a running system and their effects for clients and visitors.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, System, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;

/// Runs `admin` with these arguments and returns its output. Fails if the command fails.
fn admin(system: &System, arguments: &[&str]) -> Result<String> {
    let done =
        Command::new(PROGRAM).arg("admin").args(arguments).arg("--dir").arg(system.folder()).output()?;
    let output = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    ensure!(done.status.success(), "{arguments:?}: {output}");
    Ok(output)
}

async fn until_status(client: &Client, address: &str, status: u16) -> Result<Value> {
    until(&format!("{address} to answer {status}"), async || {
        let answer = client.get(address).await.ok()?;
        (answer.status.as_u16() == status).then(|| answer.json())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_find_suspend_resume_and_upgrade_an_account() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let url = |path: &str| format!("{}{path}", system.file.base_url);
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &url("/api/trial"), &Value::Null).await?;
    let key = trial["key"].as_str().context("no key")?.to_owned();
    client.key = Some(key.clone());
    let page = json!({"slug": "index", "title": "Hello", "html": "<h1>Hello</h1>"});
    let page = client.retry_until_ok(Method::POST, &url("/api/pages"), &page).await?;
    let site = page["subdomainUrl"].as_str().context("no subdomainUrl")?;
    let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
    let form = client
        .retry_until_ok(Method::POST, &url("/api/forms"), &json!({"name": "F", "fields": fields}))
        .await?;
    let hosted = form["hostedFormUrl"].as_str().context("no hostedFormUrl")?;
    let account = client.get(&url("/api/account")).await?.json();
    let id = account["id"].as_str().context("no id")?;
    for address in [site, hosted] {
        until_status(&client, address, 200).await?;
    }

    for lookup in [id, site, account["subdomain"].as_str().unwrap_or_default(), &key, &key[..13]] {
        let output = admin(&system, &["account", lookup])?;
        ensure!(output.contains(id) && output.contains("1 pages, 1 forms"), "{lookup}: {output}");
        ensure!(
            output.contains(&key[..13]) && !output.contains(&key),
            "only the prefix of a key may be shown: {output}"
        );
    }
    ensure!(admin(&system, &["accounts"])?.contains(id));
    ensure!(admin(&system, &["account", "no-such-account"]).is_err());
    ensure!(admin(&system, &["suspend", "00000000-0000-0000-0000-000000000000"]).is_err());

    admin(&system, &["suspend", id, "--reason", "phishing"])?;
    for address in [site, hosted] {
        until_status(&client, address, 451).await?;
    }
    let refused = until_status(&client, &url("/api/account"), 403).await?;
    ensure!(refused["code"] == "suspended", "{refused}");
    ensure!(admin(&system, &["account", id])?.contains("phishing"));

    admin(&system, &["resume", id])?;
    for address in [site, hosted, &url("/api/account")] {
        until_status(&client, address, 200).await?;
    }

    admin(&system, &["plan", id, "pro"])?;
    until("the new plan to take effect", async || {
        let answer = client.get(&url("/api/account")).await.ok()?;
        (answer.status == StatusCode::OK && answer.json()["plan"] == "pro").then_some(())
    })
    .await
}

/// Changes the master keys in the data directory with `change`, and restarts the services.
async fn change_master_keys(system: &mut System, change: impl Fn(&str) -> String) -> Result<()> {
    let path = system.folder().join("secrets.json");
    let mut secrets: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    secrets["master_key"] = change(secrets["master_key"].as_str().context("no master key")?).into();
    std::fs::write(&path, secrets.to_string())?;
    system.restart().await
}

/// Waits until a service has checked its master keys, and returns the reason if one is missing.
async fn missing_keys(system: &System, service: &str) -> Result<String> {
    let ops = &system.file.services[service].metrics_url;
    let port = ops.trim_end_matches("/metrics").rsplit(':').next().context("no port")?.parse()?;
    until("the check of the master keys", async || {
        let answer = Client::new(port).get("http://localhost/readyz").await.ok()?;
        let check = answer.json()["checks"]["master_keys"].clone();
        let reason = check["reason"].as_str().unwrap_or_default().to_owned();
        (check["ok"] == true || reason.contains("sealed")).then_some(reason)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_replace_the_master_key_and_a_missing_key_is_named() -> Result<()> {
    let mut system = System::start(PROGRAM, false, &[]).await?;
    let mut client = system.client();
    let trial = client
        .retry_until_ok(Method::POST, &format!("{}/api/trial", system.file.base_url), &Value::Null)
        .await?;
    let key = trial["key"].as_str().context("no key")?.to_owned();
    client.key = Some(key.clone());
    let webhook = json!({"url": "https://x.test/hook"});
    let url = format!("{}/api/webhooks", system.file.base_url);
    let webhook = client.retry_until_ok(Method::POST, &url, &webhook).await?;
    let id = webhook["id"].as_str().context("no id")?.to_owned();
    let read = async |system: &System| -> Result<u16> {
        let mut client = system.client();
        client.key = Some(key.clone());
        let webhook = client.get(&format!("{}/api/webhooks/{id}", system.file.base_url)).await?;
        let is_right = webhook.json()["url"] == "https://x.test/hook";
        ensure!(is_right == webhook.status.is_success(), "{}", webhook.text());
        Ok(webhook.status.as_u16())
    };
    ensure!(admin(&system, &["reseal-secrets", "--help"])?.contains("A rotation of the master key"));

    let new = "5e".repeat(32);
    change_master_keys(&mut system, |old| format!("2027:{new},{old}")).await?;
    ensure!(read(&system).await? == 200);
    let output = admin(&system, &["reseal-secrets", "--dry-run"])?;
    ensure!(output.contains("`2027` seals; also open: `0`"), "{output}");
    ensure!(output.contains("`0` has sealed 2 values"), "{output}");
    let output = admin(&system, &["reseal-secrets"])?;
    ensure!(output.contains("`0` is unused: remove it from secrets.master_key and restart."), "{output}");
    ensure!(output.contains("`2027` has sealed 2 values") && !output.contains(&new), "{output}");

    change_master_keys(&mut system, |_| format!("2027:{new}")).await?;
    ensure!(read(&system).await? == 200);
    for service in ["control-plane", "job-runner"] {
        let missing = missing_keys(&system, service).await?;
        ensure!(missing.is_empty(), "{service}: {missing}");
    }

    change_master_keys(&mut system, |_| format!("2028:{}", "6f".repeat(32))).await?;
    ensure!(read(&system).await? == 500, "the services run, and this secret can't be read");
    for service in ["control-plane", "job-runner"] {
        let missing = missing_keys(&system, service).await?;
        ensure!(missing.contains("sealed with master key `2027`, which is not configured"), "{missing}");
    }
    let Err(refused) = admin(&system, &["reseal-secrets"]) else { anyhow::bail!("a key is missing") };
    let refused = refused.to_string();
    ensure!(refused.contains("`2027`, which is NOT CONFIGURED, has sealed 2 values"), "{refused}");
    Ok(())
}

/// Creates a trial and claims it as the owner with this e-mail address. Returns the account id.
async fn account_claimed_by(system: &System, email: &str) -> Result<String> {
    let base = &system.file.base_url;
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
    client.key = None;
    let mut cookie = String::new();
    let claim = trial["claimUrl"].as_str().context("no claimUrl")?;
    // A sign-in that begins on a claim page makes no account of its own.
    let sign_in = format!("email={email}&returnTo={}", claim.trim_start_matches(base.as_str()));
    for (url, form) in [(format!("{base}/login/local").as_str(), sign_in), (claim, String::new())] {
        let content_type = ("content-type", "application/x-www-form-urlencoded");
        let headers = [content_type, ("origin", base), ("cookie", &cookie)];
        let answer = client.send(Method::POST, url, &headers, form.into()).await?;
        ensure!(answer.status == StatusCode::SEE_OTHER, "{url}: {}", answer.text());
        let set = answer.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
        cookie = if set.is_empty() { cookie } else { set };
    }
    client.key = trial["key"].as_str().map(str::to_owned);
    let account = client.get(&format!("{base}/api/account")).await?.json();
    Ok(account["id"].as_str().context("no id")?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_find_accounts_by_their_owners_email() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let own = account_claimed_by(&system, "ana@example.com").await?;
    let other = account_claimed_by(&system, "ben@example.com").await?;
    let output = admin(&system, &["account", "Ana@Example.com"])?;
    ensure!(output.contains(&own) && output.contains("belongs to  ana@example.com"), "{output}");

    let second = account_claimed_by(&system, "ana@example.com").await?;
    let output = admin(&system, &["account", "ana@example.com"])?;
    ensure!(output.contains(&own) && output.contains(&second) && !output.contains(&other), "{output}");
    ensure!(admin(&system, &["account", "unknown@example.com"]).is_err());
    Ok(())
}
