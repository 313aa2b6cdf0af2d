//! Restores an installation: Postgres, then ClickHouse, then the blobs; then checks, and the deletions that happened since.

mod preconditions;
mod purges;
mod request;
mod running_services;

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use store::backups::count_rows;
use store::backups::deletions::Deletion;
use tokio::process::Command;
use tokio::time::Instant;

pub use request::{Purged, RestoreRequest, Restored, Steps};

use super::deletions;
use super::folder::BackupFolder;
use super::installation::Installation;
use super::manifest::Manifest;
use super::parts::Part;
use super::parts::pgbackrest::{PgBackRest, Target};
use super::parts::{blob_pool, clickhouse};
use crate::audit::{LongChange, Operator};

const REDIS_TIMEOUT: Duration = Duration::from_secs(60);

/// Restores a backup. Returns `None` if the steps end before Postgres runs.
///
/// # Errors
/// Services run, a store is not empty, a key is missing, or a part can't be restored. It may be run again with `replace`.
pub async fn restore(
    installation: &Installation<'_>,
    operator: &Operator,
    request: &RestoreRequest,
) -> Result<Option<Restored>> {
    installation.config.check()?;
    let folder = BackupFolder::open(&installation.config.folder)?;
    let Sources { postgres, rest: manifest } = find_sources(&folder, request)?;
    preconditions::check_key_ids(installation, &postgres)?;
    running_services::check(installation).await?;
    if request.steps == Steps::Deletions {
        let noted = note_deletions(installation, &folder).await?;
        (installation.report)(&format!("{noted} deletions noted from the present database"));
        return Ok(None);
    }
    let has_postgres = !request.skip.contains(&Part::Postgres);
    let mut restored = Restored { backup: manifest.id.clone(), ..Restored::default() };
    if has_postgres && request.steps != Steps::AfterStart {
        check_clickhouse_is_empty(installation, request).await?;
        restore_postgres_files(installation, &folder, &postgres, request, &mut restored).await?;
        if request.steps == Steps::PostgresFiles {
            return Ok(None);
        }
        start_postgres(installation).await?;
    }
    let began = Instant::now();
    preconditions::wait_for_postgres(installation, request.wait).await?;
    running_services::check_clients(installation.db).await?;
    preconditions::check_restored(installation, &postgres).await?;
    restored.seconds.insert("postgres log", began.elapsed().as_secs_f64());
    let target = match request.target {
        Target::Latest => "latest".to_owned(),
        Target::Backup => postgres.id.clone(),
        Target::Time(at) => at.to_rfc3339(),
    };
    let detail = json!({ "backup": manifest.id, "to": target });
    let change = LongChange::begin(installation.db, operator, "restore", Some(&manifest.id), detail).await?;
    let done = restore_rest(installation, &folder, &manifest, request, restored).await;
    let detail =
        |done: &Restored| json!({ "purged": done.purged, "blobs": done.blobs, "rows": done.clickhouse_rows });
    change.end(installation.db, done, detail).await.map(Some)
}

/// The backups that a restore takes its parts from.
struct Sources {
    /// Of Postgres: the last one that ended before the point in time.
    postgres: Manifest,
    /// Of ClickHouse and blobs: the last one. Later events and bytes are harmless, and none is lost.
    rest: Manifest,
}

fn find_sources(folder: &BackupFolder, request: &RestoreRequest) -> Result<Sources> {
    let manifests = folder.manifests()?;
    let found = match &request.backup {
        Some(id) => manifests.iter().find(|manifest| manifest.id == *id),
        None => manifests.last(),
    };
    let rest = found.context("there is no such backup: `webruntime backup list` shows all")?.clone();
    let postgres = match request.target {
        Target::Time(at) => {
            let earlier = |manifest: &&Manifest| manifest.ended_at <= at && manifest.postgres.is_some();
            let found = manifests.iter().rev().find(earlier);
            found.with_context(|| format!("no backup ended before {at}"))?.clone()
        }
        Target::Latest | Target::Backup => rest.clone(),
    };
    Ok(Sources { postgres, rest })
}

/// Appends the deletions that the running Postgres knows to the list in the backup folder.
async fn note_deletions(installation: &Installation<'_>, folder: &BackupFolder) -> Result<usize> {
    let mut conn = store::acquire(installation.db).await?;
    let noted = deletions::export(&mut conn, &folder.deletions()).await;
    noted.context("noting the deletions of the present database, which a restore would forget")
}

