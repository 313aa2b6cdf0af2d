//! Settings and rows that the tests of several services need.

use chrono::{DateTime, TimeDelta, Utc};
use store::accounts::NewTrial;
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
