//! A system that gives every client a trial of its own.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use harness::{Client, System};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;

pub(crate) async fn start() -> Result<System> {
    System::start(PROGRAM, false, &["trial.max_per_hour=1000", "trial.max_per_day=1000"]).await
}

/// Finds out how to get a key, as an agent does that knows nothing but the endpoint, and gets one.
pub(crate) async fn find_key(system: &System) -> Result<String> {
    let (client, endpoint) = (system.client(), endpoint(system));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let refused = client.json(Method::POST, &endpoint, &message).await?;
    ensure!(refused.status == StatusCode::UNAUTHORIZED, "{} {}", refused.status, refused.text());
    let challenge = refused.header("www-authenticate");
    let (_, rest) = challenge.split_once("resource_metadata=\"").with_context(|| challenge.to_owned())?;
    let metadata = get(&client, rest.split('"').next().unwrap_or_default()).await?;
    ensure!(metadata["resource"] == endpoint.as_str(), "{metadata}");
    ensure!(metadata["bearer_methods_supported"] == json!(["header"]), "{metadata}");
    ensure!(metadata.get("authorization_servers").is_none(), "{metadata}");
    let creation = &metadata["key_creation"];
    let url = creation["url"].as_str().with_context(|| metadata.to_string())?;
    let method: Method = creation["method"].as_str().with_context(|| metadata.to_string())?.parse()?;
    let trial = client.send(method, url, &[], Bytes::new()).await?;
    ensure!(trial.status == StatusCode::CREATED, "{} {}", trial.status, trial.text());
    Ok(trial.json()["key"].as_str().context("no key")?.to_owned())
}

async fn get(client: &Client, url: &str) -> Result<Value> {
    let answer = client.get(url).await?;
    ensure!(answer.status == StatusCode::OK, "{url}: {} {}", answer.status, answer.text());
    Ok(answer.json())
}

pub(crate) fn endpoint(system: &System) -> String {
    format!("{}/api/mcp", system.file.base_url)
}
