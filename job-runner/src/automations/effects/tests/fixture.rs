//! An account with an automation in stores of its own, and claimed runs of it.

use std::time::Duration;

use automation::definition::StepType;
use automation::execution::{Effect, EffectCall, EffectError, Failure};
use automation::masking::Masking;
use chrono::{DateTime, TimeDelta, Utc};
use contract::Signal;
use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use sandbox::test::{TestDatabase, TestFolder, TestRedis};
use serde_json::{Map, Value, json};
use service::config::{Sources, load};
use service::{Clock, Rng};
use store::automations::{
    Authority, Claim, InsertedRun, NewAutomation, NewRun, OverLimit, RunLimit, claim_runs, insert_automation,
    insert_runs,
};
use store::forms::Form;
use store::pages::NewPage;
use tokio::sync::{Mutex, mpsc};
use uuid::Uuid;

use crate::automations::run_context::LinkMasking;
use crate::automations::{RunContext, effects};
use crate::config::{Config, DEFAULTS};
use crate::state::JobState;

pub(super) struct Fixture {
    pub(super) database: TestDatabase,
    _redis: TestRedis,
    _blobs: TestFolder,
    pub(super) state: JobState,
    pub(super) account: Account,
    sender: mpsc::UnboundedSender<Signal>,
    signals: Mutex<mpsc::UnboundedReceiver<Signal>>,
}

/// An account with an automation and a site.
#[derive(Clone, Copy)]
pub(super) struct Account {
    pub(super) id: Uuid,
    pub(super) automation: Uuid,
    pub(super) site: Uuid,
}

impl Fixture {
    pub(super) async fn new() -> Self {
        Self::with(&["outbound.allow=[\"127.0.0.0/8\"]"]).await
    }

    /// With these settings.
    pub(super) async fn with(set: &[&str]) -> Self {
        let database = sandbox::test::database().await;
        let (redis, blobs) = (sandbox::test::redis().await, sandbox::test::folder());
        let mut settings = sandbox::test::settings_for(&[&database, &redis, &blobs]);
        settings.push(format!("secrets.master_key={}", "0f1e2d3c4b5a6978".repeat(4)));
        settings.push("store.max_connections=10".to_owned());
        settings.extend(set.iter().map(ToString::to_string));
        let config: Config = load(DEFAULTS, &Sources { set: settings, ..Sources::default() }).unwrap().config;
        let state = JobState::new(&config).await.unwrap();
        let account = new_account(&database, Authority::full()).await;
        let (sender, signals) = mpsc::unbounded_channel();
        let signals = Mutex::new(signals);
        Self { database, _redis: redis, _blobs: blobs, state, account, sender, signals }
    }

    /// Another account with an automation.
    pub(super) async fn other_account(&self) -> Account {
        new_account(&self.database, Authority::full()).await
    }

    /// Changes what the key that saved the automation may do.
    pub(super) async fn restrict(&self, scopes: &[&str], folder: Option<Uuid>, ids: &[(Resource, Uuid)]) {
        let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
        let ids: Map<String, Value> =
            ids.iter().map(|(kind, id)| (kind.as_str().to_owned(), json!([id]))).collect();
        sqlx::query(
            "update automations set scopes = $2, scope_folder_id = $3, resource_ids = $4 where id = $1",
        )
        .bind(self.account.automation)
        .bind(scopes)
        .bind(folder)
        .bind(Value::Object(ids))
        .execute(&self.database.db)
        .await
        .unwrap();
    }

    /// A claimed run of an http trigger.
    pub(super) async fn run(&self) -> RunContext {
        self.run_of("http", 0).await
    }

    /// A claimed run of this trigger and depth.
    pub(super) async fn run_of(&self, trigger_type: &'static str, depth: i16) -> RunContext {
        let id = new_id();
        let run = NewRun {
            id,
            automation_id: self.account.automation,
            definition_hash: b"hash".to_vec(),
            trigger_type,
            trigger: json!({}),
            is_test: trigger_type == "test",
            depth,
            concurrency: None,
            submission_id: None,
            source_submission_id: None,
            fire_at: None,
            traceparent: None,
        };
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let inserted =
            insert_runs(&mut tx, self.account.id, now(), -1, OverLimit::Skip, &[run]).await.unwrap();
        assert_eq!(inserted, [InsertedRun::Queued]);
        store::commit(tx).await.unwrap();
        self.context(self.claim(id).await, depth)
    }

    /// Claims a due run, as a worker does.
    pub(super) async fn claim(&self, run_id: Uuid) -> Claim {
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let limits = [RunLimit { account_id: self.account.id, limit: 1_000 }];
        let (now, until) = (now() + TimeDelta::seconds(1), now() + TimeDelta::seconds(30));
        let claimed = claim_runs(&mut tx, now, until, Rng::system().uuid_v7(now), &limits).await.unwrap();
        store::commit(tx).await.unwrap();
        claimed.into_iter().map(|run| run.claim).find(|claim| claim.run_id == run_id).unwrap()
    }

    pub(super) fn context(&self, claim: Claim, depth: i16) -> RunContext {
        RunContext {
            state: self.state.clone(),
            claim,
            account_id: self.account.id,
            plan: Plan::Free,
            automation_id: self.account.automation,
            depth,
            is_test: false,
            traceparent: None,
            masking: Masking::default(),
            link_masking: LinkMasking::default(),
            signals: self.sender.clone(),
        }
    }

    /// Performs an effect in a run of its own.
    pub(super) async fn perform(&self, effect: Effect) -> Result<Value, EffectError> {
        let context = self.run().await;
        effects::perform(&context, call(effect)).await
    }

    /// As [`Self::perform`], and returns the failure.
    pub(super) async fn failure(&self, effect: Effect) -> Failure {
        failure(self.perform(effect).await)
    }

