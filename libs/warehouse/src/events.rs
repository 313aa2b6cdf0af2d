//! Events: in by the batch, away by the site.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use clickhouse::Row;
use contract::events::Event;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, QUESTION_TIMEOUT, Warehouse, question, within};

/// A change of the stored events that isn't acknowledged by then counts as failed.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(60);

/// What rewrites whole parts of a table may take longer.
pub(crate) const ERASE_TIMEOUT: Duration = Duration::from_secs(600);

/// The server gives up before we do, so that nothing goes on there that nobody waits for.
const SERVER_TIMEOUT: Duration = Duration::from_secs(50);
/// Memory that one statement may take there.
const SERVER_MEMORY_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Bytes of one statement: thousands of ids are spelled out.
const STATEMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Ids asked for at a time.
const IDS_AT_A_TIME: usize = 10_000;

/// Every table with anything of a site in it.
const TABLES: [&str; 3] = ["events", "sessions", "returns"];

const NOT_MEASURED: u8 = 255;

/// A row of `events`.
#[derive(Row, Serialize)]
struct EventRow<'a> {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    account_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    received_at: DateTime<Utc>,
    visitor: u64,
    previous: u64,
    name: &'a str,
    host: &'a str,
    path: &'a str,
    title: &'a str,
    referrer_host: &'a str,
    utm_source: &'a str,
    utm_medium: &'a str,
    utm_campaign: &'a str,
    source: &'a str,
    channel: &'a str,
    country: &'a str,
    region: &'a str,
    city: &'a str,
    device: &'a str,
    browser: &'a str,
    os: &'a str,
    screen: &'a str,
    props: Vec<(&'a str, &'a str)>,
    engagement_ms: u32,
    scroll_depth: u8,
}

impl<'a> From<&'a Event> for EventRow<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            site_id: event.site_id,
            account_id: event.account_id,
            id: event.id,
            received_at: event.received_at,
            visitor: event.visitor,
            previous: event.previous,
            name: &event.name,
            host: &event.host,
            path: &event.path,
            title: &event.title,
            referrer_host: &event.referrer_host,
            utm_source: &event.utm_source,
            utm_medium: &event.utm_medium,
            utm_campaign: &event.utm_campaign,
            source: &event.source,
            channel: &event.channel,
            country: &event.country,
            region: &event.region,
            city: &event.city,
            device: &event.device,
            browser: &event.browser,
            os: &event.os,
            screen: &event.screen,
            props: event.props.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
            engagement_ms: event.engagement_ms,
            scroll_depth: event.scroll_depth.unwrap_or(NOT_MEASURED),
        }
    }
}

#[derive(Row, Deserialize)]
struct StoredId {
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
}

#[derive(Row, Deserialize)]
struct SiteCount {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    events: u64,
}

impl Warehouse {
    /// Stores a batch of events, all or none of it per month, and once however often it is sent.
    ///
    /// The token alone decides what is the same batch: use one for exactly one list of events, for ever. After an
    /// error it is unknown whether the batch was stored; send it again, unchanged.
    ///
    /// # Errors
    /// ClickHouse is away, too slow, or refuses the batch.
    pub async fn insert_events(&self, batch_token: &str, events: &[Event]) -> Result<(), Error> {
        within(STORE_TIMEOUT, async {
            let mut insert = self
                .client
                .insert::<EventRow<'_>>("events")
                .await?
                // The batch is stored when the answer comes, and not merged with others under another token.
                .with_setting("async_insert", "0")
                .with_setting("insert_deduplicate", "1")
                .with_setting("insert_deduplication_token", batch_token);
            for event in events {
                insert.write(&EventRow::from(event)).await?;
            }
            insert.end().await
        })
        .await
    }

    /// Which of these events are stored.
    ///
    /// # Errors
    /// ClickHouse is away or too slow.
    pub async fn list_stored_ids(&self, events: &[Event]) -> Result<HashSet<Uuid>, Error> {
        let mut stored = HashSet::new();
        for events in events.chunks(IDS_AT_A_TIME) {
            let days = events.iter().map(|event| event.received_at.date_naive());
            let Some((first, last)) = days.clone().min().zip(days.max()) else { continue };
            let sites: HashSet<Uuid> = events.iter().map(|event| event.site_id).collect();
            let visitors: HashSet<u64> = events.iter().map(|event| event.visitor).collect();
            let ids: Vec<Uuid> = events.iter().map(|event| event.id).collect();
            // All but the ids is there for the sake of the table's order.
            let question = self
                .work(
                    "SELECT ?fields FROM events WHERE site_id IN ? AND toDate(received_at) BETWEEN toDate(?) AND toDate(?)
                     AND visitor IN ? AND id IN ?",
                )
                .bind(Vec::from_iter(sites))
                .bind(first.to_string())
                .bind(last.to_string())
                .bind(Vec::from_iter(visitors))
                .bind(ids);
            let rows = within(STORE_TIMEOUT, question.fetch_all::<StoredId>()).await?;
            stored.extend(rows.into_iter().map(|row| row.id));
        }
        Ok(stored)
    }

