//! Deliveries as they come over the wire are verified by three libraries that others wrote, in three languages, while a
//! secret is replaced as well.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Delivery, Receiver, System, until};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::account::Account;
use crate::packages::{node, python, run_over};

#[tokio::test(flavor = "multi_thread")]
async fn three_other_peoples_libraries_verify_what_is_delivered_under_each_live_secret() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let account = Account::new(&system).await?;
    let receiver = Receiver::listen(0).await?;
    let hook = account.post("/api/webhooks", &json!({"url": receiver.url})).await?;
    let path = format!("/api/webhooks/{}", hook["id"].as_str().context("no id")?);
    let old = secret_of(&hook)?;

    // Bytes of every kind: what is signed is what is sent, not what a parser makes of it.
    let submission = account.submit("Zoë \u{1f980} \"quoted\" </script> \\ \u{7f}").await?;
    let delivery = delivered(&receiver, &submission).await?;
    check(&delivery, &[&old])?;

    let new = secret_of(&account.post(&format!("{path}/rotate-secret"), &json!({})).await?)?;
    let delivery = delivered(&receiver, &account.submit("again").await?).await?;
    check(&delivery, &[&new, &old])?;

    let leaked = json!({"keepPreviousForSeconds": 0});
    let newest = secret_of(&account.post(&format!("{path}/rotate-secret"), &leaked).await?)?;
    let tested = account.post(&format!("{path}/test"), &Value::Null).await?;
    ensure!(tested["success"] == true && tested["statusCode"] == 200, "{tested}");
    let taken = receiver.taken();
    let ping = taken.iter().find(|one| tested["id"] == one.header("webhook-id")).context("no test came")?;
    check(ping, &[&newest])?;
    for old in [&old, &new] {
        ensure!(!verified_by_all(ping, old, &ping.body)?, "a secret that has leaked signs no more");
    }
    Ok(())
}

fn secret_of(answer: &Value) -> Result<String> {
    Ok(answer["secret"].as_str().context("no secret")?.to_owned())
}

async fn delivered(receiver: &Receiver, submission: &str) -> Result<Delivery> {
    until("the delivery", async || {
        receiver.taken().into_iter().find(|delivery| delivery.submission_id() == submission)
    })
    .await
}

/// Every library takes the delivery with each of these secrets, and none takes it changed.
fn check(delivery: &Delivery, secrets: &[&str]) -> Result<()> {
    let signatures = delivery.header("webhook-signature").split(' ').count();
    ensure!(signatures == secrets.len(), "{signatures} signatures for {} secrets", secrets.len());
    let mut changed = delivery.body.to_vec();
    changed.push(b' ');
    for secret in secrets {
        ensure!(verified_by_all(delivery, secret, &delivery.body)?, "our signature is refused");
        ensure!(!verified_by_all(delivery, secret, &changed)?, "a changed body is taken");
    }
    Ok(())
}

/// What the libraries say, which must be the same.
fn verified_by_all(delivery: &Delivery, secret: &str, body: &[u8]) -> Result<bool> {
    let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| delivery.header(name));
    let by = |command: &mut Command| -> Result<bool> {
        let output = run_over(command.arg(secret).args(headers), body)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let refused = said.contains("WebhookVerificationError");
        ensure!(output.status.success() || refused, "it said nothing of signatures: {said}");
        Ok(output.status.success())
    };
    let (npm, pypi) = (node()?, python()?);
    let node = by(Command::new("node").arg(npm.join("verify.mjs")))?;
    let python = by(Command::new(pypi.join("bin/python")).arg(pypi.join("verify.py")))?;
    let rust = standardwebhooks::Webhook::new(secret)?.verify(body, &delivery.headers).is_ok();
    ensure!(node == rust && python == rust, "npm: {node}, PyPI: {python}, crate: {rust}");
    Ok(rust)
}
