//! A job-runner of a test's own, and an account whose deliveries it makes.

use chrono::{DateTime, Utc};
use domain::encryption::MasterKey;
use domain::webhooks;
use job_runner::{Config, DEFAULTS};
use sandbox::test::{TestClickHouse, TestDatabase, TestFolder, TestRedis, eventually};
use serde_json::{Value, json};
use service::config::{Sources, load};
use service::{Clock, Listeners, Rng, Shutdown};
use store::deliveries::{
    Attempt, ClaimLimit, Delivery, DeliveryFilter, Event, Lease, insert_deliveries, list_due, lock_listeners,
};
use store::webhooks::{NewWebhook, Webhook};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The receivers' signing secret.
pub(crate) const SECRET: &str = "whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
const MASTER_KEY: u8 = 0xab;

/// An account with stores of its own; nothing runs yet.
pub(crate) struct Account {
    pub(crate) database: TestDatabase,
    pub(crate) redis: TestRedis,
    /// Where bytes of users are.
    pub(crate) blobs: TestFolder,
    pub(crate) id: Uuid,
}

/// A job-runner that runs until it is dropped or stopped.
pub(crate) struct Running {
    shutdown: Shutdown,
    ended: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    /// Asks it to stop and waits until it has.
    pub(crate) async fn stop(mut self) {
        self.shutdown.request();
        (&mut self.ended).await.unwrap().unwrap();
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        (&mut self.ended).await.unwrap()
    }

    pub(crate) fn ask_to_stop(&self) {
        self.shutdown.request();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

impl Account {
    pub(crate) async fn new() -> Self {
        let database = sandbox::test::database().await;
        let redis = sandbox::test::redis().await;
        let id = new_id();
        sandbox::test::trial(&database, id, now()).await;
        Self { database, redis, blobs: sandbox::test::folder(), id }
    }

    /// A job-runner in a hurry, which may call this machine, with these settings beside.
    pub(crate) async fn run(&self, set: &[&str]) -> Running {
        let mut settings = sandbox::test::settings_for(&[&self.database, &self.redis, &self.blobs]);
        settings.extend([
            "garbage_collection.poll_interval=20ms".to_owned(),
            "store.max_connections=10".to_owned(),
            format!("secrets.master_key={}", format!("{MASTER_KEY:02x}").repeat(32)),
            "outbox.poll_interval=20ms".to_owned(),
            "webhooks.poll_interval=20ms".to_owned(),
            "outbound.allow=[\"127.0.0.0/8\"]".to_owned(),
        ]);
        settings.extend(set.iter().map(ToString::to_string));
        let config: Config = load(DEFAULTS, &Sources { set: settings, ..Sources::default() }).unwrap().config;
        let (shutdown, listeners) = (Shutdown::new(), Listeners::on_free_ports().unwrap());
        let ended = tokio::spawn(job_runner::run(config, listeners, shutdown.clone()));
        Running { shutdown, ended }
    }

    pub(crate) async fn webhook(&self, url: &str, field_mapping: Option<Value>) -> Uuid {
        self.webhook_with(url, |webhook| webhook.field_mapping = field_mapping).await
    }

    /// A webhook of all forms, but for what is changed of it.
    pub(crate) async fn webhook_with(&self, url: &str, change: impl FnOnce(&mut NewWebhook)) -> Uuid {
        let mut webhook = NewWebhook {
            id: new_id(),
            sealed_url: seal(webhooks::URL_PURPOSE, url),
            events: Vec::new(),
            description: None,
            field_mapping: None,
            form_ids: None,
            sealed_secret: seal(webhooks::SECRET_PURPOSE, SECRET),
            template: "default",
            telegram_chat_id: None,
            created_at: now(),
        };
        change(&mut webhook);
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::webhooks::insert_webhook(&mut conn, self.id, &webhook).await.unwrap();
        webhook.id
    }

    /// A webhook as its owner sees it.
    pub(crate) async fn read_webhook(&self, id: Uuid) -> Webhook {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        store::webhooks::find_webhook(&mut conn, self.id, id).await.unwrap().unwrap()
    }

    /// One due delivery for each webhook of the account.
    pub(crate) async fn submission(&self) {
        let payload = json!({"type": "submission.created", "data": {"fields": {"email": "a@b.co", "n": 1}}});
        let event = Event {
            name: "submission.created",
            form_id: new_id(),
            submission_id: None,
            payload: &payload,
            traceparent: None,
            at: now(),
        };
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let told = lock_listeners(&mut tx, self.id, event.form_id, event.name).await.unwrap();
        insert_deliveries(&mut tx, self.id, &event, &told, new_id).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// The deliveries of a webhook, newest first.
    pub(crate) async fn deliveries(&self, webhook: Uuid) -> Vec<Delivery> {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let wanted = DeliveryFilter { id: None, state: None, after: None, limit: 100 };
        store::deliveries::list_deliveries(&mut conn, self.id, webhook, &wanted).await.unwrap()
    }

    /// The webhook's one delivery, once it is as wanted.
    pub(crate) async fn delivery_when(&self, webhook: Uuid, wanted: impl Fn(&Delivery) -> bool) -> Delivery {
        eventually(async || self.deliveries(webhook).await.pop().filter(&wanted)).await
    }

    /// Begins attempts of what is due, as a worker would.
    pub(crate) async fn claim(&self, lease: &Lease) -> Vec<Attempt> {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let due = list_due(&mut conn, lease.now).await.unwrap();
        let rooms: Vec<_> =
            due.into_iter().map(|webhook_id| ClaimLimit { webhook_id, limit: 1_000 }).collect();
        store::deliveries::claim(&mut conn, lease, &rooms).await.unwrap()
    }

    /// How many deliveries wait or are under way.
    pub(crate) async fn pending(&self) -> i64 {
        self.number("select count(*) from deliveries where state = 'pending'").await
    }

    /// How many attempts have ended.
    pub(crate) async fn attempts_ended(&self) -> i64 {
        self.number("select count(*) from delivery_attempts").await
    }

    async fn number(&self, question: &'static str) -> i64 {
        sqlx::query_scalar(question).fetch_one(&self.database.db).await.unwrap()
    }

    /// Runs a statement that no function of the store is for yet.
    pub(crate) async fn change(&self, statement: &str) {
        store::execute_raw(&self.database.db, statement).await.unwrap();
    }
}

/// `text` as the stores keep it.
pub(crate) fn seal(purpose: &str, text: &str) -> Vec<u8> {
    let key = MasterKey::from_hex(&format!("{MASTER_KEY:02x}").repeat(32)).unwrap();
    key.seal(purpose, Rng::system().bytes(), text.as_bytes())
}

/// What a job-runner must be told to find this ClickHouse.
pub(crate) fn of_clickhouse(clickhouse: &TestClickHouse) -> [String; 4] {
    let TestClickHouse { url, database, user, password } = clickhouse;
    [
        format!("warehouse.url={url}"),
        format!("warehouse.database={database}"),
        format!("warehouse.user={user}"),
        format!("warehouse.password={password}"),
    ]
}

/// A claim of now.
pub(crate) fn lease(until: DateTime<Utc>) -> Lease {
    Lease { now: now(), until }
}

pub(crate) fn now() -> DateTime<Utc> {
    Clock::system().now()
}

pub(crate) fn new_id() -> Uuid {
    Rng::system().uuid_v7(now())
}
