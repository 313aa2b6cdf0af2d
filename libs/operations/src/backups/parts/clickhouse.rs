//! The part of ClickHouse: the server writes and reads the files itself, and this program waits for it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use service::ticks;
use tokio::time::Instant;
use warehouse::{BackupPlace, BackupState};

use super::super::file_list::{self, ListWriter};
use super::super::folder::BackupFolder;
use super::super::installation::Installation;
use super::super::manifest::{ClickHousePart, Manifest};

const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often a long step says that it goes on.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// The list of the files of a backup, in its folder.
pub(in super::super) const LIST: &str = "clickhouse.tsv";

/// Makes the part of a backup. `base` is the backup before it, of which it contains the changes alone.
pub(in super::super) async fn back_up(
    installation: &Installation<'_>,
    folder: &BackupFolder,
    id: &str,
    base: Option<&Manifest>,
) -> Result<ClickHousePart> {
    let began = Instant::now();
    let warehouse = installation.warehouse;
    let before = warehouse.count_rows().await.context("asking ClickHouse")?;
    ensure!(!before.is_empty(), "ClickHouse has no tables: run `webruntime migrate` first");
    let base = base.and_then(|base| base.clickhouse.as_ref()).map(|base| place(installation, &base.name));
    warehouse.begin_backup(id, &place(installation, id), base.as_ref()).await.with_context(|| {
        "ClickHouse refuses the backup: its configuration needs <backups><allowed_path>, or backup.clickhouse_disk must name a disk"
    })?;
    let bytes = wait(installation, id, "the backup of ClickHouse").await?;
    let after = warehouse.count_rows().await?;
    let rows = before.into_iter().map(|(table, before)| {
        let after = after.get(&table).copied().unwrap_or(before);
        (table, (before.min(after), before.max(after)))
    });
    let root = installation.config.clickhouse_folder().join(id);
    let list_sha256 = if root.is_dir() {
        let mut list = ListWriter::create(&folder.of(id).join(LIST))?;
        file_list::list_folder(&root)?.iter().try_for_each(|file| list.add(file))?;
        Some(list.finish()?)
    } else {
        None
    };
    let (rows, seconds) = (rows.collect(), began.elapsed().as_secs_f64());
    Ok(ClickHousePart { name: id.to_owned(), bytes, rows, list_sha256, seconds })
}

/// Replaces the database by that of a backup, and compares the numbers of rows.
pub(in super::super) async fn restore(installation: &Installation<'_>, part: &ClickHousePart) -> Result<()> {
    let warehouse = installation.warehouse;
    warehouse.drop_database().await?;
    let id = format!("restore-{}", hex::encode(installation.rng.bytes::<8>()));
    warehouse
        .begin_restore(&id, &place(installation, &part.name))
        .await
        .context("ClickHouse refuses the restore")?;
    wait(installation, &id, "the restore of ClickHouse").await?;
    let restored = warehouse.count_rows().await?;
    check_rows(part, &restored)
}

fn check_rows(part: &ClickHousePart, restored: &BTreeMap<String, u64>) -> Result<()> {
    for (table, (least, most)) in &part.rows {
        let rows = restored.get(table).copied().unwrap_or_default();
        if !(*least..=*most).contains(&rows) {
            bail!("ClickHouse restored {rows} rows of {table}, and the backup had {least} to {most}");
        }
    }
    Ok(())
}

fn place(installation: &Installation<'_>, name: &str) -> BackupPlace {
    BackupPlace { disk: installation.config.clickhouse_disk.clone(), name: name.to_owned() }
}

/// Waits for the end and returns the bytes.
async fn wait(installation: &Installation<'_>, id: &str, what: &str) -> Result<u64> {
    let (began, mut ticks) = (Instant::now(), ticks(POLL_INTERVAL));
    let mut report_at = began + REPORT_INTERVAL;
    loop {
        ticks.tick().await;
        match installation.warehouse.backup_state(id).await? {
            BackupState::Done { bytes } => return Ok(bytes),
            BackupState::Failed(error) => bail!("{what} failed: {error}"),
            BackupState::Running if Instant::now() >= report_at => {
                (installation.report)(&format!("  {what} has run for {} s", began.elapsed().as_secs()));
                report_at = Instant::now() + REPORT_INTERVAL;
            }
            BackupState::Running => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restore_has_as_many_rows_as_the_backup_had_meanwhile() {
        let rows = [("events".to_owned(), (10, 12))].into();
        let part = ClickHousePart { name: String::new(), bytes: 0, rows, list_sha256: None, seconds: 0.0 };
        for (restored, is_right) in [(9, false), (10, true), (12, true), (13, false)] {
            assert_eq!(check_rows(&part, &[("events".to_owned(), restored)].into()).is_ok(), is_right);
        }
        assert!(check_rows(&part, &BTreeMap::new()).is_err());
    }
}
