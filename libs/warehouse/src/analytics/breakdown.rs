//! A metric by the values of a dimension.

use clickhouse::Row;
use domain::analytics::{Dimension, MetricQuery, Sums};
use serde::Deserialize;

use super::site_analytics::SiteAnalytics;
use super::source::{RangePart, Shape, Source};
use super::statement::Bound;
use crate::error::Error;

#[derive(Row, Deserialize)]
struct ValueRow {
    word: String,
    amount: u64,
    over: u64,
}

impl SiteAnalytics<'_> {
    /// Returns the sums of the metric for the top values of `dimension`: those with the largest count, or for a mean
    /// those with the most samples. Ties are ordered by value. Rows without a value are counted under the empty string.
    pub async fn breakdown(
        &self,
        question: &MetricQuery,
        dimension: Dimension,
    ) -> Result<Vec<(String, Sums)>, Error> {
        let shape = Shape::by(question, dimension);
        let mut statement = self.statement();
        statement.bind_range(question.counted);
        statement.bind("limit", Bound::Number(question.limit.into()));
        let mut select = |source: Source, part: RangePart| {
            let (key, rows) = (shape.key(source).unwrap_or("''"), shape.rows(source, part, &mut statement));
            format!("SELECT {key} AS word, {} {rows} GROUP BY word", shape.sums(source))
        };
        let rows = if shape.adds_up_visits() {
            // Only visits that cross an edge of the range, which are few, need their page views read from events.
            let (within, across) =
                (select(Source::Visits, RangePart::Within), select(Source::Joined, RangePart::Across));
            format!(
                "SELECT word, sum(amount) AS amount, sum(over) AS over FROM ({within} UNION ALL {across}) GROUP BY word"
            )
        } else {
            select(shape.source(), RangePart::Whole)
        };
        let weight = if question.metric.is_mean() { "over" } else { "amount" };
        statement.push("SELECT toString(word) AS word, amount, over FROM (").push(&rows);
        statement.push(&format!(") ORDER BY {weight} DESC, word ASC LIMIT {{limit:Int64}}"));
        let rows = self.rows::<ValueRow>(statement).await?;
        Ok(rows.into_iter().map(|row| (row.word, Sums { amount: row.amount, over: row.over })).collect())
    }
}
