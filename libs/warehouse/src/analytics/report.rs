//! [`Report`]: totals, a series and breakdowns of a site.

use domain::analytics::{Bucket, MetricQuery, Range, Sums};

use super::site_analytics::SiteAnalytics;
use super::source::Shape;
use super::sums::buckets::bucket_key;
use super::sums::keyed_sums::KeyedSums;
use super::sums::selection::{Key, KeyedQuery};
use crate::error::Error;

/// What a report contains.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportQuery<'a> {
    /// Metrics over their whole ranges.
    pub totals: &'a [MetricQuery],
    /// A metric in buckets.
    pub series: Option<&'a MetricQuery>,
    /// Metrics by the values of their dimensions.
    pub breakdowns: &'a [MetricQuery],
}

/// The sums of each part of a [`ReportQuery`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub totals: Vec<ComparedSums>,
    /// Those of each bucket, as if each were queried alone.
    pub series: Vec<Sums>,
    /// Those of each bucket of the previous period.
    pub compared_series: Vec<Sums>,
    /// The top values of each dimension: those with the largest count, or for a mean those with the most samples. Ties are
    /// ordered by value. A query without a dimension has no rows.
    pub breakdowns: Vec<Vec<BreakdownSums>>,
}

/// A metric in both periods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ComparedSums {
    pub sums: Sums,
    /// Those of the previous period, if the query compares.
    pub compared: Option<Sums>,
}

/// A row of a breakdown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownSums {
    /// The value of the dimension; empty for rows without one.
    pub key: String,
    pub sums: Sums,
    /// Those of the same value in the previous period, if the query compares.
    pub compared: Option<Sums>,
}

impl SiteAnalytics<'_> {
    /// Returns all parts of a report, in three statements at most: the recent visits, whether settled days have changed, and
    /// settled days that are not cached. If that exceeds a limit, smaller statements follow.
    pub async fn report(&self, query: ReportQuery<'_>) -> Result<Report, Error> {
        match self.try_report(query).await {
            Err(error) if error.is_too_large_result() && !query.breakdowns.is_empty() => {
                let mut report = self.try_report(ReportQuery { breakdowns: &[], ..query }).await?;
                for question in query.breakdowns {
                    report.breakdowns.push(match question.breakdown {
                        Some(dimension) => self.top_values(question, Shape::by(question, dimension)).await?,
                        None => Vec::new(),
                    });
                }
                Ok(report)
            }
            report => report,
        }
    }

    async fn try_report(&self, query: ReportQuery<'_>) -> Result<Report, Error> {
        let mut queries = Vec::new();
        for question in query.totals {
            queries.extend(both_periods(question, Shape::whole(question), Key::Nothing));
        }
        if let Some(question) = query.series {
            for (buckets, counted) in series_periods(question) {
                queries.extend(by_bucket(question, buckets, counted));
            }
        }
        for question in query.breakdowns {
            if let Some(dimension) = question.breakdown {
                queries.extend(both_periods(question, Shape::by(question, dimension), Key::Dimension));
            }
        }
        let mut sums = self.keyed_sums(&queries).await?.into_iter();
        // In the order of the queries.
        let mut next = || sums.next().unwrap_or_default();
        let totals = query.totals.iter().map(|question| ComparedSums {
            sums: next().total(),
            compared: question.compared.map(|_| next().total()),
        });
        let totals = totals.collect();
        let mut series = query.series.into_iter().flat_map(series_periods).map(|(buckets, counted)| {
            let by_start = if overlap(buckets, counted).is_some() { next() } else { KeyedSums::default() };
            let sums = |bucket: &Bucket| by_start.get(&bucket_key(bucket));
            buckets.iter().map(sums).collect()
        });
        let (current, previous) = (series.next().unwrap_or_default(), series.next().unwrap_or_default());
        drop(series);
        let breakdowns = query.breakdowns.iter().map(|question| match question.breakdown {
            None => Vec::new(),
            Some(_) => {
                let counted = next();
                sort_values(question, &counted, question.compared.map(|_| next()).as_ref())
            }
        });
        let breakdowns = breakdowns.collect();
        Ok(Report { totals, series: current, compared_series: previous, breakdowns })
    }

    /// Counts the distinct visitors with any event in the range.
    pub async fn active_visitors(&self, range: Range) -> Result<u64, Error> {
        let query = KeyedQuery { shape: Shape::ACTIVE_VISITORS, key: Key::Nothing, range };
        Ok(self.keyed_sums(&[query]).await?.iter().map(|sums| sums.total().amount).sum())
    }
}

/// Returns the query of the period and, if it is compared, that of the one before.
fn both_periods<'a>(
    question: &MetricQuery,
    shape: Shape<'a>,
    key: Key<'a>,
) -> impl Iterator<Item = KeyedQuery<'a>> {
    let ranges = std::iter::once(question.counted).chain(question.compared);
    ranges.map(move |range| KeyedQuery { shape, key, range })
}

/// Returns the buckets and the counted range of the period and, if it is compared, of the one before.
fn series_periods(question: &MetricQuery) -> impl Iterator<Item = (&[Bucket], Range)> {
    let previous = question.compared.map(|compared| (question.compared_buckets.as_slice(), compared));
    std::iter::once((question.buckets.as_slice(), question.counted)).chain(previous)
}

/// Returns the query of a series; `None` if no bucket overlaps the counted range.
fn by_bucket<'a>(question: &'a MetricQuery, buckets: &'a [Bucket], counted: Range) -> Option<KeyedQuery<'a>> {
    let range = overlap(buckets, counted)?;
    Some(KeyedQuery { shape: Shape::whole(question), key: Key::Bucket(buckets), range })
}

/// Returns the part of the counted range that the buckets cover. It may lie outside: active visitors are counted now, whatever
/// the period.
fn overlap(buckets: &[Bucket], counted: Range) -> Option<Range> {
    let (first, last) = (buckets.first()?.range, buckets.last()?.range);
    let range = Range { start: counted.start.max(first.start), end: counted.end.min(last.end) };
    (range.start < range.end).then_some(range)
}

fn sort_values(
    question: &MetricQuery,
    counted: &KeyedSums,
    before: Option<&KeyedSums>,
) -> Vec<BreakdownSums> {
    let weight = |sums: Sums| if question.metric.is_mean() { sums.over } else { sums.amount };
    let mut rows: Vec<(&str, Sums)> = counted.iter().collect();
    rows.sort_unstable_by(|a, b| weight(b.1).cmp(&weight(a.1)).then_with(|| a.0.cmp(b.0)));
    rows.truncate(usize::try_from(question.limit).unwrap_or(usize::MAX));
    let row = |(key, sums): (&str, Sums)| BreakdownSums {
        key: key.to_owned(),
        sums,
        compared: before.map(|before| before.get(key)),
    };
    rows.into_iter().map(row).collect()
}
