//! The list of deleted accounts and sites in the backup folder: ids alone, appended by each backup. A restore to an earlier point
//! in time deletes them again.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use chrono::{DateTime, SecondsFormat, Utc};
use store::Conn;
use store::backups::deletions::{Deletion, list_deletions};

/// Appends the deletions that the list lacks. Returns their number.
pub(super) async fn export(conn: &mut Conn, path: &Path) -> Result<usize> {
    let known: BTreeSet<Deletion> = read(path)?.into_iter().collect();
    let since = known.last().map_or(DateTime::UNIX_EPOCH, |last| last.deleted_at);
    let new: Vec<Deletion> =
        list_deletions(conn, since).await?.into_iter().filter(|one| !known.contains(one)).collect();
    if !new.is_empty() {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all(new.iter().map(line).collect::<String>().as_bytes())?;
        file.sync_all()?;
    }
    Ok(new.len())
}

/// Reads a list. A missing one is empty, and a line that was cut off by a crash is ignored.
pub(super) fn read(path: &Path) -> Result<Vec<Deletion>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("reading {}", path.display()))?,
    };
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    let lines = complete.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| parse(line).with_context(|| format!("{}: `{line}` is no deletion", path.display())))
        .collect()
}

fn line(deletion: &Deletion) -> String {
    let time = deletion.deleted_at.to_rfc3339_opts(SecondsFormat::Micros, true);
    let site = deletion.site_id.map(|id| id.to_string()).unwrap_or_default();
    format!("{time}\t{}\t{site}\n", deletion.account_id)
}

fn parse(line: &str) -> Option<Deletion> {
    let mut fields = line.split('\t');
    let (time, account, site) = (fields.next()?, fields.next()?, fields.next()?);
    let site_id = if site.is_empty() { None } else { Some(site.parse().ok()?) };
    let deleted_at: DateTime<Utc> = time.parse().ok()?;
    Some(Deletion { deleted_at, account_id: account.parse().ok()?, site_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_without_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deletions.tsv");
        assert_eq!(read(&path).unwrap(), []);
        let deleted_at = "2026-11-27T16:50:00.123456Z".parse().unwrap();
        let account = Deletion { deleted_at, account_id: uuid::Uuid::from_u128(1), site_id: None };
        let site = Deletion { site_id: Some(uuid::Uuid::from_u128(7)), ..account };
        let text = line(&account) + &line(&site);
        fs::write(&path, format!("{text}2026-11-27T16:5")).unwrap();
        assert_eq!(read(&path).unwrap(), [account, site]);
        fs::write(&path, "no deletion\n").unwrap();
        assert!(read(&path).is_err());
    }
}
