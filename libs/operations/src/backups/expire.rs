//! Expiry: full backups beyond the configured number are deleted with the incremental ones that depend on them.

use std::collections::BTreeSet;

use anyhow::Result;
use chrono::{DateTime, Utc};

use super::file_list;
use super::folder::{BackupFolder, remove};
use super::installation::Installation;
use super::manifest::{Manifest, megabytes};
use super::parts::blob_pool;
use super::parts::pgbackrest::PgBackRest;

/// Deletes backups beyond `backup.retained_fulls`, and the blobs that no other backup has. Returns the start of the oldest one that
/// is left.
pub(super) async fn delete_old(
    installation: &Installation<'_>,
    folder: &BackupFolder,
) -> Result<Option<DateTime<Utc>>> {
    let manifests = folder.manifests()?;
    let expired = expired(&manifests, installation.config.retained_fulls);
    if expired.is_empty() {
        return Ok(manifests.first().map(|oldest| oldest.started_at));
    }
    for id in &expired {
        (installation.report)(&format!("deleting {id}, which has expired"));
        delete(installation, folder, id)?;
    }
    let left: Vec<&Manifest> = manifests.iter().filter(|manifest| !expired.contains(&manifest.id)).collect();
    let mut listed = BTreeSet::new();
    for manifest in &left {
        let Some(part) = &manifest.blobs else { continue };
        let files = file_list::read(&folder.of(&manifest.id).join(blob_pool::LIST), &part.list_sha256)?;
        listed.extend(files.into_iter().map(|file| file.path));
    }
    let bytes = blob_pool::delete_unlisted(&folder.blobs(), &listed)?;
    if bytes > 0 {
        (installation.report)(&format!("deleted {} of blobs that no backup needs", megabytes(bytes)));
    }
    if manifests.iter().any(|manifest| manifest.postgres.is_some()) {
        PgBackRest::new(installation.config).expire(installation.config.retained_fulls).await?;
    }
    Ok(left.first().map(|oldest| oldest.started_at))
}

/// Deletes one backup, apart from what pgBackRest and the blobs of others hold.
pub(super) fn delete(installation: &Installation<'_>, folder: &BackupFolder, id: &str) -> Result<()> {
    folder.delete(id)?;
    remove(&installation.config.clickhouse_folder().join(id))
}

/// Returns the ids of the backups that depend on full ones beyond the last `retained`.
fn expired(manifests: &[Manifest], retained: u32) -> BTreeSet<String> {
    let fulls: Vec<&str> =
        manifests.iter().filter(|manifest| manifest.is_full()).map(|full| full.id.as_str()).collect();
    let kept = usize::try_from(retained).unwrap_or(usize::MAX);
    let old: BTreeSet<&str> =
        fulls.get(..fulls.len().saturating_sub(kept)).unwrap_or_default().iter().copied().collect();
    manifests
        .iter()
        .filter(|manifest| old.contains(manifest.full.as_str()))
        .map(|manifest| manifest.id.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::manifest::KeyIds;
    use super::*;

    fn backup(id: &str, full: &str) -> Manifest {
        let at = DateTime::UNIX_EPOCH;
        Manifest {
            format: 1,
            id: id.into(),
            full: full.into(),
            base: (id != full).then(|| full.into()),
            started_at: at,
            ended_at: at,
            program: String::new(),
            schema: 1,
            keys: KeyIds { master: vec![], master_digest: String::new(), pepper: vec![] },
            postgres: None,
            clickhouse: None,
            blobs: None,
        }
    }

    #[test]
    fn a_full_backup_expires_with_those_that_depend_on_it() {
        let manifests =
            [backup("1", "1"), backup("2", "1"), backup("3", "3"), backup("4", "3"), backup("5", "5")];
        let ids = |retained| expired(&manifests, retained).into_iter().collect::<Vec<_>>();
        assert_eq!(ids(3), Vec::<String>::new());
        assert_eq!(ids(2), ["1", "2"]);
        assert_eq!(ids(1), ["1", "2", "3", "4"]);
    }
}
