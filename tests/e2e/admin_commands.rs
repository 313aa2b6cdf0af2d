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

/// Creates a trial and claims it as the owner with this e-mail address. Returns the account id.
async fn account_claimed_by(system: &System, email: &str) -> Result<String> {
    let base = &system.file.base_url;
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
    client.key = None;
    let mut cookie = String::new();
    let claim = trial["claimUrl"].as_str().context("no claimUrl")?;
    for (url, form) in
        [(format!("{base}/login/local").as_str(), format!("email={email}")), (claim, String::new())]
    {
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
