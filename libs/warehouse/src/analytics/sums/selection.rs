//! [`Selection`]: the sums of one metric by one key, over rows of ClickHouse.

use domain::analytics::{Bucket, Range};

use super::buckets::{Buckets, bucket_key, separate_buckets};
use super::sections::Section;
use crate::analytics::source::{RangePart, Shape, Source};
use crate::analytics::statement::Statement;

/// Sums of a metric over a range, in total or by a key.
pub(in crate::analytics) struct KeyedQuery<'a> {
    pub(in crate::analytics) shape: Shape<'a>,
    pub(in crate::analytics) key: Key<'a>,
    pub(in crate::analytics) range: Range,
}

/// What the sums are grouped by.
#[derive(Clone, Copy)]
pub(in crate::analytics) enum Key<'a> {
    /// Nothing: the only key is empty.
    Nothing,
    /// The dimension of the shape.
    Dimension,
    /// The start of a bucket in Unix seconds.
    Bucket(&'a [Bucket]),
}

/// Rows, the key that they are grouped by, and two sums. Its statement and values determine the result, so it is also the key of
/// the cache. A series by `key` has the starts of its buckets among the values, and thus never the rows of another selection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::analytics) struct Selection {
    /// SQL from `FROM` on.
    pub(in crate::analytics) rows: Statement,
    pub(in crate::analytics) key: SelectionKey,
    /// SQL of the sum, and of what a mean is divided by.
    pub(in crate::analytics) sums: (String, Option<String>),
}

/// The key of a selection's sums.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::analytics) enum SelectionKey {
    /// The same for all rows.
    Fixed(String),
    /// SQL of each row's key.
    Column(String),
}

impl Selection {
    /// Returns the bytes of its texts and values.
    pub(in crate::analytics) fn size(&self) -> usize {
        let ((amount, over), SelectionKey::Fixed(key) | SelectionKey::Column(key)) = (&self.sums, &self.key);
        self.rows.size() + key.len() + amount.len() + over.as_ref().map_or(0, String::len)
    }

    /// Returns SQL of each row's key; `None` if all have the same.
    pub(in crate::analytics) fn column(&self) -> Option<&str> {
        match &self.key {
            SelectionKey::Fixed(_) => None,
            SelectionKey::Column(column) => Some(column),
        }
    }
}

impl KeyedQuery<'_> {
    /// Returns the selections that make up the section: their sums are added. `statement` has the site bound.
    pub(in crate::analytics) fn selections(&self, section: Section, statement: &Statement) -> Vec<Selection> {
        let source = self.shape.source();
        let mut statement = statement.clone();
        match self.key {
            Key::Bucket(buckets) => {
                let whole = |statement: &Statement, key, condition: Option<String>| {
                    self.selection(source, RangePart::Whole, section, statement, key, condition.as_deref())
                };
                if let Some(buckets) = separate_buckets(buckets, section.range, source) {
                    let fixed = |bucket| SelectionKey::Fixed(bucket_key(bucket));
                    let selection = |(bucket, condition)| whole(&statement, fixed(bucket), condition);
                    buckets.into_iter().map(selection).collect()
                } else {
                    let key = SelectionKey::Column(Buckets::bind(buckets, &mut statement).column(source));
                    vec![whole(&statement, key, None)]
                }
            }
            Key::Nothing | Key::Dimension => {
                // Only visits that cross an edge of the range, which are few, need their page views read from events.
                let parts: &[(Source, RangePart)] = if self.shape.adds_up_visits() {
                    &[(Source::Visits, RangePart::Within), (Source::Joined, RangePart::Across)]
                } else {
                    &[(source, RangePart::Whole)]
                };
                let selection = |(source, part): &(Source, RangePart)| {
                    let key = match self.shape.column(*source) {
                        Some(column) if matches!(self.key, Key::Dimension) => {
                            SelectionKey::Column(column.to_owned())
                        }
                        _ => SelectionKey::Fixed(String::new()),
                    };
                    self.selection(*source, *part, section, &statement, key, None)
                };
                parts.iter().map(selection).collect()
            }
        }
    }

    /// Returns the sums of a key over the rows of a part of the section, or over those that match a condition.
    fn selection(
        &self,
        source: Source,
        part: RangePart,
        section: Section,
        statement: &Statement,
        key: SelectionKey,
        condition: Option<&str>,
    ) -> Selection {
        let mut rows = statement.clone();
        let text = self.shape.rows(source, part, section, &mut rows);
        rows.push(&text);
        let (amount, over) = self.shape.sums(source);
        Selection { rows, key, sums: (amount.sql(condition), over.map(|over| over.sql(condition))) }
    }
}