    /// Returns the signals since the last call.
    pub(super) async fn signals(&self) -> Vec<Signal> {
        let mut signals = self.signals.lock().await;
        std::iter::from_fn(|| signals.try_recv().ok()).collect()
    }

    /// A page with an entry template.
    pub(super) async fn page(&self, account: Account, slug: &str) -> Uuid {
        let page = NewPage {
            id: new_id(),
            folder_id: None,
            subdomain_id: account.site,
            slug: slug.to_owned(),
            content: domain::pages::Content {
                title: "T".to_owned(),
                html: "<!-- service:entries -->".to_owned(),
                css: None,
                entry_template: Some("<p>{{name}}</p>".to_owned()),
                metadata: json!({}),
            },
            publication: domain::pages::Publication::NEW,
            deploy_id: None,
            created_at: now() - TimeDelta::hours(1),
        };
        let mut tx = store::begin(&self.database.db).await.unwrap();
        assert!(store::pages::insert_page(&mut tx, account.id, &page).await.unwrap());
        store::commit(tx).await.unwrap();
        page.id
    }

    /// A form with a required `email` and a number `n`, after `change`.
    pub(super) async fn form(&self, account: Account, change: impl FnOnce(&mut Form)) -> Uuid {
        let fields = json!([
            {"name": "email", "label": "E-mail", "type": "email", "required": true},
            {"name": "n", "label": "Number", "type": "number"},
        ]);
        let fields = serde_json::from_value(fields).unwrap();
        let mut form = Form::new(new_id(), "Contact".to_owned(), fields, now());
        change(&mut form);
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::forms::insert_form(&mut conn, account.id, &form).await.unwrap();
        form.id
    }

    /// A webhook for all forms.
    pub(super) async fn webhook(&self, account: Account) -> Uuid {
        let webhook = store::webhooks::NewWebhook {
            id: new_id(),
            sealed_url: vec![1],
            events: Vec::new(),
            description: None,
            field_mapping: None,
            form_ids: None,
            sealed_secret: vec![1],
            template: "default",
            telegram_chat_id: None,
            created_at: now(),
        };
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::webhooks::insert_webhook(&mut conn, account.id, &webhook).await.unwrap();
        webhook.id
    }

    pub(super) async fn folder(&self, account: Account) -> Uuid {
        let id = new_id();
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::folders::insert_folder(&mut conn, account.id, id, "F", None, now()).await.unwrap();
        id
    }

    /// Returns the result of a query for one number.
    pub(super) async fn number(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&self.database.db).await.unwrap()
    }

    /// Returns the result of a query for one JSON value.
    pub(super) async fn json(&self, query: &'static str) -> Value {
        sqlx::query_scalar(query).fetch_one(&self.database.db).await.unwrap()
    }

    /// Runs raw SQL.
    pub(super) async fn change(&self, statement: &str) {
        store::execute_raw(&self.database.db, statement).await.unwrap();
    }
}

trait Full {
    fn full() -> Self;
}

impl Full for Authority {
    fn full() -> Self {
        Self { scopes: ScopeSet::FULL, restrictions: Restrictions::default() }
    }
}

async fn new_account(database: &TestDatabase, authority: Authority) -> Account {
    let account = Account { id: new_id(), automation: new_id(), site: new_id() };
    sandbox::test::trial(database, account.id, now()).await;
    let mut tx = store::begin(&database.db).await.unwrap();
    let name = format!("site-{}", &account.site.simple().to_string()[20..]);
    store::subdomains::insert_subdomain(&mut tx, account.id, account.site, &name, now()).await.unwrap();
    let automation = NewAutomation {
        id: account.automation,
        folder_id: None,
        slug: "test",
        name: "Test",
        description: None,
        is_enabled: true,
        definition: "{}",
        definition_hash: b"hash",
        env_names: &[],
        sealed_env: None,
        authority: &authority,
        trigger_type: "http",
        trigger_form_id: None,
        next_fire_at: None,
        created_at: now(),
    };
    insert_automation(&mut tx, account.id, &automation).await.unwrap();
    store::commit(tx).await.unwrap();
    account
}

/// The first attempt of an effect at the path `step`.
pub(super) fn call(effect: Effect) -> EffectCall {
    call_at("step", effect)
}

pub(super) fn call_at(path: &str, effect: Effect) -> EffectCall {
    let kind = match &effect {
        Effect::Fetch { .. } => StepType::Fetch,
        Effect::Respond { .. } => StepType::Respond,
        Effect::CreateEntry { .. } => StepType::CreateEntry,
        Effect::DeleteEntry { .. } => StepType::DeleteEntry,
        Effect::UpdatePage(_) => StepType::UpdatePage,
        Effect::Find { .. } => StepType::Find,
        Effect::CreateSubmission { .. } => StepType::CreateSubmission,
        Effect::SendWebhook { .. } => StepType::SendWebhook,
    };
    EffectCall {
        path: path.to_owned(),
        step_id: "step".to_owned(),
        kind,
        position: 1,
        started_at: now(),
        attempt: 1,
        timeout: Duration::from_secs(15),
        effect,
    }
}

pub(super) fn create_entry(page_id: Uuid, data: Value) -> Effect {
    Effect::CreateEntry { page_id, data: object(data) }
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}

pub(super) fn failure(result: Result<Value, EffectError>) -> Failure {
    match result {
        Err(EffectError::Failed(failure)) => failure,
        other => panic!("not a failure: {other:?}"),
    }
}

pub(super) fn now() -> DateTime<Utc> {
    Clock::system().now()
}

pub(super) fn new_id() -> Uuid {
    Rng::system().uuid_v7(now())
}
