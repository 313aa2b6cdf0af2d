//! Settings and rows that the tests of several services need.

use chrono::{DateTime, TimeDelta, Utc};
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use serde_json::json;
use store::accounts::NewTrial;
use store::automations::{Authority, NewAutomation, NewRun, SaveOutcome, insert_automation};
use uuid::Uuid;

use super::backends::must;
use super::{TestClickHouse, TestDatabase, TestFolder, TestRedis};
use crate::secret;

/// A store of a test.
pub trait TestStore {
    /// Returns the settings, `section.key=value`, that make a service use the store.
    fn settings(&self) -> Vec<String>;
}

impl TestStore for TestDatabase {
    fn settings(&self) -> Vec<String> {
        vec![format!("store.url={}", self.url)]
    }
}

impl TestStore for TestRedis {
    fn settings(&self) -> Vec<String> {
        vec![format!("redis.url={}", self.url), format!("redis.prefix={}", self.prefix)]
    }
}

impl TestStore for TestClickHouse {
    fn settings(&self) -> Vec<String> {
        vec![
            format!("warehouse.url={}", self.url),
            format!("warehouse.database={}", self.database),
            format!("warehouse.user={}", self.user),
            format!("warehouse.password={}", self.password),
        ]
    }
}

impl TestStore for TestFolder {
    fn settings(&self) -> Vec<String> {
        vec![format!("blobs.url={}", self.path().display())]
    }
}

/// Returns the settings that make a service use these stores.
#[must_use]
pub fn settings_for(stores: &[&dyn TestStore]) -> Vec<String> {
    stores.iter().flat_map(|store| store.settings()).collect()
}

/// Inserts a trial account that can be claimed for a day.
pub async fn trial(database: &TestDatabase, id: Uuid, created_at: DateTime<Utc>) {
    let claim_deadline = created_at + TimeDelta::days(1);
    let trial = NewTrial { id, claim_token_hash: secret::random(), claim_deadline, created_at };
    let insert = async {
        let mut conn = store::acquire(&database.db).await?;
        store::accounts::insert_trial(&mut conn, &trial).await
    };
    must(insert.await.map_err(Into::into));
}

/// Inserts an automation with an empty definition. Submissions of `form_id` start it, or requests if that is `None`.
pub async fn automation(
    database: &TestDatabase,
    account_id: Uuid,
    id: Uuid,
    form_id: Option<Uuid>,
    created_at: DateTime<Utc>,
) {
    let new = NewAutomation {
        id,
        folder_id: None,
        slug: &id.simple().to_string(),
        name: "Leads",
        description: None,
        is_enabled: true,
        definition: "{}",
        definition_hash: b"1",
        env_names: &[],
        sealed_env: None,
        authority: &Authority { scopes: ScopeSet::FULL, restrictions: Restrictions::default() },
        trigger_type: if form_id.is_some() { "form_submission" } else { "http" },
        trigger_form_id: form_id,
        next_fire_at: None,
        created_at,
    };
    let insert = async {
        let mut conn = store::acquire(&database.db).await?;
        insert_automation(&mut conn, account_id, &new).await
    };
    assert_eq!(must(insert.await.map_err(Into::into)), SaveOutcome::Stored);
}

/// Returns a run of an automation that [`automation`] inserted.
#[must_use]
pub fn run_of(automation_id: Uuid, id: Uuid) -> NewRun {
    NewRun {
        id,
        automation_id,
        definition_hash: b"1".to_vec(),
        trigger_type: "http",
        trigger: json!({}),
        is_test: false,
        depth: 0,
        concurrency: None,
        submission_id: None,
        source_submission_id: None,
        fire_at: None,
        traceparent: None,
    }
}
