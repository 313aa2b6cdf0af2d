//! Deletes the rows of accounts and sites, and removes deleted rows from disk.

use clickhouse::query::Query;
use uuid::Uuid;

use crate::client::{REWRITE_TIMEOUT, STORE_TIMEOUT, Warehouse, with_timeout};
use crate::error::Error;

/// All tables with rows of a site.
pub(crate) const TABLES: [&str; 3] = ["events", "sessions", "returns"];

impl Warehouse {
    /// Deletes all rows of these accounts and sites. They are hidden when this returns and leave the disk with later
    /// merges or by [`Self::erase_deleted`]. A table without such rows is not touched, because a deletion reads every
    /// part of it.
    pub async fn delete_events(&self, accounts: &[Uuid], sites: &[Uuid]) -> Result<(), Error> {
        for table in TABLES {
            for (column, ids) in [("account_id", accounts), ("site_id", sites)] {
                if !ids.is_empty() {
                    self.delete_rows(table, column, ids).await?;
                }
            }
        }
        Ok(())
    }

    async fn delete_rows(&self, table: &str, column: &str, ids: &[Uuid]) -> Result<(), Error> {
        let count = format!("SELECT count() FROM {table} WHERE {column} IN ?");
        if !has_rows(self.bounded_query(&count).bind(ids)).await? {
            return Ok(());
        }
        let delete =
            format!("DELETE FROM {}{} WHERE {column} IN ?", self.local_table(table), self.on_cluster());
        with_timeout(STORE_TIMEOUT, self.cluster_statement(&delete, STORE_TIMEOUT).bind(ids).execute()).await
    }

    /// Removes deleted rows from disk now instead of with a later merge.
    pub async fn erase_deleted(&self) -> Result<(), Error> {
        for table in TABLES {
            let count = format!("SELECT count() FROM {table} WHERE _row_exists = 0");
            let deleted = self.bounded_query(&count).with_setting("apply_deleted_mask", "0");
            if has_rows(deleted).await? && !self.has_unfinished_mutation(table, "APPLY DELETED MASK").await? {
                let (local_table, on_cluster) = (self.local_table(table), self.on_cluster());
                let erase = format!("ALTER TABLE {local_table}{on_cluster} APPLY DELETED MASK");
                let erase =
                    self.cluster_statement(&erase, REWRITE_TIMEOUT).with_setting("mutations_sync", "2");
                with_timeout(REWRITE_TIMEOUT, erase.execute()).await?;
            }
        }
        Ok(())
    }

    /// Whether a mutation is still running on some server with `text` in its command. Starting it again would repeat the
    /// work.
    pub(crate) async fn has_unfinished_mutation(&self, table: &str, text: &str) -> Result<bool, Error> {
        let sql = format!(
            "SELECT latest_fail_reason FROM {}
             WHERE database = ? AND table = ? AND NOT is_done AND position(command, ?) > 0",
            self.of_all_servers("system.mutations")
        );
        let unfinished =
            self.bounded_query(&sql).bind(&self.database).bind(self.local_table(table)).bind(text);
        let reasons: Vec<String> = with_timeout(STORE_TIMEOUT, unfinished.fetch_all()).await?;
        if let Some(reason) = reasons.iter().find(|reason| !reason.is_empty()) {
            tracing::error!(table, text, reason, "a mutation fails: see system.mutations");
        }
        Ok(!reasons.is_empty())
    }
}

/// Whether a count is above zero. A count beyond the server's limits is.
pub(crate) async fn has_rows(count: Query) -> Result<bool, Error> {
    match with_timeout(STORE_TIMEOUT, count.fetch_one::<u64>()).await {
        Err(error) if error.exceeded_limit().is_some() => Ok(true),
        count => Ok(count? > 0),
    }
}
