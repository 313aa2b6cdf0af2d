//! Makes a backup: Postgres first, then ClickHouse, then the blobs. So ClickHouse and the blobs have at least what the backup of
//! Postgres names; more is harmless.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use domain::encryption::MasterKey;
use domain::peppers::Peppers;
use serde_json::json;
use store::backups::count_rows;
use store::backups::deletions::delete_deletions_before;
use tokio::time::Instant;

use super::folder::BackupFolder;
use super::installation::Installation;
use super::manifest::{FORMAT, KEY_DIGEST_PURPOSE, KeyIds, Manifest, PostgresPart, megabytes};
use super::parts::Part;
use super::parts::pgbackrest::PgBackRest;
use super::parts::{blob_pool, clickhouse};
use super::secrets_apart::{self, Search};
use super::{deletions, expire, metrics_file};
use crate::audit::{LongChange, Operator};

/// What to back up.
#[derive(Debug, Clone, Default)]
pub struct BackupRequest {
    /// Make a full backup although an incremental one is possible.
    pub full: bool,
    /// Parts that are backed up by other means.
    pub skip: BTreeSet<Part>,
}

/// Makes a backup, lets old ones expire and writes the metrics. Returns its manifest.
///
/// # Errors
/// A part can't be backed up, a secret is in the folder, or the folder is in use. What was written so far is deleted by the next
/// backup.
pub async fn create(
    installation: &Installation<'_>,
    operator: &Operator,
    request: &BackupRequest,
) -> Result<Manifest> {
    installation.config.check()?;
    let folder = BackupFolder::open(&installation.config.folder)?;
    secrets_apart::check(folder.path(), &installation.secrets, Search::WithoutBlobs)?;
    delete_incomplete(installation, &folder)?;
    let schema = current_schema(installation).await?;
    let started_at = installation.clock.now();
    let id = started_at.format("%Y%m%dT%H%M%SZ").to_string();
    let manifests = folder.manifests()?;
    let base =
        if request.full { None } else { find_base(installation, &manifests, request, started_at, schema) };
    let kind = if base.is_some() { "incremental" } else { "full" };
    (installation.report)(&format!("{kind} backup {id}"));
    folder.create(&id)?;
    let detail = json!({ "kind": kind });
    let change = LongChange::begin(installation.db, operator, "backup", Some(&id), detail).await?;
    let made = make(installation, &folder, (&id, started_at, schema), base, request).await;
    let ended = |made: &Manifest| json!({ "kind": kind, "bytes": bytes_by_part(made) });
    let manifest = change.end(installation.db, made, ended).await?;
    let oldest = expire::delete_old(installation, &folder).await?;
    if let Some(oldest) = oldest {
        let mut conn = store::acquire(installation.db).await?;
        delete_deletions_before(&mut conn, oldest).await?;
    }
    metrics_file::write(&installation.config.metrics_folder, &folder.manifests()?)?;
    Ok(manifest)
}

