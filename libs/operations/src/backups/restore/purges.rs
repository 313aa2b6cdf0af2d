//! Deletes again what was deleted after the restored point in time. Postgres knows the deletions up to that point; the list in the
//! backup folder knows later ones. ClickHouse loses the events of every site that Postgres does not have.

use std::collections::BTreeSet;

use anyhow::Result;
use store::Db;
use store::backups::deletions::Deletion;
use store::backups::{find_missing_sites, lock_account};
use store::{purges, sites};

use super::super::installation::Installation;
use super::request::Purged;

/// Rows deleted by one transaction from tables in which an account may have any number.
const ROWS: i64 = 5_000;
/// Sites in one statement.
const SITES: usize = 1_000;

/// Repeats deletions in Postgres. The job-runner deletes the bytes and events of these accounts when it starts.
pub(super) async fn repeat(installation: &Installation<'_>, deletions: &[Deletion]) -> Result<Purged> {
    let mut purged = Purged::default();
    let accounts = deletions.iter().filter(|deletion| deletion.site_id.is_none());
    let accounts: BTreeSet<_> = accounts.map(|deletion| deletion.account_id).collect();
    for account_id in accounts {
        purged.accounts += u64::from(delete_account(installation, account_id).await?);
    }
    for deletion in deletions {
        let Some(site_id) = deletion.site_id else { continue };
        let mut tx = store::begin(installation.db).await?;
        if sites::delete_site(&mut tx, deletion.account_id, site_id).await?.is_some() {
            let now = installation.clock.now();
            purges::insert_event_purge(&mut tx, deletion.account_id, Some(site_id), now).await?;
            purged.sites += 1;
        }
        store::commit(tx).await?;
    }
    Ok(purged)
}

/// Returns `false` if the account doesn't exist.
async fn delete_account(installation: &Installation<'_>, account_id: uuid::Uuid) -> Result<bool> {
    loop {
        let mut tx = store::begin(installation.db).await?;
        if !lock_account(&mut tx, account_id).await? {
            return Ok(false);
        }
        if purges::delete_bulk(&mut tx, account_id, ROWS).await? == ROWS {
            store::commit(tx).await?;
            continue;
        }
        purges::delete_account(&mut tx, account_id, installation.clock.now()).await?;
        store::commit(tx).await?;
        return Ok(true);
    }
}

/// Deletes the events of sites that Postgres does not have. Returns their number.
pub(super) async fn delete_unknown_sites(installation: &Installation<'_>, db: &Db) -> Result<u64> {
    let stored: BTreeSet<_> =
        installation.warehouse.list_stored_sites().await?.into_iter().map(|site| site.site_id).collect();
    let stored: Vec<_> = stored.into_iter().collect();
    let mut deleted = 0;
    for sites in stored.chunks(SITES) {
        let mut conn = store::acquire(db).await?;
        let missing = find_missing_sites(&mut conn, sites).await?;
        if !missing.is_empty() {
            installation.warehouse.delete_events(&[], &missing).await?;
            deleted += missing.len() as u64;
        }
    }
    if deleted > 0 {
        installation.warehouse.erase_deleted().await?;
    }
    Ok(deleted)
}
