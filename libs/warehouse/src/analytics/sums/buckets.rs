//! Buckets of time in SQL.

use chrono::{DateTime, TimeDelta, Utc};
use domain::analytics::{Bucket, Range};

use crate::analytics::source::Source;
use crate::analytics::statement::{Bound, Statement, time_literal};

/// Up to this number of buckets of a short range, each is a sum beside the totals. Otherwise rows are grouped by their bucket, because
/// all sums of a scan are computed for the values of every panel.
const MAX_SEPARATE: usize = 3;
/// The length of a short range. Visits that are not settled are of one.
const SHORT: TimeDelta = TimeDelta::days(2);

/// Returns the key of a bucket's sums: its start in Unix seconds.
pub(in crate::analytics) fn bucket_key(bucket: &Bucket) -> String {
    bucket.range.start.timestamp().to_string()
}

/// Returns the buckets that rows of the range belong to, each with the condition of its rows, in SQL; `None` if rows are better
/// grouped by their bucket. A single bucket has no condition, so its sums are those of the whole range.
pub(super) fn separate_buckets(
    buckets: &[Bucket],
    range: Range,
    source: Source,
) -> Option<Vec<(&Bucket, Option<String>)>> {
    let most = if range.end - range.start <= SHORT { MAX_SEPARATE } else { 1 };
    let overlaps = |bucket: &&Bucket| bucket.range.start < range.end && bucket.range.end > range.start;
    let separate: Vec<&Bucket> = buckets.iter().filter(overlaps).take(most + 1).collect();
    if separate.is_empty() || separate.len() > most {
        return None;
    }
    let (from, to) = match source {
        Source::Visits => ("ended", "start"),
        Source::Events | Source::Joined => ("received_at", "received_at"),
    };
    let time = |at: DateTime<Utc>| format!("toDateTime64('{}', 3, 'UTC')", time_literal(at));
    let last = separate.len() - 1;
    let condition = |(number, bucket): (usize, &&Bucket)| {
        let since = (number > 0).then(|| format!("{from} >= {}", time(bucket.range.start)));
        let before = (number < last).then(|| format!("{to} < {}", time(bucket.range.end)));
        since.into_iter().chain(before).reduce(|all, one| format!("{all} AND {one}"))
    };
    Some(separate.iter().enumerate().map(|pair| (*pair.1, condition(pair))).collect())
}

/// How SQL maps an instant to its bucket. The starts of the buckets are computed beforehand, so that ClickHouse needs no
/// time zones.
#[derive(Clone, Copy)]
pub(super) enum Buckets {
    /// All buckets have the same length.
    Even,
    /// Buckets differ in length: months, or days with a clock change.
    Uneven,
}

impl Buckets {
    /// Binds the starts of the buckets.
    pub(super) fn bind(buckets: &[Bucket], statement: &mut Statement) -> Self {
        let starts: Vec<i64> = buckets.iter().map(|bucket| bucket.range.start.timestamp()).collect();
        let mut steps = starts.windows(2).map(|pair| pair[1] - pair[0]);
        let step = steps.next().unwrap_or(1);
        if steps.any(|other| other != step) {
            statement.bind("starts", Bound::Numbers(starts));
            return Self::Uneven;
        }
        statement.bind("step", Bound::Number(step));
        statement.bind("earliest", Bound::Number(starts.first().copied().unwrap_or_default()));
        statement.bind("latest", Bound::Number(starts.last().copied().unwrap_or_default()));
        Self::Even
    }

    /// Returns SQL for the key of a row's bucket.
    pub(super) fn column(self, source: Source) -> String {
        match source {
            Source::Visits => self.of_visit(),
            Source::Events | Source::Joined => self.of("received_at"),
        }
    }

    /// Returns SQL for the start of a column's bucket, in Unix seconds. Instants outside the range belong to the first or
    /// last bucket.
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

    /// Returns SQL for all buckets that a visit overlaps, as one row each; mostly it is one.
    fn of_visit(self) -> String {
        let (first, last) = (self.of("start"), self.of("ended"));
        match self {
            Self::Even => format!("arrayJoin(range({first}, {last} + 1, {{step:Int64}}))"),
            Self::Uneven => format!(
                "arrayJoin(if({first} = {last}, [{first}], \
                 arrayFilter(one -> one >= {first} AND one <= {last}, {{starts:Array(Int64)}})))"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hours of a day, numbered.
    fn hours(numbers: std::ops::Range<u32>) -> Vec<Bucket> {
        let at = |hour: u32| format!("2026-11-20T{hour:02}:00:00Z").parse().unwrap();
        let bucket =
            |hour| Bucket { date: String::new(), range: Range { start: at(hour), end: at(hour + 1) } };
        numbers.map(bucket).collect()
    }

    fn conditions(count: u32, source: Source) -> Option<Vec<Option<String>>> {
        let buckets = hours(0..20);
        let range = Range { start: buckets[2].range.start, end: hours(0..20)[1 + count as usize].range.end };
        let separate = separate_buckets(&buckets, range, source)?;
        assert_eq!(separate[0].0, &buckets[2]);
        Some(separate.into_iter().map(|(_, condition)| condition).collect())
    }

    #[test]
    fn a_single_bucket_has_all_rows() {
        assert_eq!(conditions(1, Source::Visits), Some(vec![None]));
    }

    #[test]
    fn visits_belong_to_each_bucket_that_they_overlap() {
        let time = |hour: u32| format!("toDateTime64('2026-11-20 {hour:02}:00:00.000', 3, 'UTC')");
        let expected = [
            format!("start < {}", time(3)),
            format!("ended >= {} AND start < {}", time(3), time(4)),
            format!("ended >= {}", time(4)),
        ];
        assert_eq!(conditions(3, Source::Visits), Some(expected.map(Some).to_vec()));
        let expected = [format!("received_at < {}", time(3)), format!("received_at >= {}", time(3))];
        assert_eq!(conditions(2, Source::Events), Some(expected.map(Some).to_vec()));
    }

    #[test]
    fn many_buckets_are_grouped_by() {
        assert_eq!(conditions(4, Source::Visits), None);
    }

    #[test]
    fn of_a_long_range_only_a_single_bucket_is_separate() {
        let at = |day: u32| format!("2026-11-{day:02}T00:00:00Z").parse().unwrap();
        let week = |day| Bucket { date: String::new(), range: Range { start: at(day), end: at(day + 7) } };
        let weeks = [week(1), week(8)];
        let separate = |end| separate_buckets(&weeks, Range { start: at(1), end: at(end) }, Source::Visits);
        assert_eq!(separate(8), Some(vec![(&weeks[0], None)]));
        assert_eq!(separate(9), None);
    }
}
