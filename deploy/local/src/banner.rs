//! The text printed after a start: addresses, a trial key, and three calls to copy.
#![expect(clippy::print_stdout, reason = "this prints the banner")]

use anyhow::{Context, Result};
use http::Method;
use serde_json::Value;

use crate::client::Client;
use crate::folder::Folder;
use crate::stack;
use crate::stack_file::StackFile;

const TRIAL: &str = "trial.json";

/// Prints the banner. `how_to_stop` names the command that stops the system.
pub(crate) async fn print(folder: &Folder, file: &StackFile, how_to_stop: &str) -> Result<()> {
    let client = Client::new()?;
    let base = &file.base_url;
    // Not through the edge: over https, its certificate may be one that this process does not trust.
    let control_plane = &file.services.get("control-plane").context("no control-plane in stack.json")?.url;
    let (trial, account) = trial(&client, folder, control_plane).await?;
    let key = trial["key"].as_str().context("the trial has no key")?;
    let claim = claim_hint(&trial, &account);
    let attribution = match folder.part(stack::LINKS).exists() {
        true => format!("\n  locations       {}", stack::ATTRIBUTION),
        false => String::new(),
    };
    let over_https = file.https_port.map(|port| https_hint(folder, port)).unwrap_or_default();
    let site = account["siteUrl"].as_str().context("the account has no site")?;
    println!(
        "
Web Runtime is up.

  API and forms   {base}{over_https}
  your site       {site}
  API document    {base}/api/openapi.json
  data            {}{attribution}
  trial key       {key}{claim}

Three calls to try:

  curl -s {base}/api/pages -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' \\
    -d '{{\"slug\": \"index\", \"title\": \"Hello\", \"html\": \"<h1>Hello, web</h1>\"}}'

  curl -s {site}

  curl -s {base}/api/forms -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' \\
    -d '{{\"name\": \"Contact\", \"fields\": [{{\"name\": \"email\", \"label\": \"E-mail\", \"type\": \"email\", \"required\": true}}]}}'

`cargo run -- demo` creates a site with a week of visits. {how_to_stop} stops everything and keeps the data.
",
        folder.path().display()
    );
    Ok(())
}

/// Returns the directory's trial and its account. Creates a trial if there is none or its key no longer works.
async fn trial(client: &Client, folder: &Folder, base: &str) -> Result<(Value, Value)> {
    let account_url = format!("{base}/api/account");
    if let Some(trial) = folder.read_json::<Value>(TRIAL)?
        && let Some(key) = trial["key"].as_str()
        && let Ok(account) = client.call(key, Method::GET, &account_url, None).await
    {
        return Ok((trial, account));
    }
    let trial = client.call("", Method::POST, &format!("{base}/api/trial"), None).await?;
    folder.write_json(TRIAL, &trial)?;
    let key = trial["key"].as_str().context("the trial has no key")?;
    let account = client.call(key, Method::GET, &account_url, None).await?;
    Ok((trial, account))
}

/// Returns the address for https, and how to trust the certificates of the local authority.
fn https_hint(folder: &Folder, port: u16) -> String {
    let authority = folder.part(stack::AUTHORITY);
    let address = format!("\n  over https      https://localhost:{port}");
    if !authority.exists() {
        return address;
    }
    format!(
        "{address}\n                  (trust it: `curl --cacert {0}`; in a browser, import {0}\n                  as a certificate authority for websites)",
        authority.display()
    )
}

/// Returns the claim URL of an unclaimed trial, which is deleted at its deadline even on a developer's machine.
fn claim_hint(trial: &Value, account: &Value) -> String {
    match (trial["claimUrl"].as_str(), account["claimDeadline"].as_str()) {
        (Some(url), Some(deadline)) => {
            format!(
                "\n  claim it        {url}\n                  (the trial is deleted at {deadline} otherwise)"
            )
        }
        _ => String::new(),
    }
}