async fn restore_postgres_files(
    installation: &Installation<'_>,
    folder: &BackupFolder,
    manifest: &Manifest,
    request: &RestoreRequest,
    restored: &mut Restored,
) -> Result<()> {
    let part = manifest.postgres.as_ref().with_context(|| {
        format!(
            "the backup {} lacks Postgres: `--skip postgres` if it was restored by other means",
            manifest.id
        )
    })?;
    // The last chance to learn of deletions after the point in time: the present data is about to be overwritten.
    if store::try_connect(installation.db).await.is_ok() {
        let noted = note_deletions(installation, folder).await?;
        bail!("Postgres is running ({noted} deletions were noted from it): stop it now, then run this again");
    }
    let began = Instant::now();
    (installation.report)("postgres: files …");
    PgBackRest::new(installation.config).restore(&part.label, request.target, request.replace).await?;
    restored.seconds.insert("postgres files", began.elapsed().as_secs_f64());
    Ok(())
}

async fn start_postgres(installation: &Installation<'_>) -> Result<()> {
    let Some((program, arguments)) = installation.config.start_postgres.split_first() else {
        (installation.report)("start Postgres now: backup.start_postgres is not set");
        return Ok(());
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let status =
        command.status().await.with_context(|| format!("running backup.start_postgres, `{program}`"))?;
    ensure!(status.success(), "backup.start_postgres, `{program}`: {status}");
    Ok(())
}

/// Restores the rest after Postgres accepts writes.
async fn restore_rest(
    installation: &Installation<'_>,
    folder: &BackupFolder,
    manifest: &Manifest,
    request: &RestoreRequest,
    mut restored: Restored,
) -> Result<Restored> {
    let wanted = |part: Part| !request.skip.contains(&part);
    if wanted(Part::ClickHouse) {
        let began = Instant::now();
        let part = manifest.clickhouse.as_ref();
        let part = part
            .with_context(|| format!("the backup {} lacks ClickHouse: `--skip clickhouse`", manifest.id))?;
        check_clickhouse_is_empty(installation, request).await?;
        (installation.report)("clickhouse: RESTORE …");
        clickhouse::restore(installation, part).await?;
        restored.seconds.insert("clickhouse", began.elapsed().as_secs_f64());
    }
    // Before the blobs: those of deleted accounts are not copied.
    let began = Instant::now();
    let known: BTreeSet<Deletion> = all_deletions(folder, request)?;
    restored.purged = purges::repeat(installation, &known.into_iter().collect::<Vec<_>>()).await?;
    restored.purged.unknown_sites = purges::delete_unknown_sites(installation, installation.db).await?;
    restored.seconds.insert("purges", began.elapsed().as_secs_f64());
    if wanted(Part::Blobs) {
        let began = Instant::now();
        (installation.report)("blobs: copying those that are missing …");
        restored.blobs = Some(blob_pool::restore(installation, folder).await?);
        restored.seconds.insert("blobs", began.elapsed().as_secs_f64());
    }
    restored.redis_keys = clear_redis(installation).await;
    restored.clickhouse_rows = installation.warehouse.count_rows().await?;
    let mut conn = store::acquire(installation.db).await?;
    let then = manifest.postgres.as_ref().map(|part| part.rows.clone()).unwrap_or_default();
    let rows = count_rows(&mut conn).await?.into_iter();
    restored.rows = rows
        .map(|(table, rows)| (table.clone(), (rows, then.get(&table).copied().unwrap_or(rows))))
        .collect();
    Ok(restored)
}

fn all_deletions(folder: &BackupFolder, request: &RestoreRequest) -> Result<BTreeSet<Deletion>> {
    let mut known: BTreeSet<Deletion> = deletions::read(&folder.deletions())?.into_iter().collect();
    if let Some(path) = &request.deletions {
        ensure!(path.exists(), "--deletions {} does not exist", path.display());
        known.extend(deletions::read(path)?);
    }
    Ok(known)
}

async fn check_clickhouse_is_empty(installation: &Installation<'_>, request: &RestoreRequest) -> Result<()> {
    if request.replace || request.skip.contains(&Part::ClickHouse) {
        return Ok(());
    }
    let rows: u64 = installation.warehouse.count_rows().await.context("asking ClickHouse")?.values().sum();
    if rows > 0 {
        bail!("ClickHouse has {rows} rows; `--replace` deletes them, `--skip clickhouse` keeps them");
    }
    Ok(())
}

/// Deletes the queue and the counters of the replaced state; the copies of salts stay, because the restored tables of salts are
/// empty. Redis is never the truth, so a failure is no error.
async fn clear_redis(installation: &Installation<'_>) -> u64 {
    let cleared = async {
        let server = redis_connection::Primary::new(installation.redis)?;
        let prefix = &installation.redis.prefix;
        redis_connection::delete_keys(&server, prefix, &format!("{prefix}:salt:"), REDIS_TIMEOUT).await
    };
    cleared.await.unwrap_or_else(|error| {
        (installation.report)(&format!("Redis was not cleared: {error}"));
        0
    })
}
