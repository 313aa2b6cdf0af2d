//! One figure of a whole range.

use domain::analytics::{Metric, Question, Range, Sums};

use super::source::{Part, Shape, Source};
use super::statement::Statement;
use super::{Questions, SumsRow};
use crate::Error;

impl Questions<'_> {
    /// The sums of `question`'s figure over `range`, its filters applied.
    ///
    /// # Errors
    /// ClickHouse is away, or the question takes too much.
    pub async fn total(&self, question: &Question, range: Range) -> Result<Sums, Error> {
        self.sums(Shape::whole(question), range).await
    }

    /// Distinct visitors who did something in the range.
    ///
    /// # Errors
    /// As [`Questions::total`].
    pub async fn active_visitors(&self, range: Range) -> Result<u64, Error> {
        let shape = Shape { metric: Metric::ActiveVisitors, breakdown: None, filters: &[] };
        Ok(self.sums(shape, range).await?.amount)
    }

    async fn sums(&self, shape: Shape<'_>, range: Range) -> Result<Sums, Error> {
        let mut statement = self.statement();
        statement.bind_range(range);
        let rows = grouped(shape, &mut statement);
        statement.push("SELECT sum(amount) AS amount, sum(over) AS over FROM (").push(&rows).push(")");
        let rows = self.rows::<SumsRow>(statement).await?;
        Ok(rows.into_iter().next().map(Sums::from).unwrap_or_default())
    }
}

/// A statement whose rows are the two sums, of each `word` if there is a breakdown. Several rows of one word are to
/// be added up.
pub(super) fn grouped(shape: Shape<'_>, statement: &mut Statement) -> String {
    let mut select = |source: Source, part: Part| {
        let rows = shape.rows(source, part, statement);
        match shape.key(source) {
            Some(key) => format!("SELECT {key} AS word, {} {rows} GROUP BY word", shape.sums(source)),
            None => format!("SELECT {} {rows}", shape.sums(source)),
        }
    };
    if shape.adds_up_visits() {
        // Only the page views of the few visits that cross an edge are looked at one by one.
        let within = select(Source::Visits, Part::Within);
        return format!("{within} UNION ALL {}", select(Source::Joined, Part::Across));
    }
    select(shape.source(), Part::Whole)
}
