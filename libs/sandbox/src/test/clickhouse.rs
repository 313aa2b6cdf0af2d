//! A ClickHouse database per test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;

use super::backends::{announcement, must};
use super::program;
use crate::clickhouse::{ClickHouse, Options};
use crate::progress::Progress;
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

/// A ClickHouse for one test, which may write backups.
#[derive(Debug)]
pub struct BackedUpClickHouse {
    pub database: TestClickHouse,
    _server: ClickHouse,
}

/// Starts a ClickHouse that writes its backups into `folder`, with a migrated database.
pub async fn clickhouse_with_backups(folder: &Path) -> BackedUpClickHouse {
    let program = must(tokio::task::spawn_blocking(program::sandbox).await.map_err(Into::into).flatten());
    let options = Options {
        backups: Some(folder.to_owned()),
        ..Options::temporary(vec![program.into(), "clickhouse-http".into()])
    };
    let server = must(ClickHouse::start(options, &Progress::silent()).await);
    let database = TestClickHouse {
        url: server.url(),
        database: "webruntime".to_owned(),
        user: server.user().to_owned(),
        password: server.password().to_owned(),
    };
    must(database.connect().migrate().await.context("migrating the test's database"));
    BackedUpClickHouse { database, _server: server }
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
