//! The statements that are asked about some ids, and the one that writes visits down.

use std::collections::{HashMap, HashSet};

use chrono::{Days, NaiveDate};
use clickhouse::Row;
use clickhouse::query::Query;
use domain::visits::Tally;
use serde::Deserialize;
use uuid::Uuid;

use super::rows::{SeenRow, StoredRow, Trace, VisitRow};
use super::visitor_links::Id;
use crate::events::STORE_TIMEOUT;
use crate::{Error, Warehouse, within};

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
    came_over: u8,
}

/// What is stored of an id.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) tally: Tally,
    /// Some of it says whose id it was the day before.
    pub(super) came_over: bool,
}

/// What is asked about ids: which rows are an id's by their time and one of their columns.
struct IdQuery {
    select: &'static str,
    time: &'static str,
    visitor: &'static str,
    days_later: u64,
    group: &'static str,
}

impl IdQuery {
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
        let asked = IdQuery::own("SELECT ?fields FROM events", "received_at");
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

    /// What each of them has; those without any are absent.
    pub(super) async fn count_seen(&self, ids: &HashSet<Id>) -> Result<HashMap<Id, Seen>, Error> {
        let count = "SELECT site_id, toDate(received_at) AS day, visitor, toUInt32(count()) AS steps,
                            toUInt32(bitAnd(sum(toUnixTimestamp64Milli(received_at)), 4294967295)) AS times,
                            max(previous) != 0 AS came_over FROM events";
        let asked = IdQuery { group: "GROUP BY site_id, day, visitor", ..IdQuery::own(count, "received_at") };
        let rows: Vec<CountRow> = self.all_of_ids(ids, asked).await?;
        let seen = |row: CountRow| {
            let id = Id { day: row.day, site: row.site_id, visitor: row.visitor };
            let tally = Tally { steps: row.steps, times: row.times };
            (id, Seen { tally, came_over: row.came_over != 0 })
        };
        Ok(rows.into_iter().map(seen).collect())
    }

    /// What became of these ids the day after: those of whom that is known, each with the id of then.
    pub(super) async fn next(&self, ids: &HashSet<Id>) -> Result<HashMap<Id, Id>, Error> {
        let next = "SELECT DISTINCT site_id, toDate(received_at) AS day, visitor, previous FROM events";
        let asked = IdQuery { visitor: "previous", days_later: 1, ..IdQuery::own(next, "received_at") };
        let rows: Vec<NextRow> = self.all_of_ids(ids, asked).await?;
        let link = |NextRow { site_id, day, visitor, previous }| {
            let id = Id { day, site: site_id, visitor };
            (id.before(previous), id)
        };
        Ok(rows.into_iter().map(link).collect())
    }

    /// Looks at the stored visits that began under these ids.
    pub(super) async fn look_at_visits(
        &self,
        ids: &HashSet<Id>,
        mut look: impl FnMut(VisitRow<'_>),
    ) -> Result<(), Error> {
        let asked = IdQuery::own("SELECT ?fields FROM sessions FINAL", "start");
        let Some(question) = self.of_ids(ids, asked) else { return Ok(()) };
        within(STORE_TIMEOUT, async {
            let mut rows = question.fetch::<VisitRow<'_>>()?;
            while let Some(row) = rows.next().await? {
                look(row);
            }
            Ok(())
        })
        .await
    }

    /// Where anything is stored of a visit that began under these ids, deleted ones included.
    pub(super) async fn list_traces(&self, ids: &HashSet<Id>) -> Result<Vec<Trace>, Error> {
        let traces = "SELECT site_id, any(sessions.account_id) AS account_id, visitor, start,
                             max(sessions.version) AS version FROM sessions";
        let asked = IdQuery { group: "GROUP BY site_id, visitor, start", ..IdQuery::own(traces, "start") };
        self.all_of_ids(ids, asked).await
    }

    /// The stored visits that began under these ids.
    pub(super) async fn stored_visits(&self, ids: &HashSet<Id>) -> Result<Vec<StoredRow>, Error> {
        self.all_of_ids(ids, IdQuery::own("SELECT ?fields FROM sessions FINAL", "start")).await
    }

    async fn all_of_ids<R>(&self, ids: &HashSet<Id>, asked: IdQuery) -> Result<Vec<R>, Error>
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
    fn of_ids(&self, ids: &HashSet<Id>, asked: IdQuery) -> Option<Query> {
        let IdQuery { select, time, visitor, days_later, group } = asked;
        let later = |day: NaiveDate| day.checked_add_days(Days::new(days_later)).unwrap_or(day).to_string();
        let days = ids.iter().map(|id| id.day);
        let (first, last) = days.clone().min().zip(days.max())?;
        let sites: Vec<Uuid> = ids.iter().map(|id| id.site).collect::<HashSet<_>>().into_iter().collect();
        // As one text: thousands of numbers written out as such take longer to parse than the rows to read. They are
        // looked at first, as they leave the fewest rows.
        let visitors =
            format!("[{}]", ids.iter().map(|id| id.visitor.to_string()).collect::<Vec<_>>().join(","));
        let sql = format!(
            "{select} PREWHERE {visitor} IN CAST(?, 'Array(UInt64)')
             WHERE site_id IN ? AND toDate({time}) BETWEEN toDate(?) AND toDate(?) {group}"
        );
        Some(self.work(&sql).bind(visitors).bind(sites).bind(later(first)).bind(later(last)))
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
