//! Several metrics over the same range and over the previous one, in one statement.
//!
//! Metrics that read the same rows share a scan.

use clickhouse::Row;
use domain::analytics::{MetricQuery, Range, Sums};
use serde::Deserialize;

use super::site_analytics::SiteAnalytics;
use super::source::{RangePart, Shape, Source};
use super::statement::Statement;
use crate::error::Error;

/// A metric in both periods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ComparedSums {
    pub sums: Sums,
    /// Those of the previous period, if the query compares.
    pub compared: Option<Sums>,
}

#[derive(Row, Deserialize)]
struct TotalRow {
    /// The number of the scan.
    part: u16,
    /// The number of the metric within the scan.
    metric: u16,
    amount: u64,
    over: u64,
}

/// Rows that are read once, and the sums over them.
struct Scan {
    rows: Statement,
    /// The number of each metric's query, and SQL of its two sums.
    metrics: Vec<(usize, (String, String))>,
    is_compared: bool,
}

impl SiteAnalytics<'_> {
    /// Returns the sums of each query's metric.
    pub async fn totals(&self, questions: &[MetricQuery]) -> Result<Vec<ComparedSums>, Error> {
        let mut scans = Vec::new();
        for (number, question) in questions.iter().enumerate() {
            self.add_scans(&mut scans, number, question, question.counted, false);
            if let Some(compared) = question.compared {
                self.add_scans(&mut scans, number, question, compared, true);
            }
        }
        let zero = |question: &MetricQuery| ComparedSums {
            sums: Sums::default(),
            compared: question.compared.map(|_| Sums::default()),
        };
        let mut totals: Vec<_> = questions.iter().map(zero).collect();
        if scans.is_empty() {
            return Ok(totals);
        }
        let numbers: Vec<(Vec<usize>, bool)> = scans
            .iter()
            .map(|scan| (scan.metrics.iter().map(|(number, _)| *number).collect(), scan.is_compared))
            .collect();
        let mut statement = self.statement();
        statement.push_union(scans.into_iter().map(Scan::statement));
        for row in self.rows::<TotalRow>(statement).await? {
            let Some((metrics, is_compared)) = numbers.get(usize::from(row.part)) else { continue };
            let Some(number) = metrics.get(usize::from(row.metric)) else { continue };
            let total = &mut totals[*number];
            let sums = if *is_compared { total.compared.get_or_insert_default() } else { &mut total.sums };
            // The page views of some visits are those of two scans.
            sums.amount += row.amount;
            sums.over += row.over;
        }
        Ok(totals)
    }

    /// Adds a metric to the scans of a range.
    fn add_scans(
        &self,
        scans: &mut Vec<Scan>,
        number: usize,
        question: &MetricQuery,
        range: Range,
        is_compared: bool,
    ) {
        let shape = Shape::whole(question);
        let parts: &[(Source, RangePart)] = if shape.adds_up_visits() {
            &[(Source::Visits, RangePart::Within), (Source::Joined, RangePart::Across)]
        } else {
            &[(shape.source(), RangePart::Whole)]
        };
        for (source, part) in parts {
            let mut rows = self.statement();
            rows.bind_range(range);
            let text = shape.rows(*source, *part, &mut rows);
            rows.push(&text);
            let sums = (number, shape.amount_and_over(*source));
            match scans.iter_mut().find(|scan| scan.rows == rows && scan.is_compared == is_compared) {
                Some(scan) => scan.metrics.push(sums),
                None => scans.push(Scan { rows, metrics: vec![sums], is_compared }),
            }
        }
    }
}

impl Scan {
    /// Returns the statement of a row per metric.
    fn statement(self) -> Statement {
        let sums = self
            .metrics
            .iter()
            .enumerate()
            .map(|(metric, (_, (amount, over)))| format!("(toUInt16({metric}), {amount}, {over})"));
        let sums = sums.collect::<Vec<_>>().join(", ");
        let mut statement = Statement::default();
        statement.push("SELECT sums.1 AS metric, sums.2 AS amount, sums.3 AS over FROM (");
        statement.push(&format!("SELECT arrayJoin([{sums}]) AS sums "));
        statement.push_rows(self.rows);
        statement.push(")");
        statement
    }
}
