//! The three stores: private ones in the data directory, or those of the user's settings.

use std::ffi::OsString;

use anyhow::{Context, Result};
use sandbox::clickhouse::ClickHouse;
use sandbox::postgres::Postgres;
use sandbox::programs::Source;
use sandbox::redis::Redis;
use sandbox::{Data, clickhouse, postgres, redis};

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

/// The stores started by this process. Dropping them stops them.
#[derive(Debug)]
pub(crate) struct Backends {
    pub(crate) urls: Urls,
    postgres: Option<Postgres>,
    redis: Option<Redis>,
    clickhouse: Option<ClickHouse>,
}

impl Backends {
    /// Starts the stores without a URL in the user's settings, concurrently, and migrates the schemas.
    pub(crate) async fn start(
        folder: &Folder,
        user_settings: &UserSettings,
        progress: &Progress,
    ) -> Result<Self> {
        let (postgres, redis, clickhouse) = tokio::try_join!(
            start_postgres(folder, user_settings, progress),
            start_redis(folder, user_settings, progress),
            start_clickhouse(folder, user_settings, progress),
        )?;
        let named = |key: &str| user_settings.get(key).unwrap_or_default().to_owned();
        let or_named = |url: Option<String>, key: &str| url.unwrap_or_else(|| named(key));
        let urls = Urls {
            postgres: or_named(postgres.as_ref().map(Postgres::url), "store.url"),
            redis: or_named(redis.as_ref().map(Redis::url), "redis.url"),
            clickhouse: or_named(clickhouse.as_ref().map(ClickHouse::url), "warehouse.url"),
            clickhouse_user: clickhouse.as_ref().map_or("default", ClickHouse::user).to_owned(),
            clickhouse_password: or_named(
                clickhouse.as_ref().map(|one| one.password().to_owned()),
                "warehouse.password",
            ),
        };
        let started = Self { urls, postgres, redis, clickhouse };
        progress.step("migrating the schemas");
        started.migrate(user_settings).await?;
        Ok(started)
    }

    async fn migrate(&self, user_settings: &UserSettings) -> Result<()> {
        let db = store::connect(&store::Config { url: self.urls.postgres.clone(), max_connections: 2 })?;
        store::migrate(&db).await.context("migrating Postgres")?;
        let warehouse = warehouse::connect(&warehouse::Config {
            url: self.urls.clickhouse.clone(),
            database: user_settings.get("warehouse.database").unwrap_or("webruntime").to_owned(),
            user: user_settings.get("warehouse.user").unwrap_or(&self.urls.clickhouse_user).to_owned(),
            password: self.urls.clickhouse_password.clone(),
            cluster: user_settings.get("warehouse.cluster").unwrap_or_default().to_owned(),
        });
        warehouse.migrate().await.context("migrating ClickHouse")
    }

    /// Stops the started stores.
    pub(crate) async fn stop(self) -> Result<()> {
        if let Some(redis) = self.redis {
            redis.stop().await?;
        }
        if let Some(clickhouse) = self.clickhouse {
            clickhouse.stop().await?;
        }
        if let Some(postgres) = self.postgres {
            postgres.stop().await?;
        }
        Ok(())
    }
}

async fn start_postgres(
    folder: &Folder,
    user_settings: &UserSettings,
    progress: &Progress,
) -> Result<Option<Postgres>> {
    if user_settings.get("store.url").is_some() {
        return Ok(None);
    }
    let options = postgres::Options {
        data: Data::Persistent(folder.part("postgres")),
        port: 0,
        max_connections: 200,
        log: Some(folder.logs()?.join("postgres.log")),
        source: Source::Any,
    };
    Ok(Some(Postgres::start(options, &progress.for_sandbox()).await?))
}

async fn start_redis(
    folder: &Folder,
    user_settings: &UserSettings,
    progress: &Progress,
) -> Result<Option<Redis>> {
    if user_settings.get("redis.url").is_some() {
        return Ok(None);
    }
    let options = redis::Options {
        data: Data::Persistent(folder.part("redis")),
        port: 0,
        log: Some(folder.logs()?.join("redis.log")),
        source: Source::Any,
    };
    Ok(Some(Redis::start(options, &progress.for_sandbox()).await?))
}

async fn start_clickhouse(
    folder: &Folder,
    user_settings: &UserSettings,
    progress: &Progress,
) -> Result<Option<ClickHouse>> {
    if user_settings.get("warehouse.url").is_some() {
        return Ok(None);
    }
    let http_command: Vec<OsString> = vec![std::env::current_exe()?.into(), "clickhouse-http".into()];
    let options = clickhouse::Options {
        data: Data::Persistent(folder.part("clickhouse")),
        port: 0,
        log: Some(folder.logs()?.join("clickhouse.log")),
        source: Source::Any,
        http_command,
        max_concurrent: 4,
        // Merges and recomputations may be delayed; visitors' requests must not be.
        niceness: 5,
    };
    Ok(Some(ClickHouse::start(options, &progress.for_sandbox()).await?))
}
