//! One figure in buckets of time.

use std::collections::HashMap;

use clickhouse::Row;
use domain::analytics::{Question, Range, Sums};
use serde::Deserialize;

use super::Questions;
use super::source::{Part, Shape, Source};
use super::statement::Bound;
use crate::Error;

#[derive(Row, Deserialize)]
struct BucketRow {
    /// The second it begins with.
    bucket: i64,
    amount: u64,
    over: u64,
}

/// The bucket an event lies in. The buckets' beginnings are worked out beforehand, so that ClickHouse needs to know
/// nothing of time zones.
const OF_EVENT: &str =
    "SELECT roundDown(toInt64(toUnixTimestamp(received_at)), {starts:Array(Int64)}) AS bucket, ";

/// The buckets a visit was going on in; mostly it is one.
const OF_VISIT: &str = "WITH {starts:Array(Int64)} AS starts, \
                        roundDown(toInt64(toUnixTimestamp(start)), starts) AS first, \
                        roundDown(toInt64(toUnixTimestamp(ended)), starts) AS last \
                        SELECT arrayJoin(if(first = last, [first], \
                        arrayFilter(one -> one >= first AND one <= last, starts))) AS bucket, ";

impl Questions<'_> {
    /// The sums of the question's figure in each of its buckets, as if each had been asked for alone.
    ///
    /// # Errors
    /// As [`Questions::total`].
    pub async fn series(&self, question: &Question) -> Result<Vec<Sums>, Error> {
        let starts: Vec<i64> = question.buckets.iter().map(|bucket| bucket.range.start.timestamp()).collect();
        // Who is active now is in none of the buckets of last year.
        let (counted, shown) = (question.counted, question.range);
        let range = Range { start: counted.start.max(shown.start), end: counted.end.min(shown.end) };
        if range.start >= range.end {
            return Ok(vec![Sums::default(); starts.len()]);
        }
        let shape = Shape::whole(question);
        let source = shape.source();
        let mut statement = self.statement();
        statement.bind_range(range);
        statement.bind("starts", Bound::Numbers(starts.clone()));
        let rows = shape.rows(source, Part::Whole, &mut statement);
        statement.push(if source == Source::Visits { OF_VISIT } else { OF_EVENT });
        statement.push(&shape.sums(source)).push(" ").push(&rows).push(" GROUP BY bucket");
        let rows = self.rows::<BucketRow>(statement).await?;
        let sums: HashMap<i64, Sums> =
            rows.into_iter().map(|row| (row.bucket, Sums { amount: row.amount, over: row.over })).collect();
        Ok(starts.iter().map(|start| sums.get(start).copied().unwrap_or_default()).collect())
    }
}
