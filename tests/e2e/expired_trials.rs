//! An unclaimed trial works until its deadline and is then purged completely.

use anyhow::{Context, Result, ensure};
use harness::{Client, System, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A trial with addresses in the edge's caches.
struct VisitedTrial {
    client: Client,
    addresses: Vec<String>,
}

/// Creates a trial with a page and a form and requests them once. Returns `None` if the deadline passed before that, as
/// on a busy machine.
async fn visited_trial(system: &System) -> Result<Option<VisitedTrial>> {
    let base = &system.file.base_url;
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
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
    Ok((addresses.len() == 3).then_some(VisitedTrial { client, addresses }))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unclaimed_trial_is_purged_everywhere_after_its_deadline() -> Result<()> {
    let system =
        System::start(PROGRAM, false, &["trial.claim_window=2s", "purge.poll_interval=100ms"]).await?;
    let trial =
        until("a trial to be visited before its deadline", async || visited_trial(&system).await.transpose())
            .await??;
    let account = format!("{}/api/account", system.file.base_url);
    until("the key to stop working", async || {
        let answer = trial.client.get(&account).await.ok()?;
        (answer.status == StatusCode::UNAUTHORIZED).then_some(())
    })
    .await?;
    for address in &trial.addresses {
        // Shorter than the cache's max_age, so the invalidation must have arrived.
        until(&format!("{address} to be gone"), async || {
            (trial.client.get(address).await.ok()?.status == StatusCode::NOT_FOUND).then_some(())
        })
        .await?;
    }
    let second =
        until("another trial to be visited", async || visited_trial(&system).await.transpose()).await??;
    let short = second.addresses.iter().find(|address| address.contains("/p/hello"));
    let is_reassigned = short.is_none_or(|address| !address.contains("?site="));
    ensure!(!is_reassigned, "the short address of the purged trial was reassigned: {short:?}");
    Ok(())
}
