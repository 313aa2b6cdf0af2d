//! Figures: what is counted, and how it is written.

use schemars::JsonSchema;
use serde::Serialize;

/// What a metric is made of, as the warehouse counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// The count; of a mean, the sum: bounces, milliseconds, page views.
    pub amount: u64,
    /// Of a mean, over how many.
    pub over: u64,
}

/// An answer to "how many": a whole number, one with decimals, or none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "MetricValue")]
pub enum Figure {
    /// A whole number.
    Count(u64),
    /// With decimals.
    Decimal(f64),
    /// There is nothing it could be the mean of.
    Unknown,
}

impl Figure {
    /// So many hundredths.
    pub(super) fn hundredths(count: u64) -> Self {
        Self::Decimal(as_float(count) / 100.0)
    }

    /// As a number, if it is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(as_float(count)),
            Self::Decimal(number) => Some(number),
            Self::Unknown => None,
        }
    }
}

/// How much more the figure is than before, in percent with one decimal; none if that can't be said: nothing
/// can't grow by a percentage.
pub fn change_percent(before: Figure, after: Figure) -> Option<f64> {
    let (before, after) = (before.number()?, after.number()?);
    if before == after {
        return Some(0.0);
    }
    (before != 0.0).then(|| one_decimal(100.0 * (after - before) / before))
}

/// `part` in percent of `whole`, with one decimal; 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { one_decimal(100.0 * as_float(part) / as_float(whole)) }
}

/// Rounded to one decimal.
pub(super) fn one_decimal(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below the 53 bits a float holds exactly")]
pub(super) fn as_float(count: u64) -> f64 {
    count as f64
}
