//! An error response that is sent before the request body was read completely still reaches the client, through both
//! services.

use anyhow::{Context, Result, ensure};
use harness::System;
use http::Method;
use serde_json::{Value, json};

use crate::PROGRAM;

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_oversized_and_unauthenticated_requests_arrive_while_the_client_is_still_sending()
-> Result<()> {
    let system = System::start(PROGRAM, false, &[]).await?;
    let url = |path: &str| format!("{}{path}", system.file.base_url);
    let anonymous = system.client();
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &url("/api/trial"), &Value::Null).await?;
    client.key = Some(trial["key"].as_str().context("no key")?.to_owned());
    let mib = 1024 * 1024;
    // The handler reads the first body and refuses one field; the others are refused before they are read.
    for (size, status) in [(mib, 400), (6 * mib, 413), (16 * mib, 413)] {
        let page = json!({"slug": "large", "title": "Large", "html": "x".repeat(size)});
        for attempt in 0..4 {
            let key = format!("{size}-{attempt}");
            let headers = [("content-type", "application/json"), ("idempotency-key", key.as_str())];
            for headers in [&headers[..1], &headers[..]] {
                let sent = page.to_string().into();
                let answer = client.send(Method::POST, &url("/api/pages"), headers, sent).await?;
                ensure!(
                    answer.status == status,
                    "{size} bytes, {headers:?}: {} {}",
                    answer.status,
                    answer.text()
                );
            }
            let sent = page.to_string().into();
            let answer = anonymous.send(Method::POST, &url("/api/pages"), &headers, sent).await?;
            ensure!(answer.status == 401, "{size} bytes without a key: {} {}", answer.status, answer.text());
        }
    }
    let pages = client.get(&url("/api/pages")).await?.json();
    ensure!(pages["pages"] == json!([]), "a refused request changed something: {pages}");
    Ok(())
}
