//! Automations of schedules: nightly digest and uptime check. Undisturbed they run through the `test` endpoint; in the
//! other variant their schedule fires, each minute, and the job-runner is killed.

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Timelike, Utc};
use harness::{Answer, until};
use serde_json::{Value, json};

use super::run_log::{Automation, Run};
use super::scene::Scene;
use super::story::{Middle, Prepared, Story, ensure_equal, kill_job_runner, play, start_system};

#[tokio::test(flavor = "multi_thread")]
async fn automations_of_schedules_run_once_per_time_also_when_the_job_runner_is_killed() -> Result<()> {
    let (mut system, owner) = start_system().await?;
    let undisturbed = (play::<Digest>(&owner).await?, play::<Uptime>(&owner).await?);
    let digest = Prepared::<Digest>::new(&owner, true).await?;
    let uptime = Prepared::<Uptime>::new(&owner, true).await?;
    // Both are stored in the same minute.
    until("the first part of a minute", async || (now().second() < 45).then_some(())).await?;
    digest.start().await?;
    uptime.start().await?;
    // Both fire at the next minute.
    tokio::try_join!(digest.reach_middle(), uptime.reach_middle())?;
    kill_job_runner(&mut system).await?;
    let after_kill = tokio::try_join!(digest.check(None), uptime.check(None))?;
    ensure_equal::<Digest>(&undisturbed.0, &after_kill.0)?;
    ensure_equal::<Uptime>(&undisturbed.1, &after_kill.1)
}

#[expect(clippy::disallowed_methods, reason = "a story runs in real time")]
fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Returns the trigger of a schedule: of each minute, or of a time twelve hours from now.
fn schedule(scene: &Scene) -> Value {
    let cron = if scene.is_killed {
        "* * * * *".to_owned()
    } else {
        format!("0 {} * * *", (now().hour() + 12) % 24)
    };
    json!({"type": "schedule", "cron": cron, "timezone": "UTC", "catchUp": "last"})
}

/// Starts a test run, or waits for nothing: the schedule starts the run.
async fn start(scene: &Scene, automation: &Automation) -> Result<Option<Value>> {
    if scene.is_killed {
        return Ok(None);
    }
    let body = json!({"triggerData": {"scheduledAt": now().to_rfc3339()}});
    let path = format!("automations/{}/test", automation.id);
    scene.owner.post(&path, &body).await.map(Some)
}

/// Returns the first run: the only one of a test, or that of the first time. Each time has one run.
async fn first_run(scene: &Scene, automation: &Automation, tested: Option<Value>) -> Result<Run> {
    let Scene { owner, .. } = scene;
    let runs = automation.ended_runs(owner, 1).await?;
    let path = format!("automations/{}", automation.id);
    if let Some(tested) = tested {
        let shown = owner.get(&path).await?;
        ensure!(shown["statistics"]["runs"] == 0, "a test moved a counter: {shown}");
        ensure!(runs.len() == 1 && tested["runId"] == runs[0].id(), "{tested} {runs:?}");
        ensure!(tested["status"] == "success" && tested["steps"].is_array(), "{tested}");
    } else {
        owner.put(&path, &json!({"enabled": false})).await?;
        let mut times: Vec<_> = automation
            .runs(owner)
            .await?
            .into_iter()
            .map(|run| run.0["trigger"]["scheduledAt"].to_string())
            .collect();
        let runs = times.len();
        times.sort();
        times.dedup();
        ensure!(times.len() == runs, "a time has several runs: {times:?}");
    }
    let run = runs.into_iter().next().context("no run")?;
    ensure!(run.status() == "success", "{run:?}");
    Ok(run)
}

/// Sends the answers of the last day by mail.
struct Digest {
    automation: Automation,
}

impl Story for Digest {
    const NAME: &'static str = "nightly digest of submissions";
    const MIDDLE: Middle = Middle::Request("/mail", 0);
    type Answer = Option<Value>;

