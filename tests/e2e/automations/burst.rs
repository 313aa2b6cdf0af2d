//! A burst of submissions while the job-runner is killed again and again: each run ends, and writes its entry once.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use harness::until_within;
use serde_json::json;

use super::owner::Owner;
use super::run_log::Automation;
use super::story::{RUN_TIMEOUT, kill_job_runner, start_system};

const SUBMISSIONS: usize = 100;
/// The job-runner is killed when the page has this many entries.
const KILLED_AT: [usize; 3] = [5, 40, 75];

#[tokio::test(flavor = "multi_thread")]
async fn each_submission_of_a_burst_writes_one_entry_when_the_job_runner_is_killed_repeatedly() -> Result<()>
{
    let (mut system, owner) = start_system().await?;
    let form = owner.form("Burst", &[("n", "number")]).await?;
    let page = owner.page("burst", "<li>{{n}}</li>").await?;
    let body = json!({
        "name": "Burst",
        "slug": "burst",
        "trigger": {"type": "form_submission", "formId": form["formId"]},
        "steps": [
            {"id": "check", "type": "condition", "branches": [{"if": "trigger.payload.n >= 0", "steps": [
                {"id": "label", "type": "set", "values": {"even": "{{ trigger.payload.n % 2 == 0 }}"}},
                {"id": "keep", "type": "create_entry", "pageId": page["id"],
                 "data": {"n": "{{ trigger.payload.n }}", "even": "{{ steps.label.even }}"}},
            ]}]},
            {"id": "again", "type": "find", "in": "entries", "pageId": page["id"],
             "where": {"n": "{{ trigger.payload.n }}"}},
            {"id": "once", "type": "stop", "if": "steps.again.count != 1", "status": "error",
             "message": "{{ steps.again.count }} entries"},
        ],
    });
    let automation = Automation::create(&owner, &body).await?;
    let submitting = async {
        for n in 0..SUBMISSIONS {
            owner.submit(&form, &json!({"n": n})).await?;
        }
        Ok(())
    };
    let killing = async {
        for entries in KILLED_AT {
            until_within(RUN_TIMEOUT, &format!("{entries} entries"), async || {
                (owner.entries(&page).await.ok()?.len() >= entries).then_some(())
            })
            .await?;
            kill_job_runner(&mut system).await?;
        }
        anyhow::Ok(())
    };
    tokio::try_join!(submitting, killing)?;

    let entries = until_within(RUN_TIMEOUT, "every entry", async || {
        let all = owner.entries(&page).await.ok()?;
        (all.len() >= SUBMISSIONS && ended(&owner, &automation).await.ok()? >= SUBMISSIONS).then_some(all)
    })
    .await?;
    let numbers: BTreeSet<_> = entries.iter().filter_map(|data| data["n"].as_u64()).collect();
    ensure!(
        entries.len() == SUBMISSIONS && numbers.len() == SUBMISSIONS,
        "{} entries: {numbers:?}",
        entries.len()
    );
    let runs = automation.runs(&owner).await?;
    ensure!(runs.len() == SUBMISSIONS, "{SUBMISSIONS} submissions started {} runs", runs.len());
    if let Some(failed) = runs.iter().find(|run| run.status() != "success") {
        anyhow::bail!("a run failed: {failed:?}");
    }
    Ok(())
}

/// Returns the number of ended runs that the automation has counted.
async fn ended(owner: &Owner, automation: &Automation) -> Result<usize> {
    let shown = owner.get(&format!("automations/{}", automation.id)).await?;
    let ended = shown["statistics"]["runs"].as_u64().unwrap_or_default();
    Ok(usize::try_from(ended)?)
}
