//! A metric over a whole range.

use domain::analytics::{Metric, MetricQuery, Range, Sums};

use super::site_analytics::{SiteAnalytics, SumsRow};
use super::source::{RangePart, Shape, Source, WITHIN};
use super::statement::Statement;
use crate::error::Error;

impl SiteAnalytics<'_> {
    /// Returns the sums of the metric over `range`, with the query's filters.
    pub async fn total(&self, question: &MetricQuery, range: Range) -> Result<Sums, Error> {
        self.sums(Shape::whole(question), range).await
    }

    /// Counts the distinct visitors with any event in the range.
    pub async fn active_visitors(&self, range: Range) -> Result<u64, Error> {
        let shape = Shape { metric: Metric::ActiveVisitors, breakdown: None, filters: &[] };
        Ok(self.sums(shape, range).await?.amount)
    }

    async fn sums(&self, shape: Shape<'_>, range: Range) -> Result<Sums, Error> {
        if !shape.adds_up_visits() {
            return self
                .sum(shape.sums(shape.source()), range, |it| shape.rows(shape.source(), RangePart::Whole, it))
                .await;
        }
        // If no visit crosses an edge of the range, no event needs to be read.
        let sums = format!("sumIf(page_views, {WITHIN}) AS amount, countIf(NOT {WITHIN}) AS over");
        let Sums { amount, over: visits_across } =
            self.sum(sums, range, |it| shape.rows(Source::Visits, RangePart::Whole, it)).await?;
        if visits_across == 0 {
            return Ok(Sums { amount, over: 0 });
        }
        let sums = shape.sums(Source::Joined);
        let across = self.sum(sums, range, |it| shape.rows(Source::Joined, RangePart::Across, it)).await?;
        Ok(Sums { amount: amount + across.amount, over: 0 })
    }

    /// Runs a statement of two sums over `rows`.
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
