//! Deliveries in flight when the job-runner is killed.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use harness::{Delivery, Receiver, System, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;

const SUBMISSIONS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_in_flight_when_the_job_runner_is_killed_are_retried_under_the_same_id() -> Result<()> {
    let mut system = System::start(PROGRAM, true, &["webhooks.timeout=3s"]).await?;
    let base = system.file.base_url.clone();
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
    client.key = trial["key"].as_str().map(str::to_owned);
    let receiver = Receiver::hanging(1).await?;
    let form = json!({"name": "Killed", "fields": [{"name": "n", "label": "N", "type": "number"}]});
    let form = client.retry_until_ok(Method::POST, &format!("{base}/api/forms"), &form).await?;
    client
        .retry_until_ok(Method::POST, &format!("{base}/api/webhooks"), &json!({"url": receiver.url}))
        .await?;
    let submit = form["submitUrl"].as_str().context("no submitUrl")?;
    let mut accepted = Vec::new();
    for n in 0..SUBMISSIONS {
        let answer = client.json(Method::POST, submit, &json!({"n": n})).await?;
        ensure!(answer.status == StatusCode::CREATED, "{}", answer.text());
        accepted.push(answer.json()["submissionId"].as_str().context("no submissionId")?.to_owned());
    }
    let hung = until("a request to hang", async || receiver.hung().pop()).await?;
    system.kill("job-runner")?;
    system.until_ready().await?;

    until("every submission to be delivered", async || {
        let delivered: Vec<_> = receiver.received().iter().map(Delivery::submission_id).collect();
        accepted.iter().all(|id| delivered.contains(id)).then_some(())
    })
    .await?;
    let mut ids: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in receiver.received().iter().chain([&hung]) {
        ids.entry(one.submission_id()).or_default().push(one.header("webhook-id").to_owned());
    }
    ensure!(ids[&hung.submission_id()].len() >= 2, "the delivery in flight was not retried: {ids:?}");
    let are_equal = |ids: &Vec<String>| ids.iter().all(|id| *id == ids[0]);
    ensure!(
        ids.len() == SUBMISSIONS && ids.values().all(are_equal),
        "a submission has several webhook ids: {ids:?}"
    );
    Ok(())
}
