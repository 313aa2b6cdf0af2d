//! Returning visitors, by the ids that live longer than a day. These are in a table of their own, which contains nothing
//! else about a visitor.

use chrono::{NaiveDate, TimeDelta};
use clickhouse::Row;
use domain::analytics::{Granularity, RetentionQuery, ReturnCount};
use serde::Deserialize;

use super::site_analytics::SiteAnalytics;
use super::statement::{Bound, Statement};
use crate::error::Error;

/// Maximum lifetime of an id. No id that was first seen earlier can be seen again.
const MAX_LIFETIME_DAYS: i64 = 92;

#[derive(Row, Deserialize)]
struct ReturnsRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    came: NaiveDate,
    #[serde(with = "clickhouse::serde::chrono::date")]
    there: NaiveDate,
    /// 0 in rows that contain an epoch.
    count: u64,
}

impl SiteAnalytics<'_> {
    /// Returns the number of visitors by first period and active period, without zeros, and the first days of the lifetimes
    /// of all ids in the range. A visitor counts as active in the first period.
    pub async fn retention(
        &self,
        query: &RetentionQuery,
    ) -> Result<(Vec<ReturnCount>, Vec<NaiveDate>), Error> {
        let period = match query.granularity {
            Granularity::Day => "",
            Granularity::Week => "toMonday",
            Granularity::Month => "toStartOfMonth",
        };
        let mut statement = self.statement();
        self.bind_days(&mut statement, query);
        statement.bind("came", Bound::Text(query.first_event.clone()));
        statement.bind("returned", Bound::Text(query.return_event.clone()));
        let (there, of_one) = if query.first_event == query.return_event {
            // The same event: every further day is a return, and none is before the first.
            let days = format!("min(day) AS first, groupUniqArray({period}(day)) AS periods");
            let own = "name = {came:String}";
            ("periods", format!("{days} FROM returns WHERE {DAYS} AND {own} GROUP BY returner"))
        } else {
            let days = format!(
                "minIf(day, name = {{came:String}}) AS first, \
                 groupUniqArrayIf({period}(day), name = {{returned:String}}) AS periods"
            );
            let own = "name IN ({came:String}, {returned:String})";
            let came = "HAVING countIf(name = {came:String}) > 0";
            (
                "arrayConcat([came], arrayFilter(one -> one > came, periods))",
                format!("{days} FROM returns WHERE {DAYS} AND {own} GROUP BY returner {came}"),
            )
        };
        statement.push(&format!(
            "SELECT {period}(first) AS came, arrayJoin({there}) AS there, count() AS count FROM (SELECT {of_one}) \
             WHERE first >= {{first:Date}} AND first <= {{last:Date}} GROUP BY came, there \
             UNION ALL SELECT DISTINCT epoch AS came, epoch AS there, toUInt64(0) AS count FROM returns WHERE {DAYS}"
        ));
        let rows = self.rows::<ReturnsRow>(statement).await?;
        let (returns, epochs): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.count > 0);
        let one = |row: ReturnsRow| ReturnCount { joined: row.came, active: row.there, count: row.count };
        Ok((returns.into_iter().map(one).collect(), epochs.into_iter().map(|row| row.came).collect()))
    }

    fn bind_days(&self, statement: &mut Statement, query: &RetentionQuery) {
        statement.bind("earliest", Bound::Day(query.days.first - TimeDelta::days(MAX_LIFETIME_DAYS)));
        statement.bind("latest", Bound::Day(query.last_day()));
        statement.bind("first", Bound::Day(query.days.first));
        statement.bind("last", Bound::Day(query.days.last));
    }
}

/// Condition of `returns`: the days of the query and the maximum lifetime of an id before them.
const DAYS: &str = "site_id = {site:UUID} AND day >= {earliest:Date} AND day <= {latest:Date}";
