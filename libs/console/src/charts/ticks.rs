//! Round values for an axis.

/// Returns the upper end of the axis and its ticks above zero: at most five, one of 1, 2 or 5 times a power of ten apart.
/// Ticks of counts are whole.
pub(super) fn ticks(max: f64, is_count: bool) -> (f64, Vec<f64>) {
    let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
    let rough = if is_count { (max / 5.0).max(1.0) } else { max / 5.0 };
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0);
    let step = factor * power;
    let count = (max / step - 1e-9).ceil().max(1.0);
    let ticks = (1..=count as u32).map(|at| f64::from(at) * step).collect();
    (count * step, ticks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(1_900.0, true), (2_000.0, vec![500.0, 1_000.0, 1_500.0, 2_000.0]));
        assert_eq!(ticks(0.0, true), (1.0, vec![1.0]));
        assert_eq!(ticks(3.0, true), (3.0, vec![1.0, 2.0, 3.0]));
        assert_eq!(ticks(7.0, true), (8.0, vec![2.0, 4.0, 6.0, 8.0]));
        assert_eq!(ticks(2.4, false).0, 2.5);
    }

    proptest! {
        #[test]
        fn the_axis_holds_the_maximum_with_few_ticks(max in 0.0001_f64..1e12) {
            let (top, ticks) = ticks(max, false);
            prop_assert!(top >= max * (1.0 - 1e-6) && top <= max * 3.0);
            prop_assert!((1..=5).contains(&ticks.len()), "{:?}", ticks);
        }
    }
}
