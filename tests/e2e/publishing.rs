//! Scheduled publication, entries and deletion of a page, as visitors see them.

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use harness::{Client, System, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;

/// Waits until `address` serves exactly `html`, or 404 for `None`. Returns the time at which it did.
async fn until_served(client: &Client, address: &str, html: Option<&str>) -> Result<DateTime<Utc>> {
    until(&format!("{address} to show {html:?}"), async || {
        let answer = client.get(address).await.ok()?;
        let is_right = match html {
            Some(html) => answer.status == StatusCode::OK && answer.text() == html,
            None => answer.status == StatusCode::NOT_FOUND,
        };
        #[expect(clippy::disallowed_methods, reason = "a story runs in real time")]
        is_right.then(Utc::now)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_page_goes_live_accepts_entries_and_disappears_when_deleted() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let api = |path: &str| format!("{}/api/{path}", system.file.base_url);
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &api("trial"), &Value::Null).await?;
    client.key = Some(trial["key"].as_str().context("no key")?.to_owned());

    #[expect(clippy::disallowed_methods, reason = "a story runs in real time")]
    let due = Utc::now() + TimeDelta::seconds(8);
    let page = json!({"slug": "index", "title": "Guests", "html": "<!-- service:entries -->", "publishAt": due,
                      "entryTemplate": "<p>{{name}}</p>"});
    let page = client.retry_until_ok(Method::POST, &api("pages"), &page).await?;
    ensure!(page["isPublished"] == false, "{page}");
    let site = page["subdomainUrl"].as_str().context("no subdomainUrl")?;
    until_served(&client, site, None).await?;
    let live = until_served(&client, site, Some("<!-- service:entries -->")).await?;
    ensure!(live >= due - TimeDelta::milliseconds(1), "it was published {} too early", due - live);

    let id = page["id"].as_str().context("no id")?;
    let entry = json!({"data": {"name": "<Ana>"}});
    client.retry_until_ok(Method::POST, &api(&format!("pages/{id}/entries")), &entry).await?;
    until_served(&client, site, Some("<p>&lt;Ana&gt;</p>")).await?;

    let deleted =
        client.retry_until_ok(Method::DELETE, &api("pages/batch"), &json!({"pageIds": [id]})).await?;
    ensure!(deleted["entriesArchived"] == 1, "{deleted}");
    until_served(&client, site, None).await?;

    let pages = json!({"pages": [{"slug": "index", "title": "Guests", "html": "<!-- service:entries -->"}]});
    let made = client.retry_until_ok(Method::POST, &api("pages/batch"), &pages).await?;
    let id = made["results"][0]["id"].as_str().context("no id")?;
    let archives = client.get(&api("pages/archives")).await?.json();
    let archive = json!({"archiveId": archives["archives"][0]["id"]});
    client.retry_until_ok(Method::POST, &api(&format!("pages/{id}/restore-entries")), &archive).await?;
    until_served(&client, site, Some("<p>&lt;Ana&gt;</p>")).await?;
    Ok(())
}
