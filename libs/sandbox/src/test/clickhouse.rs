//! A ClickHouse database per test.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;

use super::backends::{announcement, must};
use crate::supervisor::Backend;

static COUNT: AtomicU32 = AtomicU32::new(1);

/// A migrated, empty database in the ClickHouse that all tests of this process share.
#[derive(Debug, Clone)]
pub struct TestClickHouse {
    pub url: String,
    pub database: String,
    /// A user with all privileges.
    pub user: String,
    pub password: String,
}

impl TestClickHouse {
    /// Returns the settings of a connection to it.
    pub fn config(&self) -> warehouse::Config {
        warehouse::Config {
            url: self.url.clone(),
            database: self.database.clone(),
            user: self.user.clone(),
            password: self.password.clone(),
            ca_file: PathBuf::new(),
            cluster: String::new(),
        }
    }

    /// Returns a connection to it.
    pub fn connect(&self) -> warehouse::Warehouse {
        must(warehouse::connect(&self.config()).context("the settings of the test's ClickHouse"))
    }
}

/// Returns a database for this test.
pub async fn clickhouse() -> TestClickHouse {
    let announced = announcement(Backend::Clickhouse).await;
    let clickhouse = TestClickHouse {
        url: announced.url,
        database: format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed)),
        user: announced.user.unwrap_or_default(),
        password: announced.password.unwrap_or_default(),
    };
    must(clickhouse.connect().migrate().await.context("migrating the test's database"));
    clickhouse
}
