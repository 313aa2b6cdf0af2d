//! Three third-party libraries in three languages verify received deliveries, during a secret rotation too.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Delivery, Receiver, System, run_over, until};
use serde_json::{Value, json};

use crate::account::Account;
use crate::{PACKAGES, PROGRAM};

#[tokio::test(flavor = "multi_thread")]
async fn three_third_party_libraries_verify_deliveries_under_each_valid_secret() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let account = Account::new(&system).await?;
    let receiver = Receiver::listen(0).await?;
    let hook = account.post("/api/webhooks", &json!({"url": receiver.url})).await?;
    let path = format!("/api/webhooks/{}", hook["id"].as_str().context("no id")?);
    let old = secret_of(&hook)?;

    // Escapes, quotes and control characters: the signature covers the bytes as sent.
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
    let received = receiver.received();
    let ping =
        received.iter().find(|one| tested["id"] == one.header("webhook-id")).context("no ping arrived")?;
    check(ping, &[&newest])?;
    for old in [&old, &new] {
        ensure!(!verified_by_all(ping, old, &ping.body)?, "a revoked secret still signs");
    }
    Ok(())
}

fn secret_of(answer: &Value) -> Result<String> {
    Ok(answer["secret"].as_str().context("no secret")?.to_owned())
}

async fn delivered(receiver: &Receiver, submission: &str) -> Result<Delivery> {
    until("the delivery", async || {
        receiver.received().into_iter().find(|delivery| delivery.submission_id() == submission)
    })
    .await
}

/// Checks that every library accepts the delivery under each secret and rejects a modified body.
fn check(delivery: &Delivery, secrets: &[&str]) -> Result<()> {
    let signatures = delivery.header("webhook-signature").split(' ').count();
    ensure!(signatures == secrets.len(), "{signatures} signatures for {} secrets", secrets.len());
    let mut changed = delivery.body.to_vec();
    changed.push(b' ');
    for secret in secrets {
        ensure!(verified_by_all(delivery, secret, &delivery.body)?, "a valid signature was rejected");
        ensure!(!verified_by_all(delivery, secret, &changed)?, "a modified body was accepted");
    }
    Ok(())
}

/// The verdict of the libraries, which must agree.
fn verified_by_all(delivery: &Delivery, secret: &str, body: &[u8]) -> Result<bool> {
    let headers = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| delivery.header(name));
    let verdict = |command: &mut Command| -> Result<bool> {
        let output = run_over(command.arg(secret).args(headers), body)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let refused = errors.contains("WebhookVerificationError");
        ensure!(output.status.success() || refused, "unexpected error: {errors}");
        Ok(output.status.success())
    };
    let (npm, pypi) = (PACKAGES.node()?, PACKAGES.python()?);
    let node = verdict(Command::new("node").arg(npm.join("verify.mjs")))?;
    let python = verdict(Command::new(pypi.join("bin/python")).arg(pypi.join("verify.py")))?;
    let rust = standardwebhooks::Webhook::new(secret)?.verify(body, &delivery.headers).is_ok();
    ensure!(node == rust && python == rust, "npm: {node}, PyPI: {python}, crate: {rust}");
    Ok(rust)
}