fn bytes_by_part(manifest: &Manifest) -> serde_json::Value {
    let parts = Part::ALL.into_iter();
    parts
        .filter_map(|part| Some((part.as_str().to_owned(), manifest.bytes_of(part)?.into())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Returns the newest migration of Postgres, which must be that of this program.
async fn current_schema(installation: &Installation<'_>) -> Result<i64> {
    let mut conn = store::acquire(installation.db).await.context("connecting to Postgres")?;
    let state = store::list_migrations(&mut conn).await?;
    if !state.pending.is_empty() || !state.unknown.is_empty() {
        bail!(
            "the schema of Postgres is not that of this program: back up with the webruntime of the installed release"
        );
    }
    state.applied.last().copied().context("Postgres has no schema: run `webruntime migrate` first")
}

/// Returns the last backup if an incremental one can follow it.
fn find_base<'a>(
    installation: &Installation<'_>,
    manifests: &'a [Manifest],
    request: &BackupRequest,
    now: DateTime<Utc>,
    schema: i64,
) -> Option<&'a Manifest> {
    let last = manifests.last()?;
    let full = manifests.iter().find(|manifest| manifest.id == last.full)?;
    let max_age = TimeDelta::from_std(installation.config.full_interval).unwrap_or(TimeDelta::MAX);
    let has_all =
        Part::ALL.into_iter().all(|part| request.skip.contains(&part) || last.bytes_of(part).is_some());
    (now - full.started_at < max_age && has_all && last.schema == schema).then_some(last)
}

async fn make(
    installation: &Installation<'_>,
    folder: &BackupFolder,
    (id, started_at, schema): (&str, DateTime<Utc>, i64),
    base: Option<&Manifest>,
    request: &BackupRequest,
) -> Result<Manifest> {
    let wanted = |part: Part| !request.skip.contains(&part);
    let keys = key_ids(installation, id)?;
    let mut manifest = Manifest {
        format: FORMAT,
        id: id.to_owned(),
        full: base.map_or(id, |base| &base.full).to_owned(),
        base: base.map(|base| base.id.clone()),
        started_at,
        ended_at: started_at,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        schema,
        keys,
        postgres: None,
        clickhouse: None,
        blobs: None,
    };
    let report = |part: Part, bytes: u64, seconds: f64| {
        (installation.report)(&format!("{}: {} in {seconds:.1} s", part.as_str(), megabytes(bytes)));
    };
    if wanted(Part::Postgres) {
        (installation.report)("postgres: pgBackRest …");
        let part = back_up_postgres(installation, base.is_none()).await?;
        report(Part::Postgres, part.bytes, part.seconds);
        manifest.postgres = Some(part);
    }
    if wanted(Part::ClickHouse) {
        (installation.report)("clickhouse: BACKUP …");
        let part = clickhouse::back_up(installation, folder, id, base).await?;
        report(Part::ClickHouse, part.bytes, part.seconds);
        manifest.clickhouse = Some(part);
    }
    if wanted(Part::Blobs) {
        (installation.report)("blobs: copying those that are new …");
        let part = blob_pool::back_up(installation, folder, id).await?;
        report(Part::Blobs, part.copied_bytes, part.seconds);
        manifest.blobs = Some(part);
    }
    let mut conn = store::acquire(installation.db).await?;
    deletions::export(&mut conn, &folder.deletions()).await?;
    drop(conn);
    secrets_apart::check(folder.path(), &installation.secrets, Search::WithoutBlobs)?;
    manifest.ended_at = installation.clock.now();
    folder.complete(&manifest)?;
    Ok(manifest)
}

async fn back_up_postgres(installation: &Installation<'_>, full: bool) -> Result<PostgresPart> {
    let began = Instant::now();
    let backup = PgBackRest::new(installation.config).backup(full).await?;
    let mut conn = store::acquire(installation.db).await?;
    Ok(PostgresPart {
        label: backup.label,
        stop_lsn: backup.stop_lsn,
        bytes: backup.bytes,
        rows: count_rows(&mut conn).await?,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// Returns the ids of the configured keys. The settings are valid, or the backup is refused.
fn key_ids(installation: &Installation<'_>, id: &str) -> Result<KeyIds> {
    let master = MasterKey::parse(&installation.secrets.master_key)?;
    let pepper = Peppers::parse(&installation.secrets.key_pepper)?;
    Ok(KeyIds {
        master: master.ids().map(|id| id.to_string()).collect(),
        master_digest: hex::encode(master.digest(KEY_DIGEST_PURPOSE, &[id])),
        pepper: pepper.ids(),
    })
}

/// Deletes what backups left that were stopped before their end.
fn delete_incomplete(installation: &Installation<'_>, folder: &BackupFolder) -> Result<()> {
    for id in folder.incomplete()? {
        (installation.report)(&format!("deleting {id}, which was stopped before its end"));
        expire::delete(installation, folder, &id)?;
    }
    Ok(())
}
