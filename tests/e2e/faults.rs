//! Acknowledged data survives kills of every service: nothing is lost and nothing is duplicated.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use harness::{Client, Receiver, System, until};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::story::Story;

const SERVICES: [&str; 4] = ["edge-server", "control-plane", "collector", "job-runner"];

/// Kills a service with SIGKILL, or empties Redis.
fn inject_fault(system: &System, victim: &str) -> Result<()> {
    if victim == "redis" { system.empty_redis() } else { system.kill(victim) }
}

/// Waits until the system has recovered from the previous fault, then injects the next.
async fn inject_fault_when_ready(system: &mut System, victim: &str) -> Result<()> {
    system.until_ready().await?;
    inject_fault(system, victim)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_story_completes_when_any_service_is_killed_between_its_steps() -> Result<()> {
    let mut system = System::start(PROGRAM, true, &[]).await?;
    for victim in SERVICES.into_iter().chain(["redis"]) {
        let mut story = Story::begin(&system).await?;
        inject_fault_when_ready(&mut system, victim).await?;
        story.a_trial_gives_a_working_key().await.context(victim)?;
        inject_fault_when_ready(&mut system, victim).await?;
        story.a_page_is_live().await.context(victim)?;
        inject_fault_when_ready(&mut system, victim).await?;
        story.an_edit_is_served().await.context(victim)?;
        inject_fault_when_ready(&mut system, victim).await?;
        story.a_form_validates_submissions().await.context(victim)?;
        inject_fault_when_ready(&mut system, victim).await?;
        story.a_webhook_is_created().await.context(victim)?;
        inject_fault_when_ready(&mut system, victim).await?;
        let submission = story.a_submission_is_accepted().await.context(victim)?;
        inject_fault_when_ready(&mut system, victim).await?;
        story.it_is_stored_and_delivered(&submission).await.context(victim)?;
        inject_fault_when_ready(&mut system, victim).await?;
        story.an_analytics_site_is_created().await.context(victim)?;
        inject_fault_when_ready(&mut system, victim).await?;
        story.an_event_is_accepted().await.context(victim)?;
        inject_fault_when_ready(&mut system, victim).await?;
        story.the_visit_is_counted_once().await.context(victim)?;
        let ids: BTreeSet<_> =
            story.receiver.received().iter().map(|one| one.header("webhook-id").to_owned()).collect();
        ensure!(ids.len() == 1, "{victim}: one submission was delivered under {} webhook ids", ids.len());
        system.until_ready().await?;
    }
    Ok(())
}

const ROUNDS: usize = 240;

/// The results of a burst. A request without a response may or may not have been processed.
#[derive(Debug, Default)]
struct Burst {
    submissions: BTreeSet<String>,
    unanswered_submissions: usize,
    visits: u64,
    unanswered_visits: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_every_service_in_turn_during_a_burst_loses_and_duplicates_nothing() -> Result<()> {
    let set = ["collector.events_per_minute=100000", "queue.lease_ttl=2s", "webhooks.timeout=1s"];
    let mut system = System::start(PROGRAM, true, &set).await?;
    let base = system.file.base_url.clone();
    let mut client = system.client();
    let trial = client.retry_until_ok(Method::POST, &format!("{base}/api/trial"), &Value::Null).await?;
    client.key = trial["key"].as_str().map(str::to_owned);
    set_scale_plan(&system, &client, &base).await?;

    let receiver = Receiver::listen(0).await?;
    let form = json!({"name": "Burst", "fields": [{"name": "n", "label": "N", "type": "number"}]});
    let form = client.retry_until_ok(Method::POST, &format!("{base}/api/forms"), &form).await?;
    client
        .retry_until_ok(Method::POST, &format!("{base}/api/webhooks"), &json!({"url": receiver.url}))
        .await?;
    let site = client
        .retry_until_ok(Method::POST, &format!("{base}/api/analytics/sites"), &json!({"name": "Burst"}))
        .await?;

    let burst = burst(&system, &client, &base, &form, &site).await?;
    system.until_ready().await?;
    ensure!(
        burst.submissions.len() > ROUNDS / 2,
        "too few submissions were accepted: {}",
        burst.submissions.len()
    );

    let stored = all_submissions(&client, &base, &form).await?;
    let missing: Vec<_> = burst.submissions.difference(&stored).collect();
    ensure!(missing.is_empty(), "acknowledged but not stored: {missing:?}");
    let most = burst.submissions.len() + burst.unanswered_submissions;
    ensure!(stored.len() <= most, "{} stored of {most} sent", stored.len());

    until("every stored submission to be delivered", async || {
        let delivered: BTreeSet<_> =
            receiver.received().iter().map(harness::Delivery::submission_id).collect();
        (delivered == stored).then_some(())
    })
    .await?;
    let mut ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in receiver.received() {
        ids.entry(one.submission_id()).or_default().insert(one.header("webhook-id").to_owned());
    }
    let duplicated: Vec<_> = ids.iter().filter(|(_, ids)| ids.len() != 1).collect();
    ensure!(duplicated.is_empty(), "delivered under more than one webhook id: {duplicated:?}");

    let id = site["site"]["id"].as_str().unwrap_or_default();
    let query = format!("{base}/api/analytics/query?siteId={id}&period=today");
    until("every visit to be counted", async || {
        let total = client.get(&query).await.ok()?.json()["total"].as_u64()?;
        (total >= burst.visits).then_some(())
    })
    .await?;
    let total = client.get(&query).await?.json()["total"].as_u64().context("no total")?;
    let most = burst.visits + burst.unanswered_visits;
    ensure!(
        (burst.visits..=most).contains(&total),
        "{total} counted, {} answered, {most} sent",
        burst.visits
    );
    Ok(())
}

/// Sends submissions and events and kills the next service every 20 rounds. Requests without a success response are
/// counted, not retried.
async fn burst(system: &System, client: &Client, base: &str, form: &Value, site: &Value) -> Result<Burst> {
    let submit = form["submitUrl"].as_str().context("no submitUrl")?;
    let collect = format!("{base}/api/collect");
    let event =
        json!({"siteToken": site["site"]["siteToken"], "name": "page_view", "url": "https://x.test/"});
    let browser = [("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0")];
    let mut burst = Burst::default();
    for round in 0..ROUNDS {
        if round % 20 == 10 {
            let victims = [SERVICES[0], SERVICES[1], SERVICES[2], SERVICES[3], "redis"];
            // The service may still be starting after the previous kill.
            let _not_running = inject_fault(system, victims[round / 20 % victims.len()]);
        }
        let answers = json!({"n": round});
        match client.json(Method::POST, submit, &answers).await {
            Ok(answer) if answer.status == StatusCode::CREATED => {
                let id = answer.json()["submissionId"].as_str().context("no submissionId")?.to_owned();
                ensure!(burst.submissions.insert(id), "a submission id was returned twice");
            }
            _ => burst.unanswered_submissions += 1,
        }
        match client.send(Method::POST, &collect, &browser, event.to_string().into()).await {
            Ok(answer) if answer.status == StatusCode::NO_CONTENT => burst.visits += 1,
            _ => burst.unanswered_visits += 1,
        }
        if burst.unanswered_submissions + burst.submissions.len() == round + 1 && round % 20 == 19 {
            until("the public port to answer again", async || {
                client.get(&format!("{base}/")).await.ok().map(drop)
            })
            .await?;
        }
    }
    Ok(burst)
}

async fn all_submissions(client: &Client, base: &str, form: &Value) -> Result<BTreeSet<String>> {
    let list =
        format!("{base}/api/forms/{}/submissions?limit=100", form["formId"].as_str().unwrap_or_default());
    let (mut all, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let page = client.get(&format!("{list}{cursor}")).await?.json();
        let rows = page["submissions"].as_array().context("no submissions")?;
        all.extend(rows.iter().filter_map(|row| Some(row["id"].as_str()?.to_owned())));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(all),
        }
    }
}

/// Puts the account on the plan `scale`: a form of the free plan takes only 100 submissions.
pub(crate) async fn set_scale_plan(system: &System, client: &Client, base: &str) -> Result<()> {
    let account = client.get(&format!("{base}/api/account")).await?.json();
    let id = account["id"].as_str().context("no id")?;
    let done = Command::new(PROGRAM)
        .args(["admin", "--dir"])
        .arg(system.folder())
        .args(["plan", id, "scale"])
        .output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
