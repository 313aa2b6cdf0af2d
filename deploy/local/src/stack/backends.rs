//! The three stores: private ones in the data directory, or those of the user's settings.

use anyhow::{Context, Result};
use futures::future::join_all;
use service::Shutdown;

use super::private_store::PrivateStore;
use super::supervise::{Shared, supervise_store};
use super::user_settings::UserSettings;
use crate::folder::Folder;
use crate::progress::Progress;

/// The stores' URLs and credentials.
#[derive(Debug, Clone)]
pub(crate) struct Urls {
    pub(crate) postgres: String,
    pub(crate) redis: String,
    pub(crate) clickhouse: String,
    pub(crate) clickhouse_user: String,
    pub(crate) clickhouse_password: String,
}

/// The stores of this run. Dropping them stops those that this process started.
#[derive(Debug)]
pub(crate) struct Backends {
    pub(crate) urls: Urls,
    private: Vec<PrivateStore>,
}

impl Backends {
    /// Starts the stores without a URL in the user's settings, concurrently, and migrates the schemas.
    pub(crate) async fn start(
        folder: &Folder,
        user_settings: &UserSettings,
        progress: &Progress,
    ) -> Result<Self> {
        let sandbox = progress.for_sandbox();
        let (postgres, redis, clickhouse) = tokio::try_join!(
            unless_named(user_settings, "store.url", PrivateStore::start_postgres(folder, &sandbox)),
            unless_named(user_settings, "redis.url", PrivateStore::start_redis(folder, &sandbox)),
            unless_named(user_settings, "warehouse.url", PrivateStore::start_clickhouse(folder, &sandbox)),
        )?;
        let named = |key: &str| user_settings.get(key).unwrap_or_default().to_owned();
        let mut urls = Urls {
            postgres: named("store.url"),
            redis: named("redis.url"),
            clickhouse: named("warehouse.url"),
            clickhouse_user: "default".to_owned(),
            clickhouse_password: named("warehouse.password"),
        };
        let private: Vec<PrivateStore> = [postgres, redis, clickhouse].into_iter().flatten().collect();
        for store in &private {
            match store {
                PrivateStore::Postgres(server, _) => urls.postgres = server.url(),
                PrivateStore::Redis(server, _) => urls.redis = server.url(),
                PrivateStore::ClickHouse(server, _) => {
                    urls.clickhouse = server.url();
                    server.user().clone_into(&mut urls.clickhouse_user);
                    server.password().clone_into(&mut urls.clickhouse_password);
                }
            }
        }
        let started = Self { urls, private };
        progress.step("migrating the schemas");
        started.migrate(user_settings).await?;
        Ok(started)
    }

    async fn migrate(&self, user_settings: &UserSettings) -> Result<()> {
        let db = store::connect(&store::Config::new(self.urls.postgres.clone(), 2))?;
        store::migrate(&db).await.context("migrating Postgres")?;
        let warehouse = warehouse::connect(&warehouse::Config {
            url: self.urls.clickhouse.clone(),
            database: user_settings.get("warehouse.database").unwrap_or("webruntime").to_owned(),
            user: user_settings.get("warehouse.user").unwrap_or(&self.urls.clickhouse_user).to_owned(),
            password: self.urls.clickhouse_password.clone(),
            ca_file: user_settings.get("warehouse.ca_file").unwrap_or_default().into(),
            cluster: user_settings.get("warehouse.cluster").unwrap_or_default().to_owned(),
        })?;
        warehouse.migrate().await.context("migrating ClickHouse")
    }

    /// Restarts the private stores when they exit, until `shutdown`, then stops them.
    pub(crate) async fn supervise(self, folder: &Folder, file: &Shared, shutdown: &Shutdown) -> Result<()> {
        let supervise = |store| supervise_store(store, folder, file, shutdown);
        join_all(self.private.into_iter().map(supervise)).await.into_iter().collect()
    }
}

/// Starts a store unless the user's settings name one.
async fn unless_named(
    user_settings: &UserSettings,
    key: &str,
    start: impl Future<Output = Result<PrivateStore>>,
) -> Result<Option<PrivateStore>> {
    if user_settings.get(key).is_some() { Ok(None) } else { start.await.map(Some) }
}
