//! A ClickHouse database per test.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;

use super::backends::{announced, must};
use crate::supervisor::Backend;

static COUNT: AtomicU32 = AtomicU32::new(1);

/// A database in a ClickHouse shared with the other tests of this process, migrated and empty.
#[derive(Debug, Clone)]
pub struct TestClickHouse {
    /// `http://…`
    pub url: String,
    /// This test's database.
    pub database: String,
    /// An account that may do everything.
    pub user: String,
    /// Its password.
    pub password: String,
}

/// A database of this test's own.
pub async fn clickhouse() -> TestClickHouse {
    let held = announced(Backend::Clickhouse).await;
    let clickhouse = TestClickHouse {
        url: held.url,
        database: format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed)),
        user: held.user.unwrap_or_default(),
        password: held.password.unwrap_or_default(),
    };
    let warehouse = warehouse::connect(&warehouse::Config {
        url: clickhouse.url.clone(),
        database: clickhouse.database.clone(),
        user: clickhouse.user.clone(),
        password: clickhouse.password.clone(),
        cluster: String::new(),
    });
    must(warehouse.migrate().await.context("migrating the test's database"));
    clickhouse
}
