//! Who came back, by the ids that live longer than a day. They stand in a table of their own, in which there is
//! nothing else to be known about anybody.

use chrono::{NaiveDate, TimeDelta};
use clickhouse::Row;
use domain::analytics::{Granularity, Retention, Returns};
use serde::Deserialize;

use super::SiteAnalytics;
use super::statement::{Bound, Statement};
use crate::Error;

/// No id lives longer, so that nobody seen before is seen again.
const LONGEST_LIFE_DAYS: i64 = 92;

#[derive(Row, Deserialize)]
struct ReturnsRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    came: NaiveDate,
    #[serde(with = "clickhouse::serde::chrono::date")]
    there: NaiveDate,
    /// None where it is an epoch that is told.
    count: u64,
}

impl SiteAnalytics<'_> {
    /// How many of those who came for the first time in one period were there in another, for all pairs of periods
    /// of which there are any; whoever came is there in the period they came in, whatever they did. And the first
    /// days of the lives of all ids that were seen on these days.
    ///
    /// # Errors
    /// As [`SiteAnalytics::total`].
    pub async fn retention(&self, asked: &Retention) -> Result<(Vec<Returns>, Vec<NaiveDate>), Error> {
        let period = match asked.granularity {
            Granularity::Day => "",
            Granularity::Week => "toMonday",
            Granularity::Month => "toStartOfMonth",
        };
        let mut statement = self.statement();
        self.bind_days(&mut statement, asked);
        statement.bind("came", Bound::Text(asked.first_event.clone()));
        statement.bind("returned", Bound::Text(asked.return_event.clone()));
        let (there, of_one) = if asked.first_event == asked.return_event {
            // Whoever did it again did it before: nobody returns earlier than they came.
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
        let one = |row: ReturnsRow| Returns { came: row.came, there: row.there, count: row.count };
        Ok((returns.into_iter().map(one).collect(), epochs.into_iter().map(|row| row.came).collect()))
    }

    fn bind_days(&self, statement: &mut Statement, asked: &Retention) {
        // ClickHouse's dates begin in 1970 and end in 2149; beyond, they wrap around.
        let day_of = |number| NaiveDate::from_epoch_days(number).unwrap_or_default();
        let text = |day: NaiveDate| Bound::Text(day.clamp(day_of(0), day_of(65_000)).to_string());
        statement.bind("earliest", text(asked.days.first - TimeDelta::days(LONGEST_LIFE_DAYS)));
        statement.bind("latest", text(asked.last_day()));
        statement.bind("first", text(asked.days.first));
        statement.bind("last", text(asked.days.last));
    }
}

/// What was seen on the days in question, and before for as long as an id may live.
const DAYS: &str = "site_id = {site:UUID} AND day >= {earliest:Date} AND day <= {latest:Date}";
