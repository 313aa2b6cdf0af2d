//! Runs of automations.

mod claims;
mod definition_versions;
mod deletion;
mod effects_in_runs;
mod failures;
mod fairness;
mod heartbeat;
mod large_outputs;
mod limits;
mod runs;
mod schedules;
mod triggers;
mod waits;

use automation::definition::{AutomationDefinition, Trigger};
use chrono::{DateTime, TimeDelta, Utc};
use domain::automations::ENV_PURPOSE;
use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use sandbox::test::eventually;
use serde_json::{Value, json};
use store::automations::{
    Authority, Automation, ClaimedRun, InsertedRun, LoggedStep, NewAutomation, NewRun, OverLimit, Run,
    RunLimit, SaveOutcome, claim_runs, find_automation, find_run, insert_automation, insert_runs,
    list_due_accounts, list_runs, list_steps,
};
use uuid::Uuid;

use crate::fixture::account::{Account, Running, new_id, now, seal};

/// Poll intervals of other work.
const OTHER_WORK: [&str; 3] =
    ["garbage_collection.poll_interval=10s", "outbox.poll_interval=1s", "webhooks.poll_interval=10s"];

/// An automation of an account.
pub(crate) struct TestAutomation<'a> {
    account: &'a Account,
    account_id: Uuid,
    id: Uuid,
    definition: AutomationDefinition,
}

/// A definition with an http trigger.
fn with_steps(steps: Value) -> Value {
    json!({"trigger": {"type": "http"}, "steps": steps})
}

impl Account {
    /// Creates an automation with an http trigger.
    pub(crate) async fn automation(&self, steps: Value) -> TestAutomation<'_> {
        self.automation_with(&with_steps(steps), None, &json!({})).await
    }

    pub(crate) async fn automation_with(
        &self,
        definition: &Value,
        next_fire_at: Option<DateTime<Utc>>,
        env: &Value,
    ) -> TestAutomation<'_> {
        self.automation_of(self.id, definition, next_fire_at, env).await
    }

    /// Creates an automation of another account in the same database.
    pub(crate) async fn automation_of(
        &self,
        account_id: Uuid,
        definition: &Value,
        next_fire_at: Option<DateTime<Utc>>,
        env: &Value,
    ) -> TestAutomation<'_> {
        let definition = AutomationDefinition::read(definition).unwrap();
        let id = new_id();
        let form_id = match &definition.trigger {
            Trigger::FormSubmission(trigger) => Some(trigger.form_id),
            _ => None,
        };
        let (json, hash) = (definition.canonical_json(), definition.hash());
        let sealed_env = seal(ENV_PURPOSE, &env.to_string());
        let names: Vec<String> = env.as_object().unwrap().keys().cloned().collect();
        let new = NewAutomation {
            id,
            folder_id: None,
            slug: &id.simple().to_string(),
            name: "Lead to Slack",
            description: None,
            is_enabled: true,
            definition: &json,
            definition_hash: &hash,
            env_names: &names,
            sealed_env: (!names.is_empty()).then_some(&sealed_env),
            authority: &Authority { scopes: ScopeSet::FULL, restrictions: Restrictions::default() },
            trigger_type: match definition.trigger {
                Trigger::FormSubmission(_) => "form_submission",
                Trigger::Http(_) => "http",
                Trigger::Schedule(_) => "schedule",
            },
            trigger_form_id: form_id,
            next_fire_at,
            created_at: now(),
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let saved = insert_automation(&mut conn, account_id, &new).await.unwrap();
        assert_eq!(saved, SaveOutcome::Stored);
        TestAutomation { account: self, account_id, id, definition }
    }

    /// Starts a job-runner that looks rarely for other work, because the machine may be busy.
    async fn run_automations(&self, set: &[&str]) -> Running {
        self.run(&[&OTHER_WORK, set].concat()).await
    }

    /// Claims all due runs, as a job-runner would that is killed then. The lease ends at `until`.
    pub(crate) async fn claim_due_runs(&self, until: DateTime<Utc>) -> Vec<ClaimedRun> {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let accounts = list_due_accounts(&mut conn, now()).await.unwrap();
        let limits: Vec<_> =
            accounts.into_iter().map(|account_id| RunLimit { account_id, limit: 1_000 }).collect();
        claim_runs(&mut conn, now(), until, new_id(), &limits).await.unwrap()
    }
}

