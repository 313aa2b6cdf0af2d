//! What somebody reads when everything is up: where it is, a key, and three calls that work when pasted.
#![expect(clippy::print_stdout, reason = "this is what the person sees")]

use anyhow::{Context, Result};
use http::Method;
use serde_json::Value;

use crate::client::Client;
use crate::folder::Folder;
use crate::locations;
use crate::stack_file::StackFile;

const TRIAL: &str = "trial.json";

/// Prints the greeting; `how_to_stop` says what stops everything.
pub(crate) async fn print(folder: &Folder, file: &StackFile, how_to_stop: &str) -> Result<()> {
    let client = Client::new()?;
    let base = &file.base_url;
    let (trial, account) = trial(&client, folder, base).await?;
    let key = trial["key"].as_str().context("the trial has no key")?;
    let keep = how_to_keep(&trial, &account);
    let places = match folder.part(locations::LINKS).exists() {
        true => format!("\n  places          {}", locations::ATTRIBUTION),
        false => String::new(),
    };
    let site = account["siteUrl"].as_str().context("the account has no site")?;
    println!(
        "
Web Runtime is up.

  API and forms   {base}
  your site       {site}
  API document    {base}/api/openapi.json
  folder          {}{places}
  trial key       {key}{keep}

Three calls to try:

  curl -s {base}/api/pages -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' \\
    -d '{{\"slug\": \"index\", \"title\": \"Hello\", \"html\": \"<h1>Hello, web</h1>\"}}'

  curl -s {site}

  curl -s {base}/api/forms -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' \\
    -d '{{\"name\": \"Contact\", \"fields\": [{{\"name\": \"email\", \"label\": \"E-mail\", \"type\": \"email\", \"required\": true}}]}}'

`cargo run -- demo` makes a site with a week of visits. {how_to_stop} stops everything; the data stays.
",
        folder.path().display()
    );
    Ok(())
}

/// The folder's trial and its account; a new one if there is none or it no longer works.
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

/// A trial that nobody claims is deleted with everything in it, also on a machine of one's own.
fn how_to_keep(trial: &Value, account: &Value) -> String {
    match (trial["claimUrl"].as_str(), account["claimDeadline"].as_str()) {
        (Some(url), Some(deadline)) => {
            format!(
                "\n  keep it         {url}\n                  (until {deadline}; then the trial is deleted)"
            )
        }
        _ => String::new(),
    }
}
