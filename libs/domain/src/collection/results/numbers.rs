//! Statistics of the answers to a number field, for the form's owner: they show single answers, so they are never public.

use schemars::JsonSchema;
use serde::Serialize;

/// Most parts of a histogram with a part for each whole number, such as a scale from 0 to 10.
const WHOLE_PARTS_MAX: f64 = 21.0;
/// About how many parts any other histogram has.
const PARTS: f64 = 10.0;
/// Below this bound a float represents every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The answers to a number field together.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberSummary {
    /// Name of the field.
    pub field: String,
    /// Number of answers, at least one.
    pub count: i64,
    pub mean: f64,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Whether all of them are whole numbers.
    pub is_whole: bool,
}

/// Number of answers in a part of a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartCount {
    /// Name of the field.
    pub field: String,
    /// The part, from 1.
    pub part: i32,
    pub count: i64,
}

/// Statistics of a number field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct NumberResults {
    /// Number of answers.
    pub count: i64,
    /// Mean of the answers; null without any.
    pub mean: Option<f64>,
    /// Median of the answers; null without any.
    pub median: Option<f64>,
    /// Smallest answer; null without any.
    pub min: Option<f64>,
    /// Largest answer; null without any.
    pub max: Option<f64>,
    /// How the answers are distributed, from the smallest to the largest. Empty without answers.
    pub histogram: Vec<HistogramPart>,
}

/// A part of a histogram.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HistogramPart {
    /// The smallest number of the part.
    pub from: f64,
    /// The end of the part, which belongs to the next one; the end of the last part belongs to it.
    pub to: f64,
    /// Number of answers in it.
    pub count: i64,
}

impl NumberSummary {
    /// Returns the ends of the histogram's parts, one more than parts. Whole numbers of a small range are parts of their own;
    /// other parts are 1, 2 or 5 times a power of ten wide.
    pub fn bounds(&self) -> Vec<f64> {
        let range = self.max - self.min;
        let is_exact = self.min.abs() < EXACT && self.max.abs() < EXACT;
        if self.is_whole && is_exact && range < WHOLE_PARTS_MAX {
            return ascending(self.min, 1.0, 1.0, self.max);
        }
        if range > 0.0 && range.is_finite() {
            let bounds = rounded_bounds(self.min, self.max);
            // Numbers that differ by less than a float can hold have no such parts.
            if bounds.windows(2).all(|pair| pair[0] < pair[1]) && bounds.len() > 2 {
                return bounds;
            }
        }
        vec![self.min, self.max]
    }
}

fn rounded_bounds(min: f64, max: f64) -> Vec<f64> {
    let rough = (max - min) / PARTS;
    let exponent = rough.log10().floor();
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * 10_f64.powf(exponent) >= rough);
    let factor = factor.unwrap_or(10.0);
    // Dividing by a power of ten gives 0.3, multiplying with 0.1 would give 0.30000000000000004.
    let (multiplier, divisor) =
        if exponent < 0.0 { (factor, 10_f64.powf(-exponent)) } else { (factor * 10_f64.powf(exponent), 1.0) };
    ascending(min, multiplier, divisor, max)
}

/// Returns multiples of `multiplier / divisor`, from the last one that is not above `min` to the first one above `max`.
fn ascending(min: f64, multiplier: f64, divisor: f64, max: f64) -> Vec<f64> {
    let first = (min * divisor / multiplier).floor();
    let nth = |n: i32| (first + f64::from(n)) * multiplier / divisor;
    let mut bounds = vec![nth(0)];
    // Never many: a range has about ten parts, or one for each of a few whole numbers.
    for n in 1..=64 {
        bounds.push(nth(n));
        if nth(n) > max {
            break;
        }
    }
    bounds
}

/// Returns the statistics of a field, or those of no answers.
pub(super) fn of(field: &str, summaries: &[NumberSummary], counts: &[PartCount]) -> NumberResults {
    let Some(summary) = summaries.iter().find(|summary| summary.field == field) else {
        return NumberResults::default();
    };
    let bounds = summary.bounds();
    let last = bounds.len() - 1;
    let part_of = |count: &PartCount| usize::try_from(count.part).unwrap_or_default().clamp(1, last);
    let count_in = |part: usize| {
        let own = counts.iter().filter(|count| count.field == field && part_of(count) == part);
        own.map(|count| count.count).sum()
    };
    let parts = bounds.windows(2).enumerate();
    NumberResults {
        count: summary.count,
        mean: Some(summary.mean),
        median: Some(summary.median),
        min: Some(summary.min),
        max: Some(summary.max),
        histogram: parts
            .map(|(at, ends)| HistogramPart { from: ends[0], to: ends[1], count: count_in(at + 1) })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(min: f64, max: f64, is_whole: bool) -> NumberSummary {
        let field = "n".to_owned();
        NumberSummary { field, count: 9, mean: 0.0, median: 0.0, min, max, is_whole }
    }

    #[test]
    fn parts_are_whole_numbers_or_have_round_ends() {
        let of = |min, max, is_whole| summary(min, max, is_whole).bounds();
        assert_eq!(of(1.0, 5.0, true), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(of(7.0, 7.0, true), [7.0, 8.0]);
        assert_eq!(
            of(-3.0, 97.0, true),
            [-10.0, 0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0]
        );
        assert_eq!(of(0.05, 0.62, false), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
        assert_eq!(of(2.5, 2.5, false), [2.5, 2.5]);
        let huge = [(-1.7e308, 1.7e308), (1e17, 1e17 + 16.0), (1e-320, 2e-320), (9.007e15, 9.1e15)];
        for (min, max) in huge {
            for is_whole in [true, false] {
                let bounds = of(min, max, is_whole);
                assert!(bounds.len() >= 2 && bounds.len() < 30, "{min} {max}: {bounds:?}");
                assert!(bounds[0] <= min && bounds[bounds.len() - 1] >= max, "{min} {max}: {bounds:?}");
            }
        }
    }

    #[test]
    fn every_answer_is_in_a_part_and_no_answers_have_no_mean() {
        let count = |part, count| PartCount { field: "n".to_owned(), part, count };
        // Answers that arrived between the two counts may lie outside.
        let counts = [count(0, 1), count(1, 2), count(2, 3), count(9, 4)];
        let results = of("n", &[summary(1.0, 2.0, true)], &counts);
        let shown: Vec<_> = results.histogram.iter().map(|part| (part.from, part.to, part.count)).collect();
        assert_eq!(shown, [(1.0, 2.0, 3), (2.0, 3.0, 7)]);
        let none = serde_json::to_value(of("other", &[summary(1.0, 2.0, true)], &counts)).unwrap();
        assert_eq!(
            none.to_string(),
            r#"{"count":0,"mean":null,"median":null,"min":null,"max":null,"histogram":[]}"#
        );
    }
}
