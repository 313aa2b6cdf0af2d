//! The list of visits, the newest first, with the pages seen in each.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clickhouse::Row;
use domain::analytics::{Range, Visits};
use serde::Deserialize;

use super::SiteAnalytics;
use super::columns::{self, EVENTS, LINKS, PAGE_VIEWS, VISITS};
use super::statement::{Bound, Statement};
use crate::Error;

/// Pages shown of one visit: what has more is no person's.
const PAGES_SHOWN_MAX: i64 = 1_000;

/// A part of the list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VisitList {
    /// The visits of this part.
    pub visits: Vec<VisitSummary>,
    /// How many there are in all.
    pub total: u64,
}

/// A visit.
#[derive(Debug, Clone, PartialEq)]
pub struct VisitSummary {
    /// Its visitor's id of the day it began.
    pub visitor: u64,
    /// Its first event.
    pub start: DateTime<Utc>,
    /// Its last one, or the end of the last page's being looked at.
    pub ended: DateTime<Utc>,
    /// How many pages were viewed.
    pub page_views: u32,
    /// Path of the first page; empty if there was none.
    pub entry_page: String,
    /// Path of the last page.
    pub exit_page: String,
    /// ISO 3166-1 alpha-2; empty if unknown, as the next three.
    pub country: String,
    /// The region.
    pub region: String,
    /// The city.
    pub city: String,
    /// `desktop`, `mobile`, `tablet`, …
    pub device: String,
    /// The pages in the order they were viewed; the first 1,000.
    pub pages: Vec<ViewedPage>,
}

/// A page that was viewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewedPage {
    /// Its path.
    pub path: String,
    /// When.
    pub at: DateTime<Utc>,
}

#[derive(Row, Deserialize)]
struct DayRow {
    /// On which they began (UTC).
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    count: u64,
}

/// Where a part of the list lies.
#[derive(Debug, PartialEq, Eq)]
struct DaysOf {
    latest: NaiveDate,
    earliest: NaiveDate,
    /// So many visits of these days come before it.
    offset: i64,
}

#[derive(Row, Deserialize)]
struct VisitRow {
    visitor: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    start: DateTime<Utc>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    ended: DateTime<Utc>,
    page_views: u32,
    entry_path: String,
    exit_path: String,
    country: String,
    region: String,
    city: String,
    device: String,
}

#[derive(Row, Deserialize)]
struct PageRow {
    /// Of the visit in the list.
    number: u32,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    received_at: DateTime<Utc>,
    path: String,
}

