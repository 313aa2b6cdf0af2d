//! A page goes live at its time, shows what is added to it, and is gone when it is deleted: each as visitors see it.

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use harness::{Client, System, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;

/// Waits until the address shows just this, or nothing; gives when it did.
async fn shows(client: &Client, address: &str, html: Option<&str>) -> Result<DateTime<Utc>> {
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
async fn a_scheduled_page_goes_live_takes_entries_and_is_gone_when_deleted() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let api = |path: &str| format!("{}/api/{path}", system.file.base_url);
    let mut client = system.client();
    let trial = client.insist(Method::POST, &api("trial"), &Value::Null).await?;
    client.key = Some(trial["key"].as_str().context("no key")?.to_owned());

    #[expect(clippy::disallowed_methods, reason = "a story runs in real time")]
    let due = Utc::now() + TimeDelta::seconds(3);
    let page = json!({"slug": "index", "title": "Guests", "html": "<!-- service:entries -->", "publishAt": due,
                      "entryTemplate": "<p>{{name}}</p>"});
    let page = client.insist(Method::POST, &api("pages"), &page).await?;
    ensure!(page["isPublished"] == false, "{page}");
    let site = page["subdomainUrl"].as_str().context("no subdomainUrl")?;
    shows(&client, site, None).await?;
    let live = shows(&client, site, Some("<!-- service:entries -->")).await?;
    ensure!(live >= due - TimeDelta::milliseconds(1), "it was live {} too early", due - live);

    let id = page["id"].as_str().context("no id")?;
    let entry = json!({"data": {"name": "<Ana>"}});
    client.insist(Method::POST, &api(&format!("pages/{id}/entries")), &entry).await?;
    shows(&client, site, Some("<p>&lt;Ana&gt;</p>")).await?;

    let ends = client.insist(Method::DELETE, &api("pages/batch"), &json!({"pageIds": [id]})).await?;
    ensure!(ends["entriesArchived"] == 1, "{ends}");
    shows(&client, site, None).await?;

    let pages = json!({"pages": [{"slug": "index", "title": "Guests", "html": "<!-- service:entries -->"}]});
    let made = client.insist(Method::POST, &api("pages/batch"), &pages).await?;
    let id = made["results"][0]["id"].as_str().context("no id")?;
    let archives = client.get(&api("pages/archives")).await?.json();
    let archive = json!({"archiveId": archives["archives"][0]["id"]});
    client.insist(Method::POST, &api(&format!("pages/{id}/restore-entries")), &archive).await?;
    shows(&client, site, Some("<p>&lt;Ana&gt;</p>")).await?;
    Ok(())
}
