//! The statements: events as far as visits are made of them, stored visits, and new ones.

use std::collections::HashSet;

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use domain::visits::{Kind, Step, Visit};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::chains::Id;
use crate::events::STORE_TIMEOUT;
use crate::{Error, Warehouse, within};

/// An event, as a visit's part.
#[derive(Row, Deserialize)]
pub(super) struct SeenRow {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    account_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    id: Uuid,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    received_at: DateTime<Utc>,
    visitor: u64,
    pub(super) previous: u64,
    name: String,
    host: String,
    path: String,
    engagement_ms: u32,
    referrer_host: String,
    source: String,
    channel: String,
    utm_source: String,
    utm_medium: String,
    utm_campaign: String,
    country: String,
    region: String,
    city: String,
    device: String,
    browser: String,
    os: String,
}

/// What is known of a visit by its first event.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    account_id: Uuid,
    referrer_host: String,
    source: String,
    channel: String,
    utm_source: String,
    utm_medium: String,
    utm_campaign: String,
    country: String,
    region: String,
    city: String,
    device: String,
    browser: String,
    os: String,
}

/// A stored visit, as far as it matters to the next recount.
#[derive(Row, Serialize, Deserialize)]
pub(super) struct StoredRow {
    #[serde(with = "clickhouse::serde::uuid")]
    pub(super) site_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    pub(super) account_id: Uuid,
    pub(super) visitor: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    pub(super) start: DateTime<Utc>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    pub(super) ended: DateTime<Utc>,
}

/// A row of `sessions`.
#[derive(Row, Serialize)]
pub(super) struct VisitRow<'a> {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    account_id: Uuid,
    visitor: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    start: DateTime<Utc>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    ended: DateTime<Utc>,
    page_views: u32,
    events: u32,
    bounce: u8,
    entry_host: &'a str,
    entry_path: &'a str,
    exit_path: &'a str,
    referrer_host: &'a str,
    source: &'a str,
    channel: &'a str,
    utm_source: &'a str,
    utm_medium: &'a str,
    utm_campaign: &'a str,
    country: &'a str,
    region: &'a str,
    city: &'a str,
    device: &'a str,
    browser: &'a str,
    os: &'a str,
    engagement_ms: u32,
    version: u64,
    deleted: u8,
}

impl<'a> VisitRow<'a> {
    pub(super) fn of(site_id: Uuid, visit: &'a Visit<Origin>, version: u64) -> Self {
        let origin = &visit.origin;
        Self {
            site_id,
            account_id: origin.account_id,
            visitor: visit.visitor,
            start: visit.start,
            ended: visit.ended,
            page_views: visit.page_views,
            events: visit.events,
            bounce: visit.is_bounce().into(),
            entry_host: &visit.entry_host,
            entry_path: &visit.entry_path,
            exit_path: &visit.exit_path,
            referrer_host: &origin.referrer_host,
            source: &origin.source,
            channel: &origin.channel,
            utm_source: &origin.utm_source,
            utm_medium: &origin.utm_medium,
            utm_campaign: &origin.utm_campaign,
            country: &origin.country,
            region: &origin.region,
            city: &origin.city,
            device: &origin.device,
            browser: &origin.browser,
            os: &origin.os,
            engagement_ms: visit.engagement_ms,
            version,
            deleted: 0,
        }
    }

    /// Says that this visit is none.
    pub(super) fn deleted(stored: &StoredRow, version: u64) -> Self {
        Self {
            site_id: stored.site_id,
            account_id: stored.account_id,
            visitor: stored.visitor,
            start: stored.start,
            ended: stored.ended,
            page_views: 0,
            events: 0,
            bounce: 0,
            entry_host: "",
            entry_path: "",
            exit_path: "",
            referrer_host: "",
            source: "",
            channel: "",
            utm_source: "",
            utm_medium: "",
            utm_campaign: "",
            country: "",
            region: "",
            city: "",
            device: "",
            browser: "",
            os: "",
            engagement_ms: 0,
            version,
            deleted: 1,
        }
    }
}

impl StoredRow {
    pub(super) fn id(&self) -> Id {
        Id::at(self.site_id, self.visitor, self.start)
    }
}

