//! Inserts batches of events and looks up stored ones.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use clickhouse::Row;
use contract::events::Event;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client::{QUERY_TIMEOUT, STORE_TIMEOUT, Warehouse, read_only, with_timeout};
use crate::error::Error;

/// Maximum number of ids in one query.
const IDS_PER_QUERY: usize = 10_000;

/// `scroll_depth` of an event without one.
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
    /// Inserts a batch of events, atomically per month and idempotently.
    ///
    /// The token alone identifies the batch: never use it for another list of events. After an error the batch may or may
    /// not be stored; retry it unchanged.
    pub async fn insert_events(&self, batch_token: &str, events: &[Event]) -> Result<(), Error> {
        with_timeout(STORE_TIMEOUT, async {
            let mut insert = self
                .client
                .insert::<EventRow<'_>>("events")
                .await?
                // The response must mean that the batch is stored, and the server must not merge it with others.
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

    /// Returns the ids of those events that are stored.
    pub async fn list_stored_ids(&self, events: &[Event]) -> Result<HashSet<Uuid>, Error> {
        let mut stored = HashSet::new();
        for events in events.chunks(IDS_PER_QUERY) {
            let days = events.iter().map(|event| event.received_at.date_naive());
            let Some((first, last)) = days.clone().min().zip(days.max()) else { continue };
            let sites: HashSet<Uuid> = events.iter().map(|event| event.site_id).collect();
            let visitors: HashSet<u64> = events.iter().map(|event| event.visitor).collect();
            let ids: Vec<Uuid> = events.iter().map(|event| event.id).collect();
            // The conditions beside the ids use the table's sort order.
            let query = self
                .bounded_query(
                    "SELECT ?fields FROM events WHERE site_id IN ? AND toDate(received_at) BETWEEN toDate(?) AND toDate(?)
                     AND visitor IN ? AND id IN ?",
                )
                .bind(Vec::from_iter(sites))
                .bind(first.to_string())
                .bind(last.to_string())
                .bind(Vec::from_iter(visitors))
                .bind(ids);
            let rows = with_timeout(STORE_TIMEOUT, query.fetch_all::<StoredId>()).await?;
            stored.extend(rows.into_iter().map(|row| row.id));
        }
        Ok(stored)
    }

    /// Counts the events of each site. Sites without events are absent.
    pub async fn count_events_by_site(&self, sites: &[Uuid]) -> Result<HashMap<Uuid, u64>, Error> {
        if sites.is_empty() {
            return Ok(HashMap::new());
        }
        let sql = "SELECT site_id, count() AS events FROM events WHERE site_id IN ? GROUP BY site_id";
        let query = read_only(self.client.query(sql).bind(sites), QUERY_TIMEOUT);
        let counts = with_timeout(QUERY_TIMEOUT, query.fetch_all::<SiteCount>()).await?;
        Ok(counts.into_iter().map(|count| (count.site_id, count.events)).collect())
    }
}
