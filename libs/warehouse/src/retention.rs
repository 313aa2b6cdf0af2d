//! Who returned: one row for each thing a visitor did on a day, under the id that outlives the day.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use clickhouse::Row;
use contract::events::Event;
use domain::visits::Kind;
use serde::Serialize;
use uuid::Uuid;

use crate::events::STORE_TIMEOUT;
use crate::{Error, Warehouse, within};

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
    /// Notes who of these events' visitors was there on that day. Equal rows are one, so this may be done again.
    /// The rows go in sorted: their order says nothing about the events'.
    ///
    /// # Errors
    /// ClickHouse is away, too slow, or refuses the batch.
    pub async fn insert_retention(&self, events: &[Event]) -> Result<(), Error> {
        let rows: BTreeSet<_> = events.iter().filter_map(ReturnRow::of).collect();
        if rows.is_empty() {
            return Ok(());
        }
        within(STORE_TIMEOUT, async {
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
