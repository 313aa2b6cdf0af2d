//! The list of visits, newest first, with the pages of each.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clickhouse::Row;
use domain::analytics::{Range, VisitsQuery};
use serde::Deserialize;

use super::columns::{self, EVENTS, LINKS, PAGE_VIEWS, VISITS};
use super::site_analytics::SiteAnalytics;
use super::statement::{Bound, Statement};
use crate::error::Error;

/// Maximum number of pages returned for one visit. No person views more.
const MAX_PAGES_PER_VISIT: i64 = 1_000;

/// A page of the list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VisitList {
    /// The visits on this page.
    pub visits: Vec<VisitSummary>,
    /// Number of visits in the whole list.
    pub total: u64,
}

/// A visit.
#[derive(Debug, Clone, PartialEq)]
pub struct VisitSummary {
    /// The visitor's id of the day the visit began.
    pub visitor: u64,
    /// Time of the first event.
    pub start: DateTime<Utc>,
    /// Time of the last event or report of engagement.
    pub ended: DateTime<Utc>,
    /// Number of page views.
    pub page_views: u32,
    /// Path of the first page; empty without page views.
    pub entry_page: String,
    /// Path of the last page.
    pub exit_page: String,
    /// ISO 3166-1 alpha-2 code; empty if unknown, like region, city and device.
    pub country: String,
    /// ISO 3166-2 code or name.
    pub region: String,
    /// English name.
    pub city: String,
    /// `desktop`, `mobile`, `tablet`, …
    pub device: String,
    /// External host that referred the visit; empty for none.
    pub referrer: String,
    /// Channel of the visit, such as `Organic Search`; empty if unknown.
    pub channel: String,
    /// The first 1,000 pages in the order of their views.
    pub pages: Vec<ViewedPage>,
}

/// A page view of a visit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewedPage {
    /// Path of the page.
    pub path: String,
    /// Time of the view.
    pub at: DateTime<Utc>,
}

#[derive(Row, Deserialize)]
struct DayRow {
    /// Day on which the visits began (UTC).
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    count: u64,
}

/// The days that contain a page of the list.
#[derive(Debug, PartialEq, Eq)]
struct PageDays {
    latest: NaiveDate,
    earliest: NaiveDate,
    /// Number of visits of these days before the page.
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
    referrer_host: String,
    channel: String,
}

#[derive(Row, Deserialize)]
struct PageRow {
    /// Number of the visit on the page, from 1 on.
    number: u32,
    #[serde(with = "clickhouse::serde::chrono::datetime64::millis")]
    received_at: DateTime<Utc>,
    path: String,
}

impl SiteAnalytics<'_> {
    /// Returns a page of the list.
    pub async fn visits(&self, query: &VisitsQuery) -> Result<VisitList, Error> {
        let mut statement = self.statement();
        let rows = list(&mut statement, query);
        statement
            .push("SELECT toDate(start) AS day, count() AS count ")
            .push(&rows)
            .push(" GROUP BY day ORDER BY day DESC");
        let days = self.rows::<DayRow>(statement).await?;
        let total = days.iter().map(|day| day.count).sum();
        let Some(days) = days_of_page(&days, query.offset.into(), query.limit.into()) else {
            return Ok(VisitList { visits: vec![], total });
        };
        let mut statement = self.statement();
        let rows = list(&mut statement, query);
        statement.bind("limit", Bound::Number(query.limit.into()));
        statement.bind("earliest", Bound::Day(days.earliest));
        statement.bind("latest", Bound::Day(days.latest));
        statement.bind("offset", Bound::Number(days.offset));
        statement.push(
            "SELECT visitor, start, ended, page_views, entry_path, exit_path, toString(country) AS country, \
             toString(region) AS region, toString(city) AS city, toString(device) AS device, \
             toString(referrer_host) AS referrer_host, toString(channel) AS channel ",
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

    /// Adds the pages to the visits.
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
        statement.bind("shown", Bound::Number(MAX_PAGES_PER_VISIT));
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
            let visit =
                usize::try_from(number).ok().and_then(|number| visits.get_mut(number.checked_sub(1)?));
            if let Some(visit) = visit {
                visit.pages.push(ViewedPage { path, at: received_at });
            }
        }
        Ok(())
    }
}

/// Returns the days that contain the visits from `offset` on, so that only these are read, or `None` if there are fewer
/// visits. `days` is sorted latest first.
fn days_of_page(days: &[DayRow], offset: u64, limit: u64) -> Option<PageDays> {
    let mut found: Option<PageDays> = None;
    let mut before = 0;
    for DayRow { day, count } in days {
        if before >= offset + limit {
            break;
        }
        if before + count > offset {
            let offset = i64::try_from(offset.saturating_sub(before)).ok()?;
            found.get_or_insert(PageDays { latest: *day, earliest: *day, offset }).earliest = *day;
        }
        before += count;
    }
    found
}

/// Returns SQL of all visits of the list, from `FROM` on.
fn list(statement: &mut Statement, query: &VisitsQuery) -> String {
    statement.bind_range(query.range);
    statement.bind("pages", Bound::Number(query.min_pages.into()));
    let filters = columns::and_filters(statement, &query.filters, columns::session_column);
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
            referrer: row.referrer_host,
            channel: row.channel,
            pages: vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_days_of_the_page_are_read() {
        let on = |day| NaiveDate::from_ymd_opt(2026, 11, day).unwrap();
        let days = [(21, 30), (20, 5), (18, 40)].map(|(day, count)| DayRow { day: on(day), count });
        let part = |offset, limit| days_of_page(&days, offset, limit);
        let of =
            |latest, earliest, offset| Some(PageDays { latest: on(latest), earliest: on(earliest), offset });
        assert_eq!(part(0, 10), of(21, 21, 0));
        assert_eq!(part(0, 30), of(21, 21, 0));
        assert_eq!(part(20, 11), of(21, 20, 20));
        assert_eq!(part(30, 5), of(20, 20, 0));
        assert_eq!(part(34, 50), of(20, 18, 4));
        assert_eq!(part(40, 100), of(18, 18, 5));
        assert_eq!(part(75, 10), None);
        assert_eq!(days_of_page(&[], 0, 10), None);
    }
}