impl SeenRow {
    pub(super) fn id(&self) -> Id {
        Id::at(self.site_id, self.visitor, self.received_at)
    }

    pub(super) fn into_step(self) -> Step<Origin> {
        Step {
            at: self.received_at,
            id: self.id,
            visitor: self.visitor,
            kind: Kind::of(&self.name),
            host: self.host,
            path: self.path,
            engagement_ms: self.engagement_ms,
            origin: Origin {
                account_id: self.account_id,
                referrer_host: self.referrer_host,
                source: self.source,
                channel: self.channel,
                utm_source: self.utm_source,
                utm_medium: self.utm_medium,
                utm_campaign: self.utm_campaign,
                country: self.country,
                region: self.region,
                city: self.city,
                device: self.device,
                browser: self.browser,
                os: self.os,
            },
        }
    }
}

#[derive(Row, Deserialize)]
struct NextRow {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    visitor: u64,
}

impl Warehouse {
    /// All stored events of these ids.
    pub(super) async fn seen(&self, ids: &HashSet<Id>) -> Result<Vec<SeenRow>, Error> {
        self.of_ids(ids, "SELECT ?fields FROM events", ("visitor", "received_at", 0)).await
    }

    /// How many that are.
    pub(super) async fn count_seen(&self, ids: &HashSet<Id>) -> Result<u64, Error> {
        let counts: Vec<u64> =
            self.of_ids(ids, "SELECT count() FROM events", ("visitor", "received_at", 0)).await?;
        Ok(counts.into_iter().sum())
    }

    /// The ids of the day after.
    pub(super) async fn next(&self, ids: &HashSet<Id>) -> Result<Vec<Id>, Error> {
        let next = "SELECT DISTINCT site_id, toDate(received_at) AS day, visitor FROM events";
        let rows: Vec<NextRow> = self.of_ids(ids, next, ("previous", "received_at", 1)).await?;
        Ok(rows.into_iter().map(|row| Id { day: row.day, site: row.site_id, visitor: row.visitor }).collect())
    }

    /// The stored visits that began under these ids.
    pub(super) async fn stored_visits(&self, ids: &HashSet<Id>) -> Result<Vec<StoredRow>, Error> {
        self.of_ids(ids, "SELECT ?fields FROM sessions FINAL", ("visitor", "start", 0)).await
    }

    /// Rows whose `id` column holds one of these visitors. A visitor's id is a hash keyed by site and day, so that
    /// sites, days and visitors can be asked for apart.
    async fn of_ids<R>(
        &self,
        ids: &HashSet<Id>,
        select: &str,
        (id, time, days_later): (&str, &str, u64),
    ) -> Result<Vec<R>, Error>
    where
        R: clickhouse::RowOwned + clickhouse::RowRead,
    {
        let later = |day: NaiveDate| day.checked_add_days(Days::new(days_later)).unwrap_or(day).to_string();
        let days = ids.iter().map(|id| id.day);
        let Some((first, last)) = days.clone().min().zip(days.max()) else { return Ok(Vec::new()) };
        let sites: Vec<Uuid> = ids.iter().map(|id| id.site).collect::<HashSet<_>>().into_iter().collect();
        let visitors: Vec<u64> = ids.iter().map(|id| id.visitor).collect();
        let sql = format!(
            "{select} WHERE site_id IN ? AND toDate({time}) BETWEEN toDate(?) AND toDate(?) AND {id} IN ?"
        );
        let question =
            self.client.query(&sql).bind(sites).bind(later(first)).bind(later(last)).bind(visitors);
        // Thousands of ids are spelled out.
        let question = question.with_setting("max_query_size", "16777216");
        within(STORE_TIMEOUT, question.fetch_all()).await
    }

    /// Writes visits down. Doing so twice changes nothing.
    pub(super) async fn insert_rows(&self, rows: &[VisitRow<'_>]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        within(STORE_TIMEOUT, async {
            let insert = self.client.insert::<VisitRow<'_>>("sessions").await?;
            let mut insert = insert.with_setting("async_insert", "0");
            for row in rows {
                insert.write(row).await?;
            }
            insert.end().await
        })
        .await
    }
}
