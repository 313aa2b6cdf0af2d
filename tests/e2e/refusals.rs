//! Refusals that come before a request was read to its end still arrive, through both services.

use anyhow::{Context, Result, ensure};
use harness::System;
use http::Method;
use serde_json::{Value, json};

use crate::PROGRAM;

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_too_much_or_no_key_is_told_so_while_still_writing() -> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let url = |path: &str| format!("{}{path}", system.file.base_url);
    let stranger = system.client();
    let mut client = system.client();
    let trial = client.insist(Method::POST, &url("/api/trial"), &Value::Null).await?;
    client.key = Some(trial["key"].as_str().context("no key")?.to_owned());
    let mib = 1024 * 1024;
    // The first is refused for one field, by a handler that has read it; the others before they are read.
    for (size, told) in [(mib, 400), (6 * mib, 413), (16 * mib, 413)] {
        let page = json!({"slug": "large", "title": "Large", "html": "x".repeat(size)});
        for turn in 0..4 {
            let key = format!("{size}-{turn}");
            let headers = [("content-type", "application/json"), ("idempotency-key", key.as_str())];
            for headers in [&headers[..1], &headers[..]] {
                let sent = page.to_string().into();
                let answer = client.send(Method::POST, &url("/api/pages"), headers, sent).await?;
                ensure!(
                    answer.status == told,
                    "{size} bytes, {headers:?}: {} {}",
                    answer.status,
                    answer.text()
                );
            }
            let sent = page.to_string().into();
            let answer = stranger.send(Method::POST, &url("/api/pages"), &headers, sent).await?;
            ensure!(answer.status == 401, "{size} bytes without a key: {} {}", answer.status, answer.text());
        }
    }
    let pages = client.get(&url("/api/pages")).await?.json();
    ensure!(pages["pages"] == json!([]), "nothing was changed: {pages}");
    Ok(())
}
