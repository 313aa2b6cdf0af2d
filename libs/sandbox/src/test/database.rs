//! A Postgres database per test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use store::Config;
use tokio::sync::OnceCell;
use url::Url;

use super::backends::{announcement, must};
use crate::supervisor::Backend;

/// Connections of one test's pool. The server allows 300.
const CONNECTIONS: u32 = 10;
/// How long a test waits for one of them. On a busy machine opening one takes longer than a service waits.
const ACQUIRE_TIMEOUT: Duration = Duration::from_mins(1);
/// Copying a database takes long while many tests run.
const ADMIN_TIMEOUT: Duration = Duration::from_mins(10);
const TEMPLATE: &str = "template_migrated";

static MIGRATED: OnceCell<()> = OnceCell::const_new();
static COUNT: AtomicU32 = AtomicU32::new(1);

/// A migrated, empty database for one test. Dropping it deletes the database.
pub struct TestDatabase {
    /// The database's URL, with a user that has all privileges.
    pub url: String,
    /// A pool of connections to it.
    pub db: store::Db,
    name: String,
    server: String,
}

/// Returns a database for this test.
pub async fn database() -> TestDatabase {
    must(create().await)
}

async fn create() -> Result<TestDatabase> {
    let server = announcement(Backend::Postgres).await.url;
    MIGRATED.get_or_try_init(async || migrate_template(&server).await).await?;
    let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    administer(&server, &format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}")).await?;
    let url = url_of(&server, &name)?;
    let db = store::connect(&config(&url, CONNECTIONS))?;
    Ok(TestDatabase { url, db, name, server })
}

fn config(url: &str, max_connections: u32) -> Config {
    Config { acquire_timeout: ACQUIRE_TIMEOUT, ..Config::new(url, max_connections) }
}

async fn migrate_template(server: &str) -> Result<()> {
    administer(server, &format!("CREATE DATABASE {TEMPLATE}")).await?;
    let db = store::connect(&config(&url_of(server, TEMPLATE)?, 1))?;
    store::migrate(&db).await.context("migrating the template")?;
    // A template can be copied only while it has no connections.
    db.close().await;
    Ok(())
}

/// Runs a statement over a new connection: a pool belongs to the runtime, and so to the test, that created it.
async fn administer(server: &str, statement: &str) -> Result<()> {
    let db = store::connect(&Config { statement_timeout: ADMIN_TIMEOUT, ..config(server, 1) })?;
    let outcome = store::execute_raw(&db, statement).await;
    db.close().await;
    outcome.with_context(|| statement.to_owned())
}

fn url_of(server: &str, database: &str) -> Result<String> {
    let mut url = Url::parse(server)?;
    url.set_path(database);
    Ok(url.into())
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (std::mem::take(&mut self.server), std::mem::take(&mut self.name));
        // Runs on a runtime of its own, because the test's is about to end. The test doesn't wait for it: if the process
        // ends first, the whole server is deleted.
        let delete = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            runtime.block_on(administer(&server, &format!("DROP DATABASE {name} WITH (FORCE)"))).ok()
        };
        std::thread::spawn(delete);
    }
}
