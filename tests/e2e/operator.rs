//! An operator's commands on a running system, and what everybody else sees of them.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, System, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;

/// Runs `admin` with these words; gives what it said, and fails if it did.
fn admin(system: &System, words: &[&str]) -> Result<String> {
    let done = Command::new(PROGRAM).arg("admin").args(words).arg("--dir").arg(system.folder()).output()?;
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    ensure!(done.status.success(), "{words:?}: {said}");
    Ok(said)
}

async fn until_status(client: &Client, address: &str, status: u16) -> Result<Value> {
    until(&format!("{address} to answer {status}"), async || {
        let answer = client.get(address).await.ok()?;
        (answer.status.as_u16() == status).then(|| answer.json())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_looks_an_account_up_suspends_it_resumes_it_and_sets_its_plan() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let url = |path: &str| format!("{}{path}", system.file.base_url);
    let mut client = system.client();
    let trial = client.insist(Method::POST, &url("/api/trial"), &Value::Null).await?;
    let key = trial["key"].as_str().context("no key")?.to_owned();
    client.key = Some(key.clone());
    let page = json!({"slug": "index", "title": "Hello", "html": "<h1>Hello</h1>"});
    let page = client.insist(Method::POST, &url("/api/pages"), &page).await?;
    let site = page["subdomainUrl"].as_str().context("no subdomainUrl")?;
    let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
    let form =
        client.insist(Method::POST, &url("/api/forms"), &json!({"name": "F", "fields": fields})).await?;
    let hosted = form["hostedFormUrl"].as_str().context("no hostedFormUrl")?;
    let account = client.get(&url("/api/account")).await?.json();
    let id = account["id"].as_str().context("no id")?;
    for address in [site, hosted] {
        until_status(&client, address, 200).await?;
    }

    for sought in [id, site, account["subdomain"].as_str().unwrap_or_default(), &key, &key[..13]] {
        let said = admin(&system, &["account", sought])?;
        ensure!(said.contains(id) && said.contains("1 pages, 1 forms"), "{sought}: {said}");
        ensure!(said.contains(&key[..13]) && !said.contains(&key), "a key is shown by its beginning: {said}");
    }
    ensure!(admin(&system, &["accounts"])?.contains(id));
    ensure!(admin(&system, &["account", "nobody-here"]).is_err());
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
    until("the plan to be known", async || {
        let answer = client.get(&url("/api/account")).await.ok()?;
        (answer.status == StatusCode::OK && answer.json()["plan"] == "pro").then_some(())
    })
    .await
}

/// A trial that whoever signs in with this e-mail has claimed; gives its account.
async fn claimed_by(system: &System, email: &str) -> Result<String> {
    let base = &system.file.base_url;
    let mut client = system.client();
    let trial = client.insist(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
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
async fn an_operator_finds_accounts_by_their_holders_e_mail() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let own = claimed_by(&system, "ana@example.com").await?;
    let others = claimed_by(&system, "ben@example.com").await?;
    let said = admin(&system, &["account", "Ana@Example.com"])?;
    ensure!(said.contains(&own) && said.contains("belongs to  ana@example.com"), "{said}");

    let second = claimed_by(&system, "ana@example.com").await?;
    let said = admin(&system, &["account", "ana@example.com"])?;
    ensure!(said.contains(&own) && said.contains(&second) && !said.contains(&others), "{said}");
    ensure!(admin(&system, &["account", "nobody@example.com"]).is_err());
    Ok(())
}