    /// A statement of the writing side, with limits that the server keeps.
    pub(crate) fn work(&self, sql: &str) -> clickhouse::query::Query {
        self.client
            .query(sql)
            .with_setting("max_execution_time", SERVER_TIMEOUT.as_secs().to_string())
            .with_setting("max_memory_usage", SERVER_MEMORY_BYTES.to_string())
            .with_setting("max_query_size", STATEMENT_BYTES_MAX.to_string())
            // Nobody waits for it; several threads would read the same in more time of processors.
            .with_setting("max_threads", "1")
    }

    /// How many events each of these sites has; sites without any are absent.
    ///
    /// # Errors
    /// ClickHouse is away or too slow.
    pub async fn count_events_by_site(&self, sites: &[Uuid]) -> Result<HashMap<Uuid, u64>, Error> {
        if sites.is_empty() {
            return Ok(HashMap::new());
        }
        let sql = "SELECT site_id, count() AS events FROM events WHERE site_id IN ? GROUP BY site_id";
        let asked = question(self.client.query(sql).bind(sites), QUESTION_TIMEOUT);
        let counts = within(QUESTION_TIMEOUT, asked.fetch_all::<SiteCount>()).await?;
        Ok(counts.into_iter().map(|count| (count.site_id, count.events)).collect())
    }

    /// Removes everything of these accounts and of these sites: events, visits, and who returned. It is hidden when
    /// this returns; the bytes go with the next merges, or by [`Self::erase_deleted`]. Where there is nothing, nothing is
    /// written: a deletion visits every part of a table.
    ///
    /// # Errors
    /// ClickHouse is away or too slow.
    pub async fn delete_events(&self, accounts: &[Uuid], sites: &[Uuid]) -> Result<(), Error> {
        for table in TABLES {
            for (column, ids) in [("account_id", accounts), ("site_id", sites)] {
                if !ids.is_empty() {
                    self.delete_of(table, column, ids).await?;
                }
            }
        }
        Ok(())
    }

    async fn delete_of(&self, table: &str, column: &str, ids: &[Uuid]) -> Result<(), Error> {
        let count = format!("SELECT count() FROM {table} WHERE {column} IN ?");
        if !is_any(self.work(&count).bind(ids)).await? {
            return Ok(());
        }
        let delete = format!("DELETE FROM {}{} WHERE {column} IN ?", self.home_of(table), self.everywhere());
        within(STORE_TIMEOUT, self.client.query(&delete).bind(ids).execute()).await
    }

    /// Whether somebody has told the server to rewrite a table so, and it hasn't done so yet: each asking would have it
    /// done once more.
    pub(crate) async fn is_being_rewritten(&self, table: &str, how: &str) -> Result<bool, Error> {
        let sql = "SELECT latest_fail_reason FROM system.mutations
                   WHERE database = ? AND table = ? AND NOT is_done AND position(command, ?) > 0";
        let unfinished = self.work(sql).bind(&self.database).bind(self.home_of(table)).bind(how);
        let reasons: Vec<String> = within(STORE_TIMEOUT, unfinished.fetch_all()).await?;
        if let Some(reason) = reasons.iter().find(|reason| !reason.is_empty()) {
            tracing::error!(table, how, reason, "a table isn't rewritten: look into system.mutations");
        }
        Ok(!reasons.is_empty())
    }

    /// Takes what was removed off the disk, now rather than with some merge.
    ///
    /// # Errors
    /// ClickHouse is away or too slow.
    pub async fn erase_deleted(&self) -> Result<(), Error> {
        for table in TABLES {
            let count = format!("SELECT count() FROM {table} WHERE _row_exists = 0");
            let hidden = self.work(&count).with_setting("apply_deleted_mask", "0");
            if is_any(hidden).await? && !self.is_being_rewritten(table, "APPLY DELETED MASK").await? {
                let (home, everywhere) = (self.home_of(table), self.everywhere());
                let erase = format!("ALTER TABLE {home}{everywhere} APPLY DELETED MASK");
                let erase = self.client.query(&erase).with_setting("mutations_sync", "2");
                within(ERASE_TIMEOUT, erase.execute()).await?;
            }
        }
        Ok(())
    }
}

/// Whether a count finds anything. Where a server can't say so within its limits there is much, and what is there must
/// go all the same.
pub(crate) async fn is_any(count: clickhouse::query::Query) -> Result<bool, Error> {
    match within(STORE_TIMEOUT, count.fetch_one::<u64>()).await {
        Err(error) if error.exceeded_limit().is_some() => Ok(true),
        counted => Ok(counted? > 0),
    }
}
