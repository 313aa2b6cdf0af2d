//! A metric by the values of a dimension, and the same values in the previous period.

use clickhouse::Row;
use domain::analytics::{Dimension, MetricQuery, Range, Sums};
use serde::Deserialize;

use super::site_analytics::SiteAnalytics;
use super::source::{RangePart, Shape, Source};
use super::statement::{Bound, Statement};
use crate::error::Error;

/// A row of a breakdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownSums {
    /// The value of the dimension; empty for rows without one.
    pub key: String,
    pub sums: Sums,
    /// Those of the same value in the previous period, if the query compares.
    pub compared: Option<Sums>,
}

#[derive(Row, Deserialize)]
struct ValueRow {
    /// The number of the query.
    part: u16,
    word: String,
    amount: u64,
    over: u64,
    amount_before: u64,
    over_before: u64,
}

impl SiteAnalytics<'_> {
    /// Returns the sums of the metric for the top values of each query's dimension: those with the largest count, or for a
    /// mean those with the most samples. Ties are ordered by value. It is one statement for all queries; one without a
    /// dimension has no rows.
    pub async fn breakdowns(&self, questions: &[MetricQuery]) -> Result<Vec<Vec<BreakdownSums>>, Error> {
        let by_dimension = |question: &MetricQuery| Some(self.top_values(question, question.breakdown?));
        let (numbers, parts): (Vec<_>, Vec<_>) = questions
            .iter()
            .enumerate()
            .filter_map(|(number, question)| Some((number, by_dimension(question)?)))
            .unzip();
        let mut breakdowns = vec![Vec::new(); questions.len()];
        if parts.is_empty() {
            return Ok(breakdowns);
        }
        let mut statement = self.statement();
        statement.push_union(parts);
        for row in self.rows::<ValueRow>(statement).await? {
            let Some(number) = numbers.get(usize::from(row.part)).copied() else { continue };
            let compared = Sums { amount: row.amount_before, over: row.over_before };
            breakdowns[number].push(BreakdownSums {
                key: row.word,
                sums: Sums { amount: row.amount, over: row.over },
                compared: questions[number].compared.map(|_| compared),
            });
        }
        for (question, rows) in questions.iter().zip(&mut breakdowns) {
            let weight = |sums: Sums| if question.metric.is_mean() { sums.over } else { sums.amount };
            // A union of statements has no order.
            rows.sort_by(|a, b| weight(b.sums).cmp(&weight(a.sums)).then_with(|| a.key.cmp(&b.key)));
        }
        Ok(breakdowns)
    }

    /// Returns the statement of the top values, with those of the previous period beside them.
    fn top_values(&self, question: &MetricQuery, dimension: Dimension) -> Statement {
        let weight = if question.metric.is_mean() { "over" } else { "amount" };
        let mut statement = self.statement();
        statement.bind("limit", Bound::Number(question.limit.into()));
        let Some(compared) = question.compared else {
            statement.push(
                "SELECT word, amount, over, toUInt64(0) AS amount_before, toUInt64(0) AS over_before FROM (",
            );
            statement.push_part(self.values(question, dimension, question.counted), "now");
            statement.push(&format!(") ORDER BY {weight} DESC, word ASC LIMIT {{limit:Int64}}"));
            return statement;
        };
        statement.push("SELECT word, amount, over, amount_before, over_before FROM (SELECT * FROM (");
        statement.push_part(self.values(question, dimension, question.counted), "now");
        statement.push(&format!(") ORDER BY {weight} DESC, word ASC LIMIT {{limit:Int64}}) AS top "));
        // A value that did not occur before has zeros.
        statement.push("LEFT ANY JOIN (SELECT word, amount AS amount_before, over AS over_before FROM (");
        statement.push_part(self.values(question, dimension, compared), "before");
        statement.push(")) AS previous USING (word)");
        statement
    }

    /// Returns the statement of all values in the range.
    fn values(&self, question: &MetricQuery, dimension: Dimension, range: Range) -> Statement {
        let shape = Shape::by(question, dimension);
        let mut statement = self.statement();
        statement.bind_range(range);
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
        statement.push("SELECT toString(word) AS word, amount, over FROM (").push(&rows).push(")");
        statement
    }
}
