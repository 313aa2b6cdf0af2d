//! A trial that nobody claims: everything works until its time is over, and then nothing is left of it.

use anyhow::{Context, Result, ensure};
use harness::{Client, System, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;

/// What visitors have seen of a trial, warm in the edge's memory.
struct Seen {
    client: Client,
    addresses: Vec<String>,
}

/// A trial with a page and a form that visitors have seen. None if its time was over before that: a busy machine
/// is no failure.
async fn seen_trial(system: &System) -> Result<Option<Seen>> {
    let base = &system.file.base_url;
    let mut client = system.client();
    let trial = client.insist(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
    client.key = Some(trial["key"].as_str().context("no key")?.to_owned());
    let page = json!({"slug": "hello", "title": "Hello", "html": "<h1>Hello</h1>"});
    let page = client.json(Method::POST, &format!("{base}/api/pages"), &page).await?;
    let form = json!({"name": "Contact", "fields": [{"name": "a", "label": "A", "type": "text"}]});
    let form = client.json(Method::POST, &format!("{base}/api/forms"), &form).await?;
    let (page, form) = (page.json(), form.json());
    let addresses = [&page["subdomainUrl"], &page["pageUrl"], &form["hostedFormUrl"]];
    let addresses: Vec<String> = addresses.into_iter().filter_map(Value::as_str).map(str::to_owned).collect();
    for address in &addresses {
        if client.get(address).await?.status != StatusCode::OK {
            return Ok(None);
        }
    }
    Ok((addresses.len() == 3).then_some(Seen { client, addresses }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_nobody_claims_is_gone_everywhere_when_its_time_is_over() -> Result<()> {
    let system = System::start(PROGRAM, false, &["trial.claim_window=2s", "purge.every=100ms"]).await?;
    let seen =
        until("a trial to be seen within its time", async || seen_trial(&system).await.transpose()).await??;
    let account = format!("{}/api/account", system.file.base_url);
    until("the key to stop working", async || {
        let answer = seen.client.get(&account).await.ok()?;
        (answer.status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await?;
    for address in &seen.addresses {
        // Told, and not merely too old: a minute is as long as this waits.
        until(&format!("{address} to be gone"), async || {
            (seen.client.get(address).await.ok()?.status == StatusCode::NOT_FOUND).then_some(())
        })
        .await?;
    }
    let newcomer =
        until("another trial to be seen", async || seen_trial(&system).await.transpose()).await??;
    let short = newcomer.addresses.iter().find(|address| address.contains("/p/hello"));
    let is_handed_on = short.is_none_or(|address| !address.contains("?site="));
    ensure!(!is_handed_on, "the bare address was handed on: {short:?}");
    Ok(())
}
