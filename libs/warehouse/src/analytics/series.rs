//! A metric in buckets of time.

use clickhouse::Row;
use domain::analytics::{Bucket, MetricQuery, Range, Sums};
use serde::Deserialize;

use super::site_analytics::SiteAnalytics;
use super::source::{RangePart, Shape, Source};
use super::statement::{Bound, Statement};
use crate::error::Error;

#[derive(Row, Deserialize)]
struct BucketRow {
    /// The number of the series.
    part: u16,
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
    /// Returns the sums of the metric in each bucket, as if each bucket were queried alone, and those in each bucket of the
    /// previous period. It is one statement.
    pub async fn series(&self, question: &MetricQuery) -> Result<(Vec<Sums>, Vec<Sums>), Error> {
        let mut series = [&question.buckets, &question.compared_buckets]
            .map(|buckets| vec![Sums::default(); buckets.len()]);
        let previous = question
            .compared
            .and_then(|compared| self.sums_by_bucket(question, &question.compared_buckets, compared));
        let current = self.sums_by_bucket(question, &question.buckets, question.counted);
        let (numbers, parts): (Vec<_>, Vec<_>) = [current, previous]
            .into_iter()
            .enumerate()
            .filter_map(|(number, part)| Some((number, part?)))
            .unzip();
        if !parts.is_empty() {
            let mut statement = self.statement();
            statement.push_union(parts);
            let rows = self.rows::<BucketRow>(statement).await?;
            let all = [&question.buckets, &question.compared_buckets];
            let position = |series: usize, start: i64| {
                all[series].binary_search_by_key(&start, |bucket| bucket.range.start.timestamp()).ok()
            };
            for row in rows {
                let Some(number) = numbers.get(usize::from(row.part)).copied() else { continue };
                if let Some(at) = position(number, row.bucket) {
                    series[number][at] = Sums { amount: row.amount, over: row.over };
                }
            }
        }
        let [current, previous] = series;
        Ok((current, previous))
    }

    /// Returns the statement of the sums in each bucket that overlaps the counted range; `None` if none does.
    fn sums_by_bucket(&self, question: &MetricQuery, all: &[Bucket], counted: Range) -> Option<Statement> {
        let shown = Range { start: all.first()?.range.start, end: all.last()?.range.end };
        // The counted range may be outside the shown one: active visitors are counted now, whatever range is shown.
        let range = Range { start: counted.start.max(shown.start), end: counted.end.min(shown.end) };
        if range.start >= range.end {
            return None;
        }
        let starts: Vec<i64> = all.iter().map(|bucket| bucket.range.start.timestamp()).collect();
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
        Some(statement)
    }
}
