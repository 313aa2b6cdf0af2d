//! A metric in buckets of time.

use std::collections::HashMap;

use clickhouse::Row;
use domain::analytics::{MetricQuery, Range, Sums};
use serde::Deserialize;

use super::site_analytics::SiteAnalytics;
use super::source::{RangePart, Shape, Source};
use super::statement::{Bound, Statement};
use crate::error::Error;

#[derive(Row, Deserialize)]
struct BucketRow {
    /// The start of the bucket in Unix seconds.
    bucket: i64,
    amount: u64,
    over: u64,
}

/// How SQL maps an instant to its bucket. The starts of the buckets are computed beforehand, so that ClickHouse needs no
/// time zones.
#[derive(Clone, Copy)]
enum Buckets {
    /// All buckets have the same length.
    Even,
    /// Buckets differ in length: months, or days with a clock change.
    Uneven,
}

impl Buckets {
    /// Binds the starts of the buckets.
    fn bind(starts: &[i64], statement: &mut Statement) -> Self {
        let mut steps = starts.windows(2).map(|pair| pair[1] - pair[0]);
        let step = steps.next().unwrap_or(1);
        if steps.any(|other| other != step) {
            statement.bind("starts", Bound::Numbers(starts.to_vec()));
            return Self::Uneven;
        }
        statement.bind("step", Bound::Number(step));
        statement.bind("earliest", Bound::Number(starts.first().copied().unwrap_or_default()));
        statement.bind("latest", Bound::Number(starts.last().copied().unwrap_or_default()));
        Self::Even
    }

    /// Returns SQL for the start of a column's bucket. Instants outside the range belong to the first or last bucket.
    fn of(self, column: &str) -> String {
        let second = format!("toInt64(toUnixTimestamp({column}))");
        match self {
            Self::Even => format!(
                "({{earliest:Int64}} + intDiv(greatest(least({second}, {{latest:Int64}}), {{earliest:Int64}}) \
                 - {{earliest:Int64}}, {{step:Int64}}) * {{step:Int64}})"
            ),
            Self::Uneven => format!("roundDown({second}, {{starts:Array(Int64)}})"),
        }
    }

    /// Returns SQL for all buckets that a visit overlaps; mostly it is one.
    fn of_visit(self) -> String {
        let (first, last) = (self.of("start"), self.of("ended"));
        let all = match self {
            Self::Even => "range(first, last + 1, {step:Int64})",
            Self::Uneven => {
                "if(first = last, [first], arrayFilter(one -> one >= first AND one <= last, {starts:Array(Int64)}))"
            }
        };
        format!("WITH {first} AS first, {last} AS last SELECT arrayJoin({all}) AS bucket, ")
    }
}

impl SiteAnalytics<'_> {
    /// Returns the sums of the metric in each bucket, as if each bucket were queried alone.
    pub async fn series(&self, question: &MetricQuery) -> Result<Vec<Sums>, Error> {
        let starts: Vec<i64> = question.buckets.iter().map(|bucket| bucket.range.start.timestamp()).collect();
        // The counted range may be outside the shown one: active visitors are counted now, whatever range is shown.
        let (counted, shown) = (question.counted, question.range);
        let range = Range { start: counted.start.max(shown.start), end: counted.end.min(shown.end) };
        if range.start >= range.end {
            return Ok(vec![Sums::default(); starts.len()]);
        }
        let shape = Shape::whole(question);
        let source = shape.source();
        let mut statement = self.statement();
        statement.bind_range(range);
        let buckets = Buckets::bind(&starts, &mut statement);
        let rows = shape.rows(source, RangePart::Whole, &mut statement);
        let bucket = match source {
            Source::Visits => buckets.of_visit(),
            Source::Events | Source::Joined => format!("SELECT {} AS bucket, ", buckets.of("received_at")),
        };
        statement.push(&bucket).push(&shape.sums(source)).push(" ").push(&rows).push(" GROUP BY bucket");
        let rows = self.rows::<BucketRow>(statement).await?;
        let sums: HashMap<i64, Sums> =
            rows.into_iter().map(|row| (row.bucket, Sums { amount: row.amount, over: row.over })).collect();
        Ok(starts.iter().map(|start| sums.get(start).copied().unwrap_or_default()).collect())
    }
}