impl SiteAnalytics<'_> {
    /// The part of the list that is asked for.
    ///
    /// # Errors
    /// As [`SiteAnalytics::total`].
    pub async fn visits(&self, asked: &Visits) -> Result<VisitList, Error> {
        let mut statement = self.statement();
        let rows = list(&mut statement, asked);
        statement
            .push("SELECT toDate(start) AS day, count() AS count ")
            .push(&rows)
            .push(" GROUP BY day ORDER BY day DESC");
        let days = self.rows::<DayRow>(statement).await?;
        let total = days.iter().map(|day| day.count).sum();
        let Some(days) = days_of(&days, asked.offset.into(), asked.limit.into()) else {
            return Ok(VisitList { visits: vec![], total });
        };
        let mut statement = self.statement();
        let rows = list(&mut statement, asked);
        statement.bind("limit", Bound::Number(asked.limit.into()));
        statement.bind("earliest", Bound::Text(days.earliest.to_string()));
        statement.bind("latest", Bound::Text(days.latest.to_string()));
        statement.bind("offset", Bound::Number(days.offset));
        statement.push(
            "SELECT visitor, start, ended, page_views, entry_path, exit_path, toString(country) AS country, \
             toString(region) AS region, toString(city) AS city, toString(device) AS device ",
        );
        statement
            .push(&rows)
            .push(" AND toDate(start) >= {earliest:Date} AND toDate(start) <= {latest:Date}")
            .push(" ORDER BY start DESC, visitor ASC LIMIT {limit:Int64} OFFSET {offset:Int64}");
        let mut visits: Vec<VisitSummary> =
            self.rows::<VisitRow>(statement).await?.into_iter().map(VisitSummary::from).collect();
        self.fill_pages(&mut visits).await?;
        Ok(VisitList { visits, total })
    }

    /// Fills in the pages, no more of each visit than are shown.
    async fn fill_pages(&self, visits: &mut [VisitSummary]) -> Result<(), Error> {
        let start = visits.iter().map(|visit| visit.start).min();
        let end = visits.iter().map(|visit| visit.ended).max();
        let (Some(start), Some(end)) = (start, end) else { return Ok(()) };
        let mut statement = self.statement();
        statement.bind_range(Range { start, end: end + TimeDelta::milliseconds(1) });
        let millis = |at: fn(&VisitSummary) -> DateTime<Utc>| {
            Bound::Numbers(visits.iter().map(|visit| at(visit).timestamp_millis()).collect())
        };
        statement.bind("starts", millis(|visit| visit.start));
        statement.bind("ends", millis(|visit| visit.ended));
        statement.bind("ids", Bound::Ids(visits.iter().map(|visit| visit.visitor).collect()));
        statement.bind("shown", Bound::Number(PAGES_SHOWN_MAX));
        let pages = "received_at, path FROM events WHERE";
        statement.push(&format!(
            "SELECT number, received_at, path FROM (SELECT visitor AS id, {pages} {EVENTS} AND {PAGE_VIEWS} \
             AND visitor IN {{ids:Array(UInt64)}}"
        ));
        if visits.iter().any(|visit| visit.start.date_naive() < visit.ended.date_naive()) {
            let links = format!("{LINKS} AND previous IN {{ids:Array(UInt64)}}");
            statement.push(&format!(
                " UNION ALL SELECT links.previous AS id, received_at, path \
                 FROM (SELECT visitor, {pages} {EVENTS} AND {PAGE_VIEWS} \
                 AND visitor IN (SELECT visitor FROM ({links}))) AS e INNER JOIN ({links}) AS links USING (visitor)"
            ));
        }
        statement.push(
            ") AS e INNER JOIN (SELECT visit.1 AS id, visit.2 AS start, visit.3 AS ended, visit.4 AS number FROM \
             (SELECT arrayJoin(arrayZip({ids:Array(UInt64)}, {starts:Array(Int64)}, {ends:Array(Int64)}, \
             arrayEnumerate({ids:Array(UInt64)}))) AS visit)) AS v USING (id) \
             WHERE toUnixTimestamp64Milli(received_at) BETWEEN start AND ended \
             ORDER BY number, received_at, path LIMIT {shown:Int64} BY number",
        );
        for PageRow { number, received_at, path } in self.rows::<PageRow>(statement).await? {
            // They are numbered from 1 on.
            let visit =
                usize::try_from(number).ok().and_then(|number| visits.get_mut(number.checked_sub(1)?));
            if let Some(visit) = visit {
                visit.pages.push(ViewedPage { path, at: received_at });
            }
        }
        Ok(())
    }
}

/// The days of which visits are shown, of all days, the latest first: no others need to be read. None if there are no
/// so many visits.
fn days_of(days: &[DayRow], offset: u64, limit: u64) -> Option<DaysOf> {
    let mut found: Option<DaysOf> = None;
    let mut before = 0;
    for DayRow { day, count } in days {
        if before >= offset + limit {
            break;
        }
        if before + count > offset {
            let offset = i64::try_from(offset.saturating_sub(before)).ok()?;
            found.get_or_insert(DaysOf { latest: *day, earliest: *day, offset }).earliest = *day;
        }
        before += count;
    }
    found
}

/// The visits of the list, from `FROM` on.
fn list(statement: &mut Statement, asked: &Visits) -> String {
    statement.bind_range(asked.range);
    statement.bind("pages", Bound::Number(asked.min_pages.into()));
    let filters = columns::and_filters(statement, &asked.filters, columns::of_visit);
    format!("FROM sessions FINAL WHERE {VISITS} AND page_views >= {{pages:Int64}}{filters}")
}

impl From<VisitRow> for VisitSummary {
    fn from(row: VisitRow) -> Self {
        Self {
            visitor: row.visitor,
            start: row.start,
            ended: row.ended,
            page_views: row.page_views,
            entry_page: row.entry_path,
            exit_page: row.exit_path,
            country: row.country,
            region: row.region,
            city: row.city,
            device: row.device,
            pages: vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_days_that_a_part_of_the_list_lies_in_are_read() {
        let on = |day| NaiveDate::from_ymd_opt(2026, 11, day).unwrap();
        let days = [(21, 30), (20, 5), (18, 40)].map(|(day, count)| DayRow { day: on(day), count });
        let part = |offset, limit| days_of(&days, offset, limit);
        let of =
            |latest, earliest, offset| Some(DaysOf { latest: on(latest), earliest: on(earliest), offset });
        assert_eq!(part(0, 10), of(21, 21, 0));
        assert_eq!(part(0, 30), of(21, 21, 0));
        assert_eq!(part(20, 11), of(21, 20, 20));
        assert_eq!(part(30, 5), of(20, 20, 0));
        assert_eq!(part(34, 50), of(20, 18, 4));
        assert_eq!(part(40, 100), of(18, 18, 5));
        assert_eq!(part(75, 10), None);
        assert_eq!(days_of(&[], 0, 10), None);
    }
}