impl TestAutomation<'_> {
    fn new_run(&self, payload: &Value) -> NewRun {
        let trigger = json!({"payload": payload});
        let key = payload["key"].as_str().map(str::to_owned);
        NewRun {
            id: new_id(),
            automation_id: self.id,
            definition_hash: self.definition.hash().to_vec(),
            trigger_type: "http",
            trigger,
            is_test: false,
            depth: 0,
            concurrency: self
                .definition
                .concurrency
                .as_ref()
                .map(|concurrency| (i32::try_from(concurrency.limit).unwrap(), key)),
            submission_id: None,
            source_submission_id: None,
            fire_at: None,
            traceparent: None,
        }
    }

    /// Starts a run with this payload.
    async fn start(&self, payload: Value) -> Uuid {
        self.start_run(self.new_run(&payload)).await
    }

    async fn start_run(&self, run: NewRun) -> Uuid {
        let id = run.id;
        let inserted = self.start_all(vec![run]).await;
        assert_eq!(inserted, [InsertedRun::Queued]);
        id
    }

    async fn start_all(&self, runs: Vec<NewRun>) -> Vec<InsertedRun> {
        let mut conn = store::acquire(&self.account.database.db).await.unwrap();
        insert_runs(&mut conn, self.account_id, now(), -1, OverLimit::Refuse, &runs).await.unwrap()
    }

    async fn run(&self, id: Uuid) -> Run {
        let mut conn = store::acquire(&self.account.database.db).await.unwrap();
        find_run(&mut conn, self.account_id, self.id, id).await.unwrap().unwrap()
    }

    /// Waits until the run has this status, and returns it.
    async fn run_when(&self, id: Uuid, status: &str) -> Run {
        eventually(async || Some(self.run(id).await).filter(|run| run.status.as_str() == status)).await
    }

    /// Returns the steps of a run in the order in which they began.
    async fn steps(&self, id: Uuid) -> Vec<LoggedStep> {
        let mut conn = store::acquire(&self.account.database.db).await.unwrap();
        list_steps(&mut conn, self.account_id, id, 1_000, i64::MAX).await.unwrap().steps
    }

    /// Returns path and status of each step.
    async fn outline(&self, id: Uuid) -> Vec<(String, String)> {
        self.steps(id).await.into_iter().map(|step| (step.path, step.status)).collect()
    }

    async fn runs(&self) -> Vec<Run> {
        let mut conn = store::acquire(&self.account.database.db).await.unwrap();
        let filter = store::automations::RunFilter { limit: 1_000, ..Default::default() };
        list_runs(&mut conn, self.account_id, self.id, &filter).await.unwrap().rows
    }

    async fn read(&self) -> Automation {
        let mut conn = store::acquire(&self.account.database.db).await.unwrap();
        find_automation(&mut conn, self.account_id, self.id).await.unwrap().unwrap()
    }

    /// Waits until this many runs are counted. The timeout applies to each step of progress, because the machine may be
    /// slow.
    async fn until_ended(&self, count: usize) {
        let mut before = 0;
        while before < i64::try_from(count).unwrap() {
            let ended = async || self.read().await.statistics.runs;
            before = eventually(async || Some(ended().await).filter(|now| *now > before)).await;
        }
    }

    async fn cancel(&self, id: Uuid) -> bool {
        let mut conn = store::acquire(&self.account.database.db).await.unwrap();
        store::automations::cancel_run(&mut conn, self.account_id, self.id, id, now()).await.unwrap()
    }
}

/// Pairs of path and status, as [`TestAutomation::outline`] returns them.
fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(path, status)| ((*path).to_owned(), (*status).to_owned())).collect()
}

fn minutes(minutes: i64) -> TimeDelta {
    TimeDelta::minutes(minutes)
}

/// The plan of test accounts.
const PLAN: Plan = Plan::Free;
