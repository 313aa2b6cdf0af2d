//! Rows for retention: one for each visitor, day and event name, under the id that outlives the day.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use clickhouse::Row;
use contract::events::Event;
use domain::visits::Kind;
use serde::Serialize;
use uuid::Uuid;

use crate::client::{STORE_TIMEOUT, Warehouse, with_timeout};
use crate::error::Error;

/// A row of `returns`.
#[derive(Row, Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct ReturnRow<'a> {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    account_id: Uuid,
    returner: u64,
    name: &'a str,
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    #[serde(with = "clickhouse::serde::chrono::date")]
    epoch: NaiveDate,
}

impl Warehouse {
    /// Inserts the retention rows of these events. Equal rows are merged, so this is idempotent. The rows are sorted, so
    /// that their order does not reveal that of the events.
    pub async fn insert_retention(&self, events: &[Event]) -> Result<(), Error> {
        let rows: BTreeSet<_> = events.iter().filter_map(ReturnRow::of).collect();
        if rows.is_empty() {
            return Ok(());
        }
        with_timeout(STORE_TIMEOUT, async {
            let insert = self.client.insert::<ReturnRow<'_>>("returns").await?;
            let mut insert = insert.with_setting("async_insert", "0");
            for row in &rows {
                insert.write(row).await?;
            }
            insert.end().await
        })
        .await
    }
}

impl<'a> ReturnRow<'a> {
    fn of(event: &'a Event) -> Option<Self> {
        let returner = event.returner.filter(|_| Kind::of(&event.name) != Kind::Engagement)?;
        Some(Self {
            site_id: event.site_id,
            account_id: event.account_id,
            returner: returner.id,
            name: &event.name,
            day: returner.day,
            epoch: returner.epoch,
        })
    }
}
