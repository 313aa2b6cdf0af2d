//! The top values of a dimension that has more of them than a statement may return. ClickHouse sorts them; nothing is cached.

use clickhouse::Row;
use domain::analytics::{MetricQuery, Range, Sums};
use serde::Deserialize;

use super::report::BreakdownSums;
use super::site_analytics::SiteAnalytics;
use super::source::Shape;
use super::statement::{Bound, Statement};
use super::sums::sections::Section;
use super::sums::selection::{Key, KeyedQuery, Selection};
use crate::error::Error;

#[derive(Row, Deserialize)]
struct ValueRow {
    word: String,
    amount: u64,
    over: u64,
}

impl From<&ValueRow> for Sums {
    fn from(row: &ValueRow) -> Self {
        Self { amount: row.amount, over: row.over }
    }
}

impl SiteAnalytics<'_> {
    /// Returns the top values of a query by the dimension of `shape`.
    pub(super) async fn top_values(
        &self,
        question: &MetricQuery,
        shape: Shape<'_>,
    ) -> Result<Vec<BreakdownSums>, Error> {
        let weight = if question.metric.is_mean() { "over" } else { "amount" };
        let mut statement = self.values(shape, question.counted);
        statement.bind("limit", Bound::Number(question.limit.into()));
        statement.push(&format!(" GROUP BY word ORDER BY {weight} DESC, word ASC LIMIT {{limit:Int64}}"));
        let top: Vec<ValueRow> = self.rows(statement).await?;
        let before: Option<Vec<ValueRow>> = match question.compared {
            None => None,
            Some(range) => {
                let mut statement = self.values(shape, range);
                statement.bind("words", Bound::Texts(top.iter().map(|row| row.word.clone()).collect()));
                statement.push(" WHERE word IN {words:Array(String)} GROUP BY word");
                Some(self.rows(statement).await?)
            }
        };
        let compared = |word: &str| {
            let row = |before: &Vec<ValueRow>| before.iter().find(|row| row.word == word).map(Sums::from);
            before.as_ref().map(|before| row(before).unwrap_or_default())
        };
        Ok(top
            .iter()
            .map(|row| BreakdownSums {
                key: row.word.clone(),
                sums: row.into(),
                compared: compared(&row.word),
            })
            .collect())
    }

    /// Returns the statement of all values in the range, which must be grouped by `word`.
    fn values(&self, shape: Shape<'_>, range: Range) -> Statement {
        let query = KeyedQuery { shape, key: Key::Dimension, range };
        let mut statement = self.statement();
        statement.push("SELECT word, sum(amount) AS amount, sum(over) AS over FROM (");
        for (number, part) in query.selections(Section::all(range), &self.statement()).into_iter().enumerate()
        {
            let key = part.column().unwrap_or("''").to_owned();
            let Selection { rows, sums: (amount, over), .. } = part;
            let over = over.unwrap_or_else(|| "toUInt64(0)".to_owned());
            let mut select = Statement::default();
            select.push("SELECT toString(word) AS word, amount, over FROM (");
            select.push(&format!("SELECT {key} AS word, {amount} AS amount, {over} AS over "));
            select.push_rows(rows);
            select.push(" GROUP BY word)");
            statement.push(if number > 0 { " UNION ALL " } else { "" });
            statement.push_part(select, &number.to_string());
        }
        statement.push(")");
        statement
    }
}
