//! The statements: events as far as visits are made of them, stored visits, and new ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use clickhouse::query::Query;
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
#[derive(Debug, PartialEq, Eq, Hash)]
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
    pub(super) fn of(site_id: Uuid, visit: &'a Visit<Arc<Origin>>, version: u64) -> Self {
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

    pub(super) fn into_step(self, origins: &mut Origins) -> Step<Arc<Origin>> {
        let origin = Origin {
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
        };
        Step {
            at: self.received_at,
            id: self.id,
            visitor: self.visitor,
            kind: Kind::of(&self.name),
            host: self.host,
            path: self.path,
            engagement_ms: self.engagement_ms,
            origin: origins.share(origin),
        }
    }
}

/// Where visitors come from repeats a lot: each such place is kept once.
#[derive(Default)]
pub(super) struct Origins(HashSet<Arc<Origin>>);

impl Origins {
    fn share(&mut self, origin: Origin) -> Arc<Origin> {
        if let Some(known) = self.0.get(&origin) {
            return Arc::clone(known);
        }
        let origin = Arc::new(origin);
        self.0.insert(Arc::clone(&origin));
        origin
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

#[derive(Row, Deserialize)]
struct CountRow {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    visitor: u64,
    events: u64,
}

/// What is asked about ids: which rows are an id's by their time and one of their columns.
struct Asked {
    select: &'static str,
    time: &'static str,
    visitor: &'static str,
    days_later: u64,
    group: &'static str,
}

impl Asked {
    /// About an id's own rows.
    const fn own(select: &'static str, time: &'static str) -> Self {
        Self { select, time, visitor: "visitor", days_later: 0, group: "" }
    }
}

impl Warehouse {
    /// Looks at all stored events of these ids, one after the other.
    pub(super) async fn look_at(
        &self,
        ids: &HashSet<Id>,
        mut look: impl FnMut(SeenRow),
    ) -> Result<(), Error> {
        let asked = Asked::own("SELECT ?fields FROM events", "received_at");
        let Some(question) = self.of_ids(ids, asked) else { return Ok(()) };
        within(STORE_TIMEOUT, async {
            let mut rows = question.fetch::<SeenRow>()?;
            while let Some(row) = rows.next().await? {
                look(row);
            }
            Ok(())
        })
        .await
    }

    /// How many each of them has; those without any are absent.
    pub(super) async fn count_seen(&self, ids: &HashSet<Id>) -> Result<HashMap<Id, u64>, Error> {
        let count = "SELECT site_id, toDate(received_at) AS day, visitor, count() AS events FROM events";
        let asked = Asked { group: "GROUP BY site_id, day, visitor", ..Asked::own(count, "received_at") };
        let rows: Vec<CountRow> = self.all_of_ids(ids, asked).await?;
        let count =
            |row: CountRow| (Id { day: row.day, site: row.site_id, visitor: row.visitor }, row.events);
        Ok(rows.into_iter().map(count).collect())
    }

    /// The ids of the day after.
    pub(super) async fn next(&self, ids: &HashSet<Id>) -> Result<Vec<Id>, Error> {
        let next = "SELECT DISTINCT site_id, toDate(received_at) AS day, visitor FROM events";
        let asked = Asked { visitor: "previous", days_later: 1, ..Asked::own(next, "received_at") };
        let rows: Vec<NextRow> = self.all_of_ids(ids, asked).await?;
        Ok(rows.into_iter().map(|row| Id { day: row.day, site: row.site_id, visitor: row.visitor }).collect())
    }

    /// The stored visits that began under these ids.
    pub(super) async fn stored_visits(&self, ids: &HashSet<Id>) -> Result<Vec<StoredRow>, Error> {
        self.all_of_ids(ids, Asked::own("SELECT ?fields FROM sessions FINAL", "start")).await
    }

    async fn all_of_ids<R>(&self, ids: &HashSet<Id>, asked: Asked) -> Result<Vec<R>, Error>
    where
        R: clickhouse::RowOwned + clickhouse::RowRead,
    {
        match self.of_ids(ids, asked) {
            Some(question) => within(STORE_TIMEOUT, question.fetch_all()).await,
            None => Ok(Vec::new()),
        }
    }

    /// The rows of these visitors, if there are any. A visitor's id is a hash keyed by site and day, so that sites, days
    /// and visitors can be asked for apart.
    fn of_ids(&self, ids: &HashSet<Id>, asked: Asked) -> Option<Query> {
        let Asked { select, time, visitor, days_later, group } = asked;
        let later = |day: NaiveDate| day.checked_add_days(Days::new(days_later)).unwrap_or(day).to_string();
        let days = ids.iter().map(|id| id.day);
        let (first, last) = days.clone().min().zip(days.max())?;
        let sites: Vec<Uuid> = ids.iter().map(|id| id.site).collect::<HashSet<_>>().into_iter().collect();
        let visitors: Vec<u64> = ids.iter().map(|id| id.visitor).collect();
        let sql = format!(
            "{select} WHERE site_id IN ? AND toDate({time}) BETWEEN toDate(?) AND toDate(?) AND {visitor} IN ? {group}"
        );
        Some(self.work(&sql).bind(sites).bind(later(first)).bind(later(last)).bind(visitors))
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
