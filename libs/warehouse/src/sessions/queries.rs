//! The queries about a set of daily ids, and the insert of visits.

use std::collections::{HashMap, HashSet};

use chrono::{Days, NaiveDate};
use clickhouse::Row;
use clickhouse::query::Query;
use domain::visits::Tally;
use serde::Deserialize;
use uuid::Uuid;

use super::rows::{EventRow, RecordedVisit, StoredRow, VisitRow};
use super::visitor_links::DailyId;
use crate::client::{STORE_TIMEOUT, Warehouse, with_timeout};
use crate::error::Error;

#[derive(Row, Deserialize)]
struct NextRow {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    visitor: u64,
    previous: u64,
}

#[derive(Row, Deserialize)]
struct CountRow {
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    visitor: u64,
    steps: u32,
    times: u32,
    has_previous: u8,
}

/// Counts of an id's stored events.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StoredEvents {
    pub(super) tally: Tally,
    /// An event contains the id of the day before.
    pub(super) has_previous: bool,
}

/// A query of the rows of daily ids, by the columns of their time and visitor.
struct IdQuery {
    select: &'static str,
    time: &'static str,
    visitor: &'static str,
    days_later: u64,
    group: &'static str,
}

impl IdQuery {
    /// Selects the rows of the ids themselves.
    const fn own(select: &'static str, time: &'static str) -> Self {
        Self { select, time, visitor: "visitor", days_later: 0, group: "" }
    }
}

impl Warehouse {
    /// Calls `handle` with each stored event of these ids.
    pub(super) async fn for_each_event(
        &self,
        ids: &HashSet<DailyId>,
        mut handle: impl FnMut(EventRow),
    ) -> Result<(), Error> {
        let id_query = IdQuery::own("SELECT ?fields FROM events", "received_at");
        let Some(query) = self.of_ids(ids, id_query) else { return Ok(()) };
        with_timeout(STORE_TIMEOUT, async {
            let mut rows = query.fetch::<EventRow>()?;
            while let Some(row) = rows.next().await? {
                handle(row);
            }
            Ok(())
        })
        .await
    }

    /// Counts the events of each id. Ids without events are absent.
    pub(super) async fn count_events(
        &self,
        ids: &HashSet<DailyId>,
    ) -> Result<HashMap<DailyId, StoredEvents>, Error> {
        let count = "SELECT site_id, toDate(received_at) AS day, visitor, toUInt32(count()) AS steps,
                            toUInt32(bitAnd(sum(toUnixTimestamp64Milli(received_at)), 4294967295)) AS times,
                            max(previous) != 0 AS has_previous FROM events";
        let id_query =
            IdQuery { group: "GROUP BY site_id, day, visitor", ..IdQuery::own(count, "received_at") };
        let rows: Vec<CountRow> = self.all_of_ids(ids, id_query).await?;
        let count = |row: CountRow| {
            let id = DailyId { day: row.day, site: row.site_id, visitor: row.visitor };
            let tally = Tally { steps: row.steps, times: row.times };
            (id, StoredEvents { tally, has_previous: row.has_previous != 0 })
        };
        Ok(rows.into_iter().map(count).collect())
    }

    /// Returns the linked id of the day after for each id that has one.
    pub(super) async fn next_day_ids(
        &self,
        ids: &HashSet<DailyId>,
    ) -> Result<HashMap<DailyId, DailyId>, Error> {
        let next = "SELECT DISTINCT site_id, toDate(received_at) AS day, visitor, previous FROM events";
        let id_query = IdQuery { visitor: "previous", days_later: 1, ..IdQuery::own(next, "received_at") };
        let rows: Vec<NextRow> = self.all_of_ids(ids, id_query).await?;
        let link = |NextRow { site_id, day, visitor, previous }| {
            let id = DailyId { day, site: site_id, visitor };
            (id.before(previous), id)
        };
        Ok(rows.into_iter().map(link).collect())
    }

    /// Calls `handle` with each stored visit that began under these ids.
    pub(super) async fn for_each_visit(
        &self,
        ids: &HashSet<DailyId>,
        mut handle: impl FnMut(VisitRow<'_>),
    ) -> Result<(), Error> {
        let id_query = IdQuery::own("SELECT ?fields FROM sessions FINAL", "start");
        let Some(query) = self.of_ids(ids, id_query) else { return Ok(()) };
        with_timeout(STORE_TIMEOUT, async {
            let mut rows = query.fetch::<VisitRow<'_>>()?;
            while let Some(row) = rows.next().await? {
                handle(row);
            }
            Ok(())
        })
        .await
    }

    /// Lists the visits that began under these ids, including deleted ones.
    pub(super) async fn list_recorded_visits(
        &self,
        ids: &HashSet<DailyId>,
    ) -> Result<Vec<RecordedVisit>, Error> {
        let visits = "SELECT site_id, any(sessions.account_id) AS account_id, visitor, start,
                             max(sessions.version) AS version FROM sessions";
        let id_query = IdQuery { group: "GROUP BY site_id, visitor, start", ..IdQuery::own(visits, "start") };
        self.all_of_ids(ids, id_query).await
    }

    /// Lists the stored visits that began under these ids.
    pub(super) async fn list_stored_visits(&self, ids: &HashSet<DailyId>) -> Result<Vec<StoredRow>, Error> {
        self.all_of_ids(ids, IdQuery::own("SELECT ?fields FROM sessions FINAL", "start")).await
    }

    async fn all_of_ids<R>(&self, ids: &HashSet<DailyId>, id_query: IdQuery) -> Result<Vec<R>, Error>
    where
        R: clickhouse::RowOwned + clickhouse::RowRead,
    {
        match self.of_ids(ids, id_query) {
            Some(query) => with_timeout(STORE_TIMEOUT, query.fetch_all()).await,
            None => Ok(Vec::new()),
        }
    }

    /// Builds the query, or returns `None` without ids. A visitor's id is a hash keyed by site and day, so independent
    /// conditions on sites, days and visitors match no other rows.
    fn of_ids(&self, ids: &HashSet<DailyId>, id_query: IdQuery) -> Option<Query> {
        let IdQuery { select, time, visitor, days_later, group } = id_query;
        let later = |day: NaiveDate| day.checked_add_days(Days::new(days_later)).unwrap_or(day).to_string();
        let days = ids.iter().map(|id| id.day);
        let (first, last) = days.clone().min().zip(days.max())?;
        let sites: Vec<Uuid> = ids.iter().map(|id| id.site).collect::<HashSet<_>>().into_iter().collect();
        // Bound as one string: parsing thousands of literals would take longer than reading the rows. PREWHERE, because
        // this condition is the most selective.
        let visitors =
            format!("[{}]", ids.iter().map(|id| id.visitor.to_string()).collect::<Vec<_>>().join(","));
        let sql = format!(
            "{select} PREWHERE {visitor} IN CAST(?, 'Array(UInt64)')
             WHERE site_id IN ? AND toDate({time}) BETWEEN toDate(?) AND toDate(?) {group}"
        );
        Some(self.bounded_query(&sql).bind(visitors).bind(sites).bind(later(first)).bind(later(last)))
    }

    /// Inserts rows of visits. Idempotent.
    pub(super) async fn insert_rows(&self, rows: &[VisitRow<'_>]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        with_timeout(STORE_TIMEOUT, async {
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
