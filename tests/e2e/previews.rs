//! A build as its owner sees it before visitors do, and then goes live.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use harness::{Client, System, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A zip with one page, `index.html`.
const SITE: &[u8] = include_bytes!("../../control-plane/tests/api/matrix/site.zip");
/// That page.
const PAGE: &str = "<title>Home</title>\n";

/// Uploads the zip of a new deploy and returns its id.
async fn uploaded(client: &Client, base: &str) -> Result<String> {
    let announced = json!({"sizeBytes": SITE.len()});
    let deploy = client.retry_until_ok(Method::POST, &format!("{base}/api/deploy"), &announced).await?;
    let url = deploy["uploadUrl"].as_str().context("no uploadUrl")?;
    let kind = deploy["uploadHeaders"]["Content-Type"].as_str().context("no Content-Type")?;
    let headers = [("content-type", kind)];
    let put = client.send(Method::PUT, url, &headers, Bytes::from_static(SITE)).await?;
    ensure!(put.status == StatusCode::OK, "{}", put.text());
    Ok(deploy["deployId"].as_str().context("no deployId")?.to_owned())
}

/// Waits until a URL answers with this status.
async fn until_status(client: &Client, url: &str, status: StatusCode) -> Result<()> {
    until(&format!("{url} to answer {status}"), async || {
        (client.get(url).await.ok()?.status == status).then_some(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_is_seen_as_a_preview_and_goes_live_unchanged() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let base = system.file.base_url.clone();
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
    client.key = Some(trial["key"].as_str().context("no key")?.to_owned());

    let id = uploaded(&client, &base).await?;
    let process = format!("{base}/api/deploy/{id}/process");
    let preview = client.retry_until_ok(Method::POST, &process, &json!({"publish": false})).await?;
    let preview_url = preview["previewUrl"].as_str().context("no previewUrl")?;
    let shown = client.get(preview_url).await?;
    ensure!((shown.status, shown.text().as_str()) == (StatusCode::OK, PAGE), "{shown:?}");
    ensure!(shown.header("x-robots-tag") == "noindex", "{shown:?}");
    let state = client.get(&format!("{base}/api/deploy/{id}")).await?.json();
    let live_url = state["siteUrl"].as_str().context("no siteUrl")?;
    ensure!(
        state["status"] == "preview" && client.get(live_url).await?.status == StatusCode::NOT_FOUND,
        "{state}"
    );

    let publish = format!("{base}/api/deploy/{id}/publish");
    let live = client.retry_until_ok(Method::POST, &publish, &json!({})).await?;
    ensure!(live["siteUrl"] == live_url && live["pages"][0]["slug"] == "index", "{live}");
    until_status(&client, live_url, StatusCode::OK).await?;
    ensure!(client.get(live_url).await?.text() == PAGE, "the live page differs from its preview");
    until_status(&client, preview_url, StatusCode::NOT_FOUND).await?;

    let id = uploaded(&client, &base).await?;
    let process = format!("{base}/api/deploy/{id}/process");
    let preview = client.retry_until_ok(Method::POST, &process, &json!({"publish": false})).await?;
    let preview_url = preview["previewUrl"].as_str().context("no previewUrl")?;
    until_status(&client, preview_url, StatusCode::OK).await?;
    let deleted = client.json(Method::DELETE, &format!("{base}/api/deploy/{id}"), &Value::Null).await?;
    ensure!(deleted.status == StatusCode::OK, "{}", deleted.text());
    until_status(&client, preview_url, StatusCode::NOT_FOUND).await?;
    ensure!(client.get(live_url).await?.text() == PAGE, "the live site changed");
    Ok(())
}
