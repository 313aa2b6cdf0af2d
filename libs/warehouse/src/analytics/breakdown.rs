//! One figure by the values of a dimension.

use clickhouse::Row;
use domain::analytics::{Dimension, Question, Sums};
use serde::Deserialize;

use super::SiteAnalytics;
use super::source::{Part, Shape, Source};
use super::statement::Bound;
use crate::Error;

#[derive(Row, Deserialize)]
struct WordRow {
    word: String,
    amount: u64,
    over: u64,
}

impl SiteAnalytics<'_> {
    /// The sums of the question's figure for the values of `dimension` that weigh most: those with the largest
    /// count, of a mean those that are the mean of most. Equals stand in the order of their bytes. What has no
    /// value stands under the empty text.
    ///
    /// # Errors
    /// As [`SiteAnalytics::total`].
    pub async fn breakdown(
        &self,
        question: &Question,
        dimension: Dimension,
    ) -> Result<Vec<(String, Sums)>, Error> {
        let shape = Shape::by(question, dimension);
        let mut statement = self.statement();
        statement.bind_range(question.counted);
        statement.bind("limit", Bound::Number(question.limit.into()));
        let mut select = |source: Source, part: Part| {
            let (key, rows) = (shape.key(source).unwrap_or("''"), shape.rows(source, part, &mut statement));
            format!("SELECT {key} AS word, {} {rows} GROUP BY word", shape.sums(source))
        };
        let rows = if shape.adds_up_visits() {
            // Only the page views of the few visits that cross an edge are looked at one by one.
            let (within, across) =
                (select(Source::Visits, Part::Within), select(Source::Joined, Part::Across));
            format!(
                "SELECT word, sum(amount) AS amount, sum(over) AS over FROM ({within} UNION ALL {across}) GROUP BY word"
            )
        } else {
            select(shape.source(), Part::Whole)
        };
        let weight = if question.metric.is_mean() { "over" } else { "amount" };
        statement.push("SELECT toString(word) AS word, amount, over FROM (").push(&rows);
        statement.push(&format!(") ORDER BY {weight} DESC, word ASC LIMIT {{limit:Int64}}"));
        let rows = self.rows::<WordRow>(statement).await?;
        Ok(rows.into_iter().map(|row| (row.word, Sums { amount: row.amount, over: row.over })).collect())
    }
}
