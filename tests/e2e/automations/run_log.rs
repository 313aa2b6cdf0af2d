//! The log of an automation, as its owner reads it.

use anyhow::{Context, Result, ensure};
use harness::until_within;
use serde_json::{Value, json};

use super::owner::{Owner, id_of};

const ENDED: [&str; 4] = ["success", "error", "cancelled", "skipped"];

/// A run with its steps, as the log shows it.
#[derive(Debug, Clone)]
pub(crate) struct Run(pub(super) Value);

impl Run {
    pub(super) fn id(&self) -> &str {
        self.0["runId"].as_str().unwrap_or_default()
    }

    pub(super) fn status(&self) -> &str {
        self.0["status"].as_str().unwrap_or_default()
    }

    pub(super) fn has_ended(&self) -> bool {
        ENDED.contains(&self.status())
    }

    /// The step at a path, such as `each[3].notify`.
    pub(super) fn step(&self, path: &str) -> Result<&Value> {
        self.steps()?
            .find(|step| step["path"] == path)
            .with_context(|| format!("no step {path} in {}", self.0))
    }

    fn steps(&self) -> Result<impl Iterator<Item = &Value>> {
        Ok(self.0["steps"].as_array().with_context(|| format!("no steps in {}", self.0))?.iter())
    }

    /// What must not depend on whether a worker was killed: how the run and each of its steps ended.
    pub(super) fn final_state(&self) -> Result<Value> {
        let mut steps: Vec<String> = self
            .steps()?
            .map(|step| format!("{} {} {} {}", step["path"], step["type"], step["status"], step["error"]))
            .collect();
        steps.sort();
        Ok(json!({"status": self.0["status"], "error": self.0["error"], "message": self.0["message"],
                  "steps": steps}))
    }
}

/// An automation, and what its log must never show.
#[derive(Clone)]
pub(crate) struct Automation {
    pub(super) id: String,
    /// Empty unless its trigger is http.
    pub(super) trigger_url: String,
    env: Vec<String>,
}

impl Automation {
    /// Stores an automation as its owner wrote it.
    pub(crate) async fn create(owner: &Owner, body: &Value) -> Result<Self> {
        let made = owner.post("automations", body).await?;
        let env = body["env"].as_object().into_iter().flatten();
        let env: Vec<String> = env.filter_map(|(_, value)| value.as_str().map(str::to_owned)).collect();
        ensure!(env.iter().all(|value| !made.to_string().contains(value)), "a variable is shown: {made}");
        let trigger_url = made["triggerUrl"].as_str().unwrap_or_default().to_owned();
        Ok(Self { id: id_of(&made)?.to_owned(), trigger_url, env })
    }

    /// The runs with their steps, oldest first.
    pub(super) async fn runs(&self, owner: &Owner) -> Result<Vec<Run>> {
        let log = owner.get(&format!("automations/{}/logs?limit=100", self.id)).await?;
        ensure!(
            self.env.iter().all(|value| !log.to_string().contains(value)),
            "the log shows a variable: {log}"
        );
        let runs = log["logs"].as_array().with_context(|| format!("no logs in {log}"))?;
        Ok(runs.iter().rev().cloned().map(Run).collect())
    }

    /// Waits until the oldest run has a status.
    pub(super) async fn until_status(&self, owner: &Owner, status: &str) -> Result<Run> {
        until_within(super::story::RUN_TIMEOUT, &format!("a run with status {status}"), async || {
            self.runs(owner).await.ok()?.into_iter().next().filter(|run| run.status() == status)
        })
        .await
    }

    /// Waits until the `count` oldest runs have ended, and returns all runs, oldest first.
    pub(super) async fn ended_runs(&self, owner: &Owner, count: usize) -> Result<Vec<Run>> {
        let mut seen = Vec::new();
        let ended = until_within(super::story::RUN_TIMEOUT, "runs to end", async || {
            seen = self.runs(owner).await.ok()?;
            (seen.iter().take(count).filter(|run| run.has_ended()).count() == count).then(|| seen.clone())
        })
        .await;
        ended.with_context(|| format!("{count} runs were to end: {seen:?}"))
    }

    /// Waits until the only run has succeeded.
    pub(crate) async fn only_run(&self, owner: &Owner) -> Result<Run> {
        let mut runs = self.ended_runs(owner, 1).await?;
        ensure!(runs.len() == 1, "one event started {} runs: {runs:?}", runs.len());
        let run = runs.remove(0);
        ensure!(run.status() == "success", "{:?}", run.0);
        Ok(run)
    }
}
