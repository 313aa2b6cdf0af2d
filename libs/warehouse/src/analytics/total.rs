//! One figure of a whole range.

use domain::analytics::{Metric, Question, Range, Sums};

use super::source::{Part, Shape, Source, WITHIN};
use super::statement::Statement;
use super::{SiteAnalytics, SumsRow};
use crate::Error;

impl SiteAnalytics<'_> {
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
    /// As [`SiteAnalytics::total`].
    pub async fn active_visitors(&self, range: Range) -> Result<u64, Error> {
        let shape = Shape { metric: Metric::ActiveVisitors, breakdown: None, filters: &[] };
        Ok(self.sums(shape, range).await?.amount)
    }

    async fn sums(&self, shape: Shape<'_>, range: Range) -> Result<Sums, Error> {
        if !shape.adds_up_visits() {
            return self
                .sum(shape.sums(shape.source()), range, |it| shape.rows(shape.source(), Part::Whole, it))
                .await;
        }
        // Where no visit crosses an edge, no page view needs to be looked at.
        let sums = format!("sumIf(page_views, {WITHIN}) AS amount, countIf(NOT {WITHIN}) AS over");
        let Sums { amount, over: across } =
            self.sum(sums, range, |it| shape.rows(Source::Visits, Part::Whole, it)).await?;
        if across == 0 {
            return Ok(Sums { amount, over: 0 });
        }
        let sums = shape.sums(Source::Joined);
        let seen = self.sum(sums, range, |it| shape.rows(Source::Joined, Part::Across, it)).await?;
        Ok(Sums { amount: amount + seen.amount, over: 0 })
    }

    /// Two sums over rows.
    async fn sum(
        &self,
        sums: String,
        range: Range,
        rows: impl FnOnce(&mut Statement) -> String,
    ) -> Result<Sums, Error> {
        let mut statement = self.statement();
        statement.bind_range(range);
        let rows = rows(&mut statement);
        statement.push(&format!("SELECT {sums} {rows}"));
        let rows = self.rows::<SumsRow>(statement).await?;
        Ok(rows.into_iter().next().map(Sums::from).unwrap_or_default())
    }
}