    async fn create(scene: &Scene) -> Result<Self> {
        let Scene { owner, peer, .. } = scene;
        peer.answer("/mail", |_, _| Answer::new(202, json!({"queued": true})));
        let form = owner.form("Feedback", &[("name", "text"), ("rating", "number")]).await?;
        for (name, rating) in [("Ana", 4), ("Bo \"B\"", 5), ("Cy", 2)] {
            owner.submit(&form, &json!({"name": name, "rating": rating})).await?;
        }
        let automation = json!({
            "name": "Digest",
            "slug": scene.slug("digest"),
            "trigger": schedule(scene),
            "steps": [
                {"id": "recent", "type": "find", "in": "submissions", "formId": form["formId"],
                 "since": "{{ date_add(trigger.scheduledAt, -1, \"days\") }}", "limit": 100},
                {"id": "lines", "type": "transform", "input": "{{ steps.recent.items }}",
                 "sort": {"by": "item.createdAt"}, "map": "{{ item.payload.name }}: {{ item.payload.rating }}"},
                {"id": "send", "type": "fetch", "if": "steps.recent.count > 0", "method": "POST",
                 "url": format!("{}/mail", peer.url),
                 "body": {
                    "subject": "{{ steps.recent.count }} answers until {{ date_format(trigger.scheduledAt, \"%Y-%m-%d\", \"Europe/Berlin\") }}",
                    "text": "{{ join(steps.lines, \"\\n\") }}",
                    "average": "{{ round(sum(pluck(pluck(steps.recent.items, \"payload\"), \"rating\")) * 1.0 / steps.recent.count, 1) }}",
                 }},
            ],
        });
        Ok(Self { automation: Automation::create(owner, &automation).await? })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<Option<Value>> {
        start(scene, &self.automation).await
    }

    async fn check(&self, scene: &Scene, tested: Option<Value>) -> Result<Value> {
        let run = first_run(scene, &self.automation, tested).await?;
        let mails = scene.requests("/mail")?;
        let mail = mails.first().context("no mail")?.json();
        ensure!(mail["text"] == "Ana: 4\nBo \"B\": 5\nCy: 2" && mail["average"] == 3.7, "{mail}");
        ensure!(
            mail["subject"].as_str().is_some_and(|subject| subject.starts_with("3 answers until 20")),
            "{mail}"
        );
        run.final_state()
    }
}

/// Calls a pager when a site is down.
struct Uptime {
    automation: Automation,
}

impl Story for Uptime {
    const NAME: &'static str = "uptime check";
    const MIDDLE: Middle = Middle::Request("/pager", 0);
    type Answer = Option<Value>;

    async fn create(scene: &Scene) -> Result<Self> {
        let Scene { owner, peer, .. } = scene;
        peer.answer("/health", |_, _| Answer::new(503, json!({"status": "degraded"})));
        peer.answer("/pager", |_, _| Answer::new(200, json!({"incident": 1})));
        let automation = json!({
            "name": "Uptime",
            "slug": scene.slug("uptime"),
            "trigger": schedule(scene),
            "env": {"SITE": peer.url, "PAGER": format!("{}/pager", peer.url)},
            "steps": [
                {"id": "check", "type": "fetch", "url": "{{ env.SITE }}/health", "timeoutMs": 5_000, "onError": "continue"},
                {"id": "is_up", "type": "condition", "branches": [
                    {"if": "steps.check.status == 200 && steps.check.body.status == \"ok\"",
                     "steps": [{"id": "up", "type": "stop", "status": "success", "message": "up"}]},
                ], "else": [
                    {"id": "alert", "type": "fetch", "method": "POST", "url": "{{ env.PAGER }}",
                     "body": {"site": "{{ env.SITE }}", "status": "{{ steps.check.status }}",
                              "reason": "{{ steps.check.error }}", "health": "{{ steps.check.body.status }}"}},
                ]},
            ],
        });
        Ok(Self { automation: Automation::create(owner, &automation).await? })
    }

    fn automation(&self) -> &Automation {
        &self.automation
    }

    async fn start(&self, scene: &Scene) -> Result<Option<Value>> {
        start(scene, &self.automation).await
    }

    async fn check(&self, scene: &Scene, tested: Option<Value>) -> Result<Value> {
        let run = first_run(scene, &self.automation, tested).await?;
        let alerts = scene.requests("/pager")?;
        let alert = alerts.first().context("no alert")?.json();
        ensure!(
            alert["site"] == scene.peer.url && alert["status"] == 503 && alert["health"] == "degraded",
            "{alert}"
        );
        ensure!(alert["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{alert}");
        // The check was recorded before the kill, so its request was not sent again.
        let checks = scene.requests("/health")?;
        let of_run = scene.peer.requests("/health");
        let of_run = of_run.iter().filter(|one| one.header("idempotency-key").starts_with(run.id())).count();
        ensure!(of_run == 1 && !checks.is_empty(), "a recorded request was sent {of_run} times");
        let check = run.step("check")?;
        ensure!(check["status"] == "error" && check["input"]["url"] == "***/health", "{check}");
        run.final_state()
    }
}
