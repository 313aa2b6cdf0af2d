//! Values of metrics: counts, means and percentages.

use schemars::JsonSchema;
use serde::Serialize;

/// The counts from which a metric is computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// The count; for a mean, the sum (bounces, milliseconds, page views).
    pub amount: u64,
    /// For a mean, the number of values.
    pub over: u64,
}

/// The value of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum MetricValue {
    Count(u64),
    /// A number with decimals.
    Decimal(f64),
    /// The mean of no values.
    Unknown,
}

impl MetricValue {
    /// Converts from hundredths.
    pub(super) fn hundredths(count: u64) -> Self {
        Self::Decimal(as_float(count) / 100.0)
    }

    /// Returns the value as a number; `None` if it is unknown.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(as_float(count)),
            Self::Decimal(number) => Some(number),
            Self::Unknown => None,
        }
    }
}

/// Returns the change in percent with one decimal; `None` if it is undefined, because the value before was 0 or
/// unknown.
pub fn change_percent(before: MetricValue, after: MetricValue) -> Option<f64> {
    let (before, after) = (before.number()?, after.number()?);
    if before == after {
        return Some(0.0);
    }
    (before != 0.0).then(|| one_decimal(100.0 * (after - before) / before))
}

/// Returns `part` in percent of `whole`, with one decimal; 0 if `whole` is 0.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { one_decimal(100.0 * as_float(part) / as_float(whole)) }
}

/// Rounds to one decimal.
pub(super) fn one_decimal(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below the 53 bits a float holds exactly")]
pub(super) fn as_float(count: u64) -> f64 {
    count as f64
}
