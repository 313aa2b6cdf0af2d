//! A chat platform's webhook URL is a secret, because it authorizes posting. It must not appear in a log, an error or a
//! file, however deliveries to it fail.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use harness::{Receiver, System, until};
use serde_json::json;

use crate::PROGRAM;
use crate::account::Account;

const TOKEN: &str = "T0pS3cretT0ken";

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_url_is_never_stored_or_logged_in_clear_when_deliveries_fail() -> Result<()> {
    let system = System::start(PROGRAM, false, &["webhooks.retry_schedule=[\"0s\"]"]).await?;
    let account = Account::new(&system).await?;
    let refusing = Receiver::listen(usize::MAX).await?;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let own = format!("{}/{TOKEN}?key={TOKEN}", refusing.url);
    let hooks = [
        json!({"url": own, "template": "slack"}),
        json!({"url": format!("http://{closed}/{TOKEN}"), "template": "discord"}),
        json!({"url": own.replace("http:", "https:"), "template": "telegram", "telegramChatId": "42"}),
        json!({"url": format!("https://name.invalid/{TOKEN}"), "template": "teams"}),
    ];
    // A private address is refused, and not stored either.
    let private = json!({"url": format!("https://10.0.0.1/{TOKEN}"), "template": "google-chat"});
    ensure!(account.post("/api/webhooks", &private).await.is_err(), "a private address was accepted");
    let mut errors = BTreeMap::new();
    let mut secrets = vec![TOKEN.to_owned()];
    let mut paths = Vec::new();
    for hook in &hooks {
        let made = account.post("/api/webhooks", hook).await?;
        secrets.push(made["secret"].as_str().context("no secret")?.trim_start_matches("whsec_").to_owned());
        paths.push(format!(
            "/api/webhooks/{}/deliveries?status=failed",
            made["id"].as_str().context("no id")?
        ));
    }
    account.submit("x").await?;
    for path in &paths {
        let log = until("the delivery to fail", async || {
            let log = account.get(path).await.ok()?;
            log["deliveries"][0].is_object().then_some(log)
        })
        .await?;
        ensure!(!log.to_string().contains(TOKEN), "{log}");
        *errors.entry(log["deliveries"][0]["error"].as_str().unwrap_or_default().to_owned()).or_insert(0) +=
            1;
    }
    ensure!(errors.len() >= 4, "expected four kinds of errors: {errors:?}");
    let mut read = 0;
    search(system.folder(), &secrets, &mut read)?;
    ensure!(read > 100, "only {read} files were read");
    Ok(())
}

/// Searches every file under `folder`: logs and the stores' data.
fn search(folder: &Path, secrets: &[String], read: &mut usize) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            search(&path, secrets, read)?;
        }
        // A file that was deleted meanwhile stores nothing.
        let Some(bytes) = kind.is_file().then(|| fs::read(&path).ok()).flatten() else { continue };
        *read += 1;
        let text = String::from_utf8_lossy(&bytes);
        for secret in secrets {
            ensure!(!text.contains(secret.as_str()), "{secret} is in {}", path.display());
        }
    }
    Ok(())
}
